"""Files that the commands write about records: complete or not at all, and over no record."""

import contextlib
import os
import secrets
import stat
from typing import Optional, Sequence

from tf_lossscale._records.destination import is_record
from tf_lossscale._records.format import printable
from tf_lossscale._records.reading import RecordError


def write(path: str, content: str, records: Sequence[str]) -> None:
    """Writes a file at once or not at all, and neither through a link nor over a record."""
    name, folder = printable(path, 200), os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".tf-lossscale-{secrets.token_hex(4)}")
    try:
        mode = _mode_of_replaced(path, name, records)
        with open(temporary, "x", encoding="utf-8") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        raise RecordError(f"{name} cannot be written: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):  # it was renamed, or not created
            os.unlink(temporary)


def _mode_of_replaced(path: str, name: str, records: Sequence[str]) -> Optional[int]:
    """Returns the permissions of a file, None of a new one; raises if it may not be replaced."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISREG(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "no regular file"
        raise RecordError(f"{name} is {kind}, and is not written; name another file.")
    if is_record(path) or any(os.path.samestat(status, os.stat(record)) for record in records):
        raise RecordError(f"{name} is a record, and is not overwritten; name another file.")
    return stat.S_IMODE(status.st_mode)
