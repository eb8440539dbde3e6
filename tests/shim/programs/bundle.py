"""The bundle of programs and what the originals made of them, as recorded."""

import gzip
import hashlib
import json
import os
from typing import Any, Dict, List

from processes import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "tests", "data", "programs")


def read_programs(name: str = "bundle") -> List[Dict[str, Any]]:
    """The programs of the `bundle`; the `files`, programs of several files; or the `guards`."""
    path = os.path.join(FOLDER, name + ".jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as packed:
        return [json.loads(line) for line in packed]


def key_of_files(files: Dict[str, str]) -> str:
    """What a result of several files is filed under."""
    return key_of(json.dumps(files, sort_keys=True))


def key_of(source: str) -> str:
    """What a result is filed under: the program's text, so that no stale one is ever found."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def read_recorded(prefix: str = "") -> Dict[str, Dict[str, Any]]:
    """Results of the original programs by key, of every TensorFlow that recorded some.

    With the prefix `files-`, those of programs of several files.
    """
    found = {}  # type: Dict[str, Dict[str, Any]]
    for name in sorted(os.listdir(FOLDER)):
        if name.startswith(prefix + "recorded-"):
            with gzip.open(os.path.join(FOLDER, name), "rt", encoding="utf-8") as packed:
                found.update(json.load(packed))
    return found


def write_recorded(version: str, results: Dict[str, Dict[str, Any]], prefix: str = "") -> None:
    """Files the results that one TensorFlow gave."""
    path = os.path.join(FOLDER, f"{prefix}recorded-{version}.json.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        text = json.dumps(results, sort_keys=True)
        packed.write(text.encode())
