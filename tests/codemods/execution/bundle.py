"""The programs of the proof with their migrations, in files that every environment reads.

TensorFlow 1.15 needs Python 3.7 and the codemods need 3.9, so migrating and running cannot happen
in one interpreter. The bundles are the bridge; `test_bundle.py` fails when the rules have moved on.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from collections.abc import Iterable
from typing import Any

BUNDLES = ("bundle", "guards", "files")
"""Programs of one file, those with a version guard, and those of several files."""

_FOLDER = pathlib.Path(__file__).resolve().parents[2] / "data" / "programs"


def read(name: str) -> list[dict[str, Any]]:
    """The lines of a bundle, one for each program."""
    with gzip.open(_FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as packed:
        return [json.loads(line) for line in packed]


def write(name: str, lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
    path = _FOLDER / f"{name}.jsonl.gz"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.encode())
