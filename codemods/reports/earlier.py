"""Recognizes the reports of earlier runs, the only files with content that a report replaces."""

from __future__ import annotations

import os
import re

from ..files.directories import Directory

__all__ = ["ends_of", "is_report"]

_LOOKED_AT = 4096
"""How many bytes at each end of a file are compared."""

_JSON = re.compile(rb'\{\n  "version": 1,\n  "summary": \{"files": \d')
_SARIF = re.compile(
    rb'\{"\$schema": "[^"\s]*sarif[^"\s]*", "version": "2\.1\.0", "runs": \[\{\n'
    rb'"tool": \{"driver": \{"name": "tf-lossscale", "version"'
)
_HTML = re.compile(
    rb"<!DOCTYPE html>\s*<html[^>]*>\s*<head>\s*(?:<meta[^>]*>\s*)*"
    rb"<title>tf-lossscale migrate</title>"
)
_COUNTS = (
    rb"[\d,]+ files? checked: [\d,]+ (?:rewritten|to change), [\d,]+ failed, [\d,]+ safe, "
    rb"[\d,]+ unsafe, [\d,]+ manual"
)
_FIRST_LINE = re.compile(
    rb"[^\n]+:\d+:\d+: LS\d{3} (?:safe|unsafe|manual)\b|[^\n]+: (?:error|warning): "
    rb"|::(?:notice|warning|error) file=|target: Keras |" + _COUNTS
)
_LAST_LINES = re.compile(rb"(?:\A|\n)" + _COUNTS + rb"\n(?:[^\n]+\n){0,4}\Z")
"""The counts, and what can follow them."""


def is_report(data: bytes) -> bool:
    """Whether a run wrote this as a report, in any format; the two ends of a file are enough.

    The formats `json`, `sarif` and `html` are known by their beginning, `text` and `github` by
    their first line and their last lines.
    """
    start = data[:_LOOKED_AT]
    if any(form.match(start) for form in (_JSON, _SARIF, _HTML)):
        return True
    return bool(_FIRST_LINE.match(start) and _LAST_LINES.search(data[-_LOOKED_AT:]))


def ends_of(directory: Directory, name: str) -> bytes:
    """The beginning and the end of the file `name`, which can be large; all of a small file.

    Raises:
      OSError: if it cannot be read.
    """
    with open(directory.open(name, os.O_RDONLY), "rb") as file:
        start = file.read(_LOOKED_AT)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _LOOKED_AT, len(start)))
        return start + file.read()
