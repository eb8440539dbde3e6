"""A self-contained HTML page: counts, filters, each finding, and the diff of each file."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterable, Iterator
from html import escape
from typing import TextIO

from ..files.printable import quoted, visible
from ..model import Finding, Safety
from ..rules.codes import Code, codes
from ..run.results import FileOutcome, Summary
from .text import problem_line

__all__ = ["write"]

_KINDS = tuple(safety.value for safety in Safety)
_Counts = collections.Counter[tuple[str, str]]
"""How many findings have a code and an outcome, and how many errors there are."""

_PAGE = os.path.join(os.path.dirname(__file__), "page.html")


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Fills in the page. Reads the outcomes twice: for the filters, then for the findings."""
    counts = _Counts()
    for outcome in outcomes:
        counts.update((finding.code, finding.outcome.value) for finding in outcome.findings)
        counts["", "error"] += len(outcome.problems)
    parts = {
        "ABOUT": _about(summary),
        "SUMMARY": _summary(summary),
        "FILTERS": _filters(counts),
        "PLACES": (part for outcome in outcomes for part in _file(outcome)),
        "RULES": _rules(counts),
    }
    with open(_PAGE, encoding="utf-8") as page:
        for line in page:
            name = line.strip()[len("<!--") : -len("-->")]
            if line.startswith("<!--") and name in parts:
                stream.writelines(parts[name])
            else:
                stream.write(line)


def _summary(summary: Summary) -> Iterator[str]:
    """Yields the counts of the run, which Keras it was for, and why."""
    yield '<dl class="counts">\n'
    names = {
        "files": "files checked",
        "changed": "changed" if summary.wrote else "to change",
        "other_contrib": "with other uses of tf.contrib",
    }
    for name, count in summary.as_dict().items():
        yield f"<div><dt>{names.get(name, name)}</dt><dd>{count:,}</dd></div>\n"
    yield "</dl>\n"
    yield f"<p>{escape(visible(summary.keras.words))}</p>\n"
    for warning in summary.keras.warnings:
        yield f'<p class="manual">{escape(problem_line("warning", warning))}</p>\n'


def _about(summary: Summary) -> Iterator[str]:
    yield '<dl class="about">\n'
    for name, words in summary.about.items():
        shown = f"<code>{escape(words)}</code>" if name == "Command" else escape(words)
        yield f"<div><dt>{escape(name)}</dt><dd>{shown}</dd></div>\n"
    yield "</dl>\n"


def _filters(counts: _Counts) -> Iterator[str]:
    """Yields the form by whose boxes, list and field the script of the page hides findings."""
    yield '<form class="filters" aria-label="Filter the findings">\n'
    yield "<fieldset><legend>Outcome</legend>\n"
    for kind in (*_KINDS, "error"):
        count = sum(counts[key] for key in counts if key[1] == kind)
        box = f'<input type="checkbox" name="outcome" value="{kind}" checked>'
        yield f'<label class="{kind}">{box} {kind} ({count})</label>\n'
    yield '</fieldset>\n<label>Rule <select name="rule"><option value="">all</option>\n'
    for code in _used(counts):
        yield f'<option value="{code.code}">{escape(f"{code.code} {code.words}")}</option>\n'
    yield "</select></label>\n"
    yield '<label>Path <input type="search" name="path" placeholder="part of a path"></label>\n'
    yield '<button type="button" data-open>Open all</button>\n'
    yield '<button type="button" data-close>Close all</button>\n'
    yield '<output aria-live="polite"></output>\n</form>\n'


def _file(outcome: FileOutcome) -> Iterator[str]:
    """Yields the section of a file with its problems, findings and diff; none for a clean file."""
    if not outcome.findings and not outcome.problems:
        return
    path = escape(outcome.path if outcome.path.isprintable() else quoted(outcome.path))
    yield f'<section data-path="{path}">\n<h2><code>{path}</code></h2>\n'
    for kind, problem in outcome.problems:
        where = f"line {problem.line}" if problem.line else "file"
        yield '<details class="place" data-outcome="error" data-code="" open>\n'
        yield f'<summary><span class="at">{where}</span> <span class="tag error">{kind}</span> '
        yield f"{escape(visible(problem.message))}</summary>\n</details>\n"
    for finding in outcome.findings:
        yield from _place(finding)
    if outcome.diff:
        yield '<details><summary>Diff</summary>\n<pre tabindex="0">'
        for line in outcome.diff.decode("utf-8", "replace").rstrip("\n").split("\n"):
            kind = {"-": "old", "+": "new"}.get(line[:1], "same")
            yield f'<span class="{kind}">{escape(line)}</span>'
        yield "</pre>\n</details>\n"
    yield "</section>\n"


def _place(finding: Finding) -> Iterator[str]:
    """Yields one finding with its line; the attributes `data-*` are those that the filters read."""
    outcome = finding.outcome.value
    label = f"{outcome}, {finding.remark}" if finding.remark else outcome
    yield f'<details class="place" data-outcome="{outcome}" data-code="{escape(finding.code)}">\n'
    place = f"{finding.line}:{finding.column}"
    if finding.cell is not None:
        place = f"cell {finding.cell}, {finding.cell_line}:{finding.column}"
    yield f'<summary><span class="at">{place}</span> '
    yield f'<span class="tag {outcome}">{escape(finding.code)} {label}</span> '
    yield f"<code>{escape(finding.symbol)}</code>: {_sentence(finding.message)}</summary>\n"
    if finding.text:
        yield f'<pre tabindex="0"><span>{escape(finding.text)}</span></pre>\n'
    about = f'<a href="#{escape(finding.code)}">About {escape(finding.code)}</a>'
    yield f'<p class="message">{about}</p>\n</details>\n'


def _sentence(message: str) -> str:
    """The message as HTML; in it, code stands between backticks."""
    parts = escape(visible(message)).split("`")
    if len(parts) % 2 == 0:  # one of them is part of a name
        return "`".join(parts)
    parts[1::2] = [f"<code>{code}</code>" for code in parts[1::2]]
    return "".join(parts)


def _rules(counts: _Counts) -> Iterator[str]:
    """What the rules do whose codes are in the report, each with its counts."""
    used = _used(counts)
    if used:
        yield "<section>\n<h2>Rules</h2>\n"
        for code in used:
            kinds = (kind for kind in _KINDS if counts[code.code, kind])
            total = ", ".join(f"{counts[code.code, kind]:,} {kind}" for kind in kinds)
            yield f'<details id="{code.code}"><summary><span class="tag">{code.code}</span> '
            yield f"{escape(code.words)}: {total}</summary>\n"
            yield f'<pre class="words">{escape(code.text)}</pre>\n</details>\n'
        yield "</section>\n"


def _used(counts: _Counts) -> list[Code]:
    found = {code for code, _ in counts}
    return [code for code in codes() if code.code in found]
