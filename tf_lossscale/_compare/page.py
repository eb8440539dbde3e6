"""Writes a comparison as one HTML file: loss, scale, norm and skipped steps of both runs."""

from html import escape
from typing import List, Sequence, Tuple

from tf_lossscale._compare.comparing import Comparison
from tf_lossscale._records import charts

_ZOOM = 25
"""How many steps on each side of the one where the runs part are drawn by themselves."""


def page(
    comparisons: Sequence[Tuple[str, Comparison]], old: str, new: str, summary: str = ""
) -> str:
    """Returns the page of two records with these names: titles and comparisons of optimizers."""
    links, parts = [f"<p class='verdict'>{escape(summary)}</p><ul>"], []
    for number, (title, comparison) in enumerate(comparisons):
        name = escape(title)
        links.append(f"<li><a href='#{number}'>{name}</a>: {comparison.verdict.value[0]}</li>")
        parts += [f"<h2 id='{number}'>{name}</h2>"] if summary else []
        parts += _section(comparison)
    body = [*links, "</ul>", *parts] if summary else parts
    key = charts.key_of([("old", f"old: {old}"), ("new", f"new: {new}")])
    return charts.document(f"{old} and {new}", "Two recorded runs", key, body)


def _section(comparison: Comparison) -> List[str]:
    ok = "" if comparison.verdict.status else " ok"
    parts = [f"<p class='verdict{ok}'>{escape(comparison.sentence)}</p><ul>"]
    parts += [f"<li>{escape(reason)}</li>" for reason in comparison.evidence]
    parts.append("</ul>")
    if comparison.runs is None:
        return parts
    lines = [charts.Line(name, run, name) for name, run in comparison.runs.both]
    step = comparison.step
    whole = charts.whole(lines, step)
    if step is not None:
        parts += _table(step, comparison.table())
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
