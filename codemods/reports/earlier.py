"""Recognizes the reports of earlier runs, the only files with content that a report replaces."""

from __future__ import annotations

import os
import re

from ..files.directories import Directory

__all__ = ["ends_of", "is_report"]

_LOOKED_AT = 64 * 1024
"""How many bytes at an end of a file are searched for what only a report has there."""
_WHOLE = 16 * 1024 * 1024
"""The largest file that is read as a whole, in bytes."""

_JSON = re.compile(
    rb'\{\n  "version": 1,\n  "summary": \{"files": \d+, "changed": \d+, "failed": \d+, '
    rb'"safe": \d+, "unsafe": \d+, "manual": \d+, "other_contrib": \d+\},\n  "keras": \{"target": '
)
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
_LAST_LINES = re.compile(
    rb"(?:\A|\n)" + _COUNTS + rb"\n(?:(?:[\d,]+ findings? in the baseline: not counted"
    rb"|the program now needs tf-lossscale where it runs: [^\n]+"
    rb"|tf\.contrib is still used in [\d,]+ files? for other things; [^\n]+"
    rb"|[\d,]+ (?:edits? can (?:be applied|change behavior): |needs? you)[^\n]*)\n)*\Z"
)
"""The counts, and what can follow them."""
_TARGET = rb"target: Keras [23] .*"
_TEXT = re.compile(
    rb".+:\d+:\d+: (?:LS\d{3} (?:safe|unsafe|manual)\b.*|the same)|.+: (?:error|warning): .*"
    rb"| *\d+(?::\d+)? \| .*| +\|  *\^+"
    rb"|code  +safe +unsafe +manual  what|LS\d{3} +[\d,]+ +[\d,]+ +[\d,]+(?:  .*)?|" + _TARGET
)
"""Matches a line of the text report before the counts: findings, errors, sources, statistics."""
_GITHUB = re.compile(rb"::(?:notice|warning|error) file=.*?,line=\d+.*?::.*|" + _TARGET)
"""Matches a line of the GitHub report before the counts."""


def is_report(data: bytes) -> bool:
    """Whether a run wrote this as a report, in any format.

    The formats `json`, `sarif` and `html` are known by their beginning, `text` and `github` by
    their last lines, and by the form of all lines before them.
    """
    start = data[:_LOOKED_AT]
    if any(form.match(start) for form in (_JSON, _SARIF, _HTML)):
        return True
    end = data[-_LOOKED_AT:]
    last = _LAST_LINES.search(end)
    if last is None:
        return False
    before = data[: len(data) - len(end) + last.start()]
    lines = before.split(b"\n") if before else []
    return any(all(map(form.fullmatch, lines)) for form in (_TEXT, _GITHUB))


def ends_of(directory: Directory, name: str) -> bytes:
    """The content of the file `name`; of a very large file, the lines at its two ends.

    Raises:
      OSError: if it cannot be read.
    """
    with open(directory.open(name, os.O_RDONLY), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= _WHOLE:
            return file.read()
        start = file.read(_WHOLE // 2)
        file.seek(size - _WHOLE // 2)
        end = file.read()
    whole_lines = start[: start.rfind(b"\n") + 1] or start
    return whole_lines + end.partition(b"\n")[2]
