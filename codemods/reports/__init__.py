"""The forms in which a run is told. Each writes from the outcomes, in order, to a text stream."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import NamedTuple, Optional, TextIO

from ..workers.results import FileOutcome, Summary

__all__ = ["FORMATS", "Report", "parse", "write"]

FORMATS = {"text": "text", "json": "json_", "sarif": "sarif", "github": "github", "html": "html"}
"""The module that writes each; imported when it is asked for, as most runs need one of them."""


class Report(NamedTuple):
    """One report that was asked for: its format, and its file; None means stdout."""

    format: str
    file: Optional[str]


def parse(value: str) -> Report:
    """`FORMAT` or `FORMAT:FILE`.

    Raises:
      ValueError: there is no such format.
    """
    name, colon, file = value.partition(":")
    if name not in FORMATS:
        raise ValueError(f"no report is called {name!r}; there are {', '.join(FORMATS)}")
    if colon and not file:
        raise ValueError(f"{value!r} names no file; write {name}:FILE, or {name} for stdout")
    return Report(name, file or None)


def write(form: str, outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes the report of one format."""
    module = importlib.import_module(f".{FORMATS[form]}", __name__)
    module.write(outcomes, summary, stream)
