"""The report formats. Each module writes the outcomes of a run, in order, to a text stream."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import NamedTuple, Optional, TextIO

from ..workers.results import FileOutcome, Summary

__all__ = ["FORMATS", "Report", "parse", "write"]

FORMATS = {"text": "text", "json": "json_", "sarif": "sarif", "github": "github", "html": "html"}
"""Maps a format to the module that writes it, which is imported on first use."""


class Report(NamedTuple):
    """A requested report: its format, and its file or None for stdout."""

    format: str
    file: Optional[str]


def parse(value: str) -> Report:
    """Parses `FORMAT` or `FORMAT:FILE`.

    Raises:
      ValueError: if the format is unknown or the file name is empty.
    """
    name, colon, file = value.partition(":")
    if name not in FORMATS:
        raise ValueError(f"unknown report format {name!r}; the formats are {', '.join(FORMATS)}")
    if colon and not file:
        raise ValueError(f"{value!r} has no file name; use {name}:FILE, or {name} for stdout")
    return Report(name, file or None)


def write(form: str, outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes a report in the given format."""
    module = importlib.import_module(f".{FORMATS[form]}", __name__)
    module.write(outcomes, summary, stream)
