"""The bundle of programs and what the originals made of them, as recorded."""

import gzip
import hashlib
import json
import os
from typing import Any, Dict, List

from processes import REPOSITORY

__all__ = [
    "FOLDER",
    "key_of",
    "key_of_files",
    "read_files",
    "read_programs",
    "read_recorded",
    "read_recorded_files",
    "write_recorded",
]

FOLDER = os.environ.get("TFLS_PROGRAMS") or os.path.join(REPOSITORY, "tests", "data", "programs")


def read_programs() -> List[Dict[str, Any]]:
    """The lines of the bundle, in order."""
    with gzip.open(os.path.join(FOLDER, "bundle.jsonl.gz"), "rt", encoding="utf-8") as packed:
        return [json.loads(line) for line in packed]


def read_files() -> List[Dict[str, Any]]:
    """The programs of several files, in order."""
    with gzip.open(os.path.join(FOLDER, "files.jsonl.gz"), "rt", encoding="utf-8") as packed:
        return [json.loads(line) for line in packed]


def key_of_files(files: Dict[str, str]) -> str:
    """What a result of several files is filed under."""
    return key_of(json.dumps(files, sort_keys=True))


def read_recorded_files() -> Dict[str, Dict[str, Any]]:
    """Results of the original programs of several files, by `key_of_files`."""
    found = {}  # type: Dict[str, Dict[str, Any]]
    for name in sorted(os.listdir(FOLDER)):
        if name.startswith("files-recorded-"):
            with gzip.open(os.path.join(FOLDER, name), "rt", encoding="utf-8") as packed:
                found.update(json.load(packed))
    return found


def key_of(source: str) -> str:
    """What a result is filed under: the program's text, so that no stale one is ever found."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def read_recorded() -> Dict[str, Dict[str, Any]]:
    """Results of the original programs by `key_of`, of every TensorFlow that recorded some."""
    found = {}  # type: Dict[str, Dict[str, Any]]
    for name in sorted(os.listdir(FOLDER)):
        if name.startswith("recorded-"):
            with gzip.open(os.path.join(FOLDER, name), "rt", encoding="utf-8") as packed:
                found.update(json.load(packed))
    return found


def write_recorded(version: str, results: Dict[str, Dict[str, Any]], prefix: str = "") -> None:
    """Files the results that one TensorFlow gave."""
    path = os.path.join(FOLDER, f"{prefix}recorded-{version}.json.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        text = json.dumps(results, sort_keys=True)
        packed.write(text.encode())
