"""The file `checkpoint` in a directory, in which TensorFlow records the latest checkpoint."""

import os
import re
from typing import Optional

from tf_lossscale._checkpoint import storage
from tf_lossscale._checkpoint.errors import CheckpointError

__all__ = ["NAME", "entry", "latest"]

NAME = "checkpoint"
_LATEST = re.compile(rb"^\s*model_checkpoint_path\s*:\s*\"((?:[^\"\\\n]|\\.)*)\"\s*$", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_LARGEST = 2**24


def latest(folder: str) -> Optional[str]:
    """Returns the path that the file names as the latest; None if there is no such file.

    Raises:
      CheckpointError: the file is damaged.
    """
    path = os.path.join(folder, NAME)
    if not storage.is_file(path):
        return None
    if storage.size(path) > _LARGEST:
        raise CheckpointError(f"{path}: too large for a `checkpoint` file of TensorFlow")
    with storage.opened(path) as file:
        text = file.read(_LARGEST)
    match = _LATEST.search(text)
    if match is None:
        if not text.strip():
            return None
        raise CheckpointError(
            f"{path}: damaged: it does not name the latest checkpoint. Pass the prefix of a "
            "checkpoint."
        )
    return os.fsdecode(_ESCAPE.sub(_unescaped, match.group(1))) or None


def _unescaped(match: "re.Match[bytes]") -> bytes:
    code = match.group(1)
    if code[:1].isdigit():
        return bytes([int(code, 8) & 0xFF])
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    return _LETTERS.get(code, code)


def entry(name: str) -> str:
    """Returns the contents of the file that name one checkpoint, the latest."""
    escaped = "".join(_escaped(byte) for byte in os.fsencode(name))
    return f'model_checkpoint_path: "{escaped}"\nall_model_checkpoint_paths: "{escaped}"\n'


def _escaped(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
