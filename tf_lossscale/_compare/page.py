"""Writes a comparison as one HTML file: loss, scale, norm and skipped steps of both runs."""

from html import escape
from typing import List, Sequence, Tuple

from tf_lossscale._compare import rendering
from tf_lossscale._compare.judgements import Comparison
from tf_lossscale._records import charts

_ZOOM = 25
"""How many steps on each side of the one where the runs part are drawn by themselves."""


def page(comparisons: Sequence[Tuple[str, Comparison]], old: str, new: str, first_line: str) -> str:
    """Returns the page of two records with these names: titles and comparisons of optimizers."""
    is_ok = not any(comparison.verdict.status for _, comparison in comparisons)
    body = [f"<p class='verdict{' ok' if is_ok else ''}'>{escape(first_line)}</p>"]
    if len(comparisons) == 1:
        body += _section(comparisons[0][1])
    else:
        body.append("<ul>")
        for number, (title, comparison) in enumerate(comparisons):
            link = f"<a href='#{number}'>{escape(title)}</a>"
            body.append(f"<li>{link}: {comparison.verdict.value[0]}</li>")
        body.append("</ul>")
        for number, (title, comparison) in enumerate(comparisons):
            body += [f"<h2 id='{number}'>{escape(title)}</h2>", _verdict(comparison)]
            body += _section(comparison)
    key = charts.key_of([("old", f"old: {old}"), ("new", f"new: {new}")])
    return charts.document(f"{old} and {new}", "Two recorded runs", key, body)


def _verdict(comparison: Comparison) -> str:
    ok = "" if comparison.verdict.status else " ok"
    return f"<p class='verdict{ok}'>{escape(rendering.sentence(comparison))}</p>"


def _section(comparison: Comparison) -> List[str]:
    """Returns the part of the page about one optimizer: advice, reasons, table and charts.

    If the runs differ at a step, charts around it come before those of the whole runs, unless these
    are hardly longer.
    """
    reasons = [f"<li>{escape(reason)}</li>" for reason in rendering.evidence(comparison)]
    advice = rendering.advice(comparison)
    parts = [f"<p>next: {escape(advice)}</p>"] if advice else []
    parts += ["<ul>", *reasons, "</ul>"]
    if comparison.runs is None:
        return parts
    lines = [charts.Line(name, run, name) for name, run in comparison.runs.both]
    step = comparison.step
    whole = charts.whole(lines, step)
    if step is not None:
        parts += _table(step, rendering.table(comparison))
        if whole.last - whole.first > 4 * _ZOOM:
            near = charts.Span(max(whole.first, step - _ZOOM), min(whole.last, step + _ZOOM), step)
            for kind in (charts.LOSS, charts.NORM):
                parts += charts.chart(kind, lines, near)
    return [*parts, *charts.of_runs(lines, whole)]


def _table(step: int, rows: Sequence[Sequence[str]]) -> List[str]:
    head, *body = rows
    parts = [f"<h3>Around step {step}</h3><div class='scroll'><table><tr>"]
    parts += [f"<th>{escape(cell)}</th>" for cell in head] + ["</tr>"]
    for row in body:
        parts.append("<tr class='here'>" if row[0].startswith(">") else "<tr>")
        parts += [f"<td>{escape(cell)}</td>" for cell in row] + ["</tr>"]
    return [*parts, "</table></div>"]
