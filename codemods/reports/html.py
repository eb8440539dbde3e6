"""A self-contained HTML page: counts, filters, each finding, and the diff of each file."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterable, Iterator
from html import escape
from typing import TextIO

from ..files.printable import quoted, visible
from ..model import Finding, Safety
from ..rules.codes import codes
from ..run.results import FileOutcome, Summary

__all__ = ["write"]

_PAGE = os.path.join(os.path.dirname(__file__), "page.html")


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Fills in the page. Reads the outcomes twice: for the filters, then for the findings."""
    kinds: collections.Counter[str] = collections.Counter()
    used: collections.Counter[str] = collections.Counter()
    totals: collections.Counter[tuple[str, str]] = collections.Counter()
    for outcome in outcomes:
        kinds.update(finding.outcome.value for finding in outcome.findings)
        used.update(finding.code for finding in outcome.findings)
        totals.update((finding.code, finding.outcome.value) for finding in outcome.findings)
        kinds["error"] += (outcome.error or outcome.warning) is not None
    parts = {
        "ABOUT": _about(summary),
        "SUMMARY": _summary(summary),
        "TOTALS": _totals(totals),
        "FILTERS": _filters(kinds, used),
        "PLACES": (part for outcome in outcomes for part in _file(outcome)),
        "RULES": _rules(used),
    }
    with open(_PAGE, encoding="utf-8") as page:
        for line in page:
            name = line.strip()[len("<!--") : -len("-->")]
            if line.startswith("<!--") and name in parts:
                stream.writelines(parts[name])
            else:
                stream.write(line)


def _summary(summary: Summary) -> Iterator[str]:
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
    for one in summary.keras.warnings:
        place = f"{quoted(one.path)}:{one.line}"
        yield f'<p class="manual">{escape(place)}: {escape(visible(one.message))}</p>\n'


def _about(summary: Summary) -> Iterator[str]:
    yield '<dl class="about">\n'
    for name, words in summary.about.items():
        shown = f"<code>{escape(words)}</code>" if name == "Command" else escape(words)
        yield f"<div><dt>{escape(name)}</dt><dd>{shown}</dd></div>\n"
    yield "</dl>\n"


def _totals(totals: collections.Counter[tuple[str, str]]) -> Iterator[str]:
    """A table with the counts of each rule."""
    if not totals:
        return
    kinds = [safety.value for safety in Safety]
    words = {code.code: code.words for code in codes()}
    yield '<details class="totals"><summary>Totals by rule</summary>\n<table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in ("rule", *kinds, "what"))
    yield "</tr></thead>\n<tbody>\n"
    for code in sorted({code for code, _ in totals}):
        counts = "".join(f"<td>{totals[code, kind]:,}</td>" for kind in kinds)
        name = escape(code)
        link = f'<a href="#{name}">{name}</a>' if code in words else name
        yield f'<tr><th scope="row">{link}</th>{counts}'
        yield f"<td>{escape(words.get(code, ''))}</td></tr>\n"
    yield "</tbody>\n</table>\n</details>\n"


def _filters(kinds: collections.Counter[str], used: collections.Counter[str]) -> Iterator[str]:
    yield '<form class="filters" aria-label="Filter the findings">\n'
    yield "<fieldset><legend>Outcome</legend>\n"
    for kind in ("safe", "unsafe", "manual", "error"):
        box = f'<input type="checkbox" name="outcome" value="{kind}" checked>'
        yield f'<label class="{kind}">{box} {kind} ({kinds[kind]})</label>\n'
    yield '</fieldset>\n<label>Rule <select name="rule"><option value="">all</option>\n'
    words = {code.code: code.words for code in codes()}
    for code, count in sorted(used.items()):
        label = f"{code} {words.get(code, '')} ({count})"
        yield f'<option value="{escape(code)}">{escape(label)}</option>\n'
    yield "</select></label>\n"
    yield '<label>Path <input type="search" name="path" placeholder="part of a path"></label>\n'
    yield '<button type="button" data-open>Open all</button>\n'
    yield '<button type="button" data-close>Close all</button>\n'
    yield '<output aria-live="polite"></output>\n</form>\n'


def _file(outcome: FileOutcome) -> Iterator[str]:
    problem = outcome.error or outcome.warning
    if not outcome.findings and problem is None:
        return
    path = escape(outcome.path if outcome.path.isprintable() else quoted(outcome.path))
    yield f'<section data-path="{path}">\n<h2><code>{path}</code></h2>\n'
    if problem is not None:
        where = f"line {problem.line}" if problem.line else "file"
        kind = "error" if outcome.error else "warning"
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
    outcome = finding.outcome.value
    label = f"{outcome}, {finding.remark}" if finding.remark else outcome
    yield f'<details class="place" data-outcome="{outcome}" data-code="{escape(finding.code)}">\n'
    place = f"{finding.line}:{finding.column}"
    if finding.cell is not None:
        place = f"cell {finding.cell}, {finding.cell_line}:{finding.column}"
    yield f'<summary><span class="at">{place}</span> '
    yield f'<span class="tag {outcome}">{escape(finding.code)} {label}</span> '
    yield f"<code>{escape(finding.symbol)}</code>: {escape(visible(finding.message))}</summary>\n"
    if finding.text:
        yield f'<pre tabindex="0"><span>{escape(finding.text)}</span></pre>\n'
    about = f'<a href="#{escape(finding.code)}">About {escape(finding.code)}</a>'
    yield f'<p class="message">{about}</p>\n</details>\n'


def _rules(used: collections.Counter[str]) -> Iterator[str]:
    listed = [code for code in codes() if used[code.code]]
    if listed:
        yield "<section>\n<h2>Rules</h2>\n"
        for code in listed:
            yield f'<details id="{code.code}"><summary><span class="tag">{code.code}</span> '
            yield f"{escape(code.words)}</summary>\n"
            yield f'<pre class="words">{escape(code.text)}</pre>\n</details>\n'
        yield "</section>\n"
