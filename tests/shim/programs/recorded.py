"""What the original classes made of the programs, as recorded on old versions of TensorFlow."""

import os
from typing import Any, Dict

from programs.texts import FOLDER, read_packed, write_packed


def read_recorded(prefix: str = "") -> Dict[str, Dict[str, Any]]:
    """Results of the original programs by key, of every TensorFlow that recorded some.

    With the prefix `files-`, those of programs of several files.
    """
    found = {}  # type: Dict[str, Dict[str, Any]]
    for name in sorted(os.listdir(FOLDER)):
        if name.startswith(prefix + "recorded-"):
            found.update(read_packed(name))
    return found


def write_recorded(version: str, results: Dict[str, Dict[str, Any]], prefix: str = ""):
    """Files the results that one TensorFlow gave."""
    write_packed(f"{prefix}recorded-{version}.json.gz", results)
