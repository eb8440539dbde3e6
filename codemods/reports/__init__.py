"""The forms in which a run is told. Each writes from the outcomes, in order, to a text stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple, Optional, TextIO

from ..outcome import FileOutcome, Summary
from . import github, html, json_, sarif, text

__all__ = ["FORMATS", "Report", "parse"]

Writer = Callable[[Iterable[FileOutcome], Summary, TextIO], None]

FORMATS: dict[str, Writer] = {
    "text": text.write,
    "json": json_.write,
    "sarif": sarif.write,
    "github": github.write,
    "html": html.write,
}


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
