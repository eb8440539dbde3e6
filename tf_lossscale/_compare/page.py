"""Writes a comparison as one HTML file: loss, scale, norm and skipped steps of both runs.

The lines are drawings that are stretched to the width of the page. The numbers beside them are text
of the page, so that they stay readable on a narrow one.
"""

import math
import os
import string
from html import escape
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._compare.comparing import Comparison
from tf_lossscale._records.format import OptimizerRecord

_BUCKETS = 480
"""For longer runs, only the smallest and the largest value of each bucket of steps are drawn."""
_PERCENTILE, _SPIKE = 0.99, 0.5
"""A linear axis ends at this percentile if the rest would add so much of its length, or more."""
_ZOOM = 25
"""How many steps on each side of the one where the runs part are drawn by themselves."""
_PAGE = os.path.join(os.path.dirname(__file__), "page.html")
_Points = List[Tuple[int, float]]


class _Kind(NamedTuple):
    """A chart of one column, and the logarithm of its axis if that is not linear."""

    title: str
    name: str
    log: Optional[Callable[[float], float]] = None


_CHARTS = (
    _Kind("Loss", "loss"),
    _Kind("Loss scale", "scales", math.log2),
    _Kind("Gradient norm", "norm", math.log10),
)


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
    body = "".join([*links, "</ul>", *parts] if summary else parts)
    with open(_PAGE, encoding="utf-8") as file:
        text = string.Template(file.read())
    return text.substitute(old=escape(old), new=escape(new), body=body)


class _Span(NamedTuple):
    """The steps that are drawn, and the one where the runs part."""

    first: int
    last: int
    step: Optional[int]

    def x(self, step: float) -> float:
        return 1000 * (step - self.first) / max(self.last - self.first, 1)


def _section(comparison: Comparison) -> List[str]:
    ok = "" if comparison.verdict.status else " ok"
    parts = [f"<p class='verdict{ok}'>{escape(comparison.sentence)}</p><ul>"]
    parts += [f"<li>{escape(each)}</li>" for each in comparison.evidence]
    parts.append("</ul>")
    if comparison.runs is None:
        return parts
    step = comparison.step
    runs = [run for _, run in comparison.runs.both]
    first, last = min(run.steps[0] for run in runs), max(run.steps[-1] for run in runs)
    whole = _Span(first, last, step)
    if step is not None:
        parts.append(f"<h3>Around step {step}</h3><div class='scroll'><table><tr>")
        head, *rows = comparison.table()
        parts += [f"<th>{escape(each)}</th>" for each in head] + ["</tr>"]
        for row in rows:
            parts.append("<tr class='here'>" if row[0].startswith(">") else "<tr>")
            parts += [f"<td>{escape(each)}</td>" for each in row] + ["</tr>"]
        parts.append("</table></div>")
    for kind in _CHARTS:
        if kind.name == "norm" and all(each is None for run in runs for each in run.norm):
            continue
        parts += [f"<h3>{kind.title}</h3>", _chart(runs, kind, whole)]
        if step is not None and last - first > 4 * _ZOOM and kind.name != "scales":
            near = _Span(max(first, step - _ZOOM), min(last, step + _ZOOM), step)
            title = f"<h3>{kind.title}, steps {near.first} to {near.last}</h3>"
            parts += [title, _chart(runs, kind, near)]
    return [*parts, "<h3>Skipped steps</h3>", _skips(runs, whole)]


def _points(run: OptimizerRecord, kind: _Kind, span: _Span) -> _Points:
    return [
        (step, kind.log(value) if kind.log else value)
        for step, value in zip(run.steps, getattr(run, kind.name))
        if span.first <= step <= span.last
        and value is not None
        and math.isfinite(value)
        and (value > 0 or not kind.log)
    ]


def _thinned(points: _Points) -> _Points:
    size = len(points) / _BUCKETS
    if size <= 2:
        return points
    thin: _Points = []
    for bucket in range(_BUCKETS):
        part = points[int(bucket * size) : int((bucket + 1) * size)]
        thin += sorted({choose(part, key=lambda point: point[1]) for choose in (min, max)})
    return thin


def _label(kind: _Kind, value: float) -> str:
    if kind.log is math.log2:
        return f"2<sup>{value:.3g}</sup>"
    return f"{10.0**value:.2g}" if kind.log else f"{value:.4g}"


def _chart(runs: List[OptimizerRecord], kind: _Kind, span: _Span) -> str:
    lines = [_points(run, kind, span) for run in runs]
    values = sorted(value for line in lines for _, value in line)
    if not values:
        return "<p>not recorded</p>"
    low, high = (values[0], values[-1]) if kind.log else _without_spikes(values)
    if kind.log is math.log2:
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
        ticks = [float(each) for each in range(int(low), int(high) + 1, 1 + int(high - low) // 6)]
    else:
        if high - low < 1e-9 * max(abs(low), abs(high), 1e-30):
            low, high = low - 0.5, high + 0.5
        ticks = [low + (high - low) * part / 4 for part in range(5)]

    def y(value: float) -> float:
        return 100 * (high - min(max(value, low), high)) / (high - low)

    parts, labels = [], []
    for value in ticks:
        at = y(value)
        parts.append(f"<line class='grid' x1='0' x2='1000' y1='{at:.2f}' y2='{at:.2f}'/>")
        labels.append(f"<span class='y' style='top:{at:.2f}%'>{_label(kind, value)}</span>")
    for line, which in zip(lines, ("old", "new")):
        path = " ".join(f"{span.x(at):.1f},{y(value):.2f}" for at, value in _thinned(line))
        if path:
            parts.append(f"<path class='{which}' d='M{path}'/>")
    above = [at for line in lines for at, value in line if value > high]
    below = [at for line in lines for at, value in line if value < low]
    for steps, mark, text in (
        (above, "0v-5", f"<span class='cut'>&#9650; {len(above)} above, up to {values[-1]:.3g}"),
        (below, "100v5", f"<span class='cut below'>&#9660; {len(below)} below, to {values[0]:.3g}"),
    ):
        if steps:
            marks = "".join(f"M{span.x(at):.1f},{mark}" for at in sorted(set(steps))[:_BUCKETS])
            parts.append(f"<path style='stroke:var(--part)' d='{marks}'/>")
            labels.append(f"{text}</span>")
    return _framed(parts, labels, kind.title, span, "chart")


def _without_spikes(values: List[float]) -> Tuple[float, float]:
    """Returns the ends of a linear axis for sorted values, which a few of them do not flatten."""
    last = len(values) - 1
    place = int(_PERCENTILE * last)
    low, high = values[last - place], values[place]
    length = high - low
    ends = low - 0.05 * length, high + 0.05 * length
    return (
        ends[0] if low - values[0] > _SPIKE * length > 0 else values[0],
        ends[1] if values[-1] - high > _SPIKE * length > 0 else values[-1],
    )


def _framed(parts: List[str], labels: List[str], title: str, span: _Span, style: str) -> str:
    """Returns a drawing with the numbers of the steps below it, and the step where runs part."""
    if span.step is not None:
        x = f"{span.x(span.step):.1f}"
        parts.append(f"<line class='part' x1='{x}' x2='{x}' y1='0' y2='100'/>")
    for part, shift in ((0, 0), (0.5, -50), (1, -100)):
        labels.append(
            f"<span class='x' style='left:{100 * part:g}%;transform:translateX({shift}%)'>"
            f"{span.first + (span.last - span.first) * part:.0f}</span>"
        )
    return (
        f"<div class='{style}'><svg viewBox='0 0 1000 100' preserveAspectRatio='none' role='img' "
        f"aria-label='{title} over the steps'>{''.join(parts)}</svg>{''.join(labels)}</div>"
    )


def _skips(runs: List[OptimizerRecord], span: _Span) -> str:
    parts, labels = [], []
    for row, (run, which) in enumerate(zip(runs, ("old", "new"))):
        skipped = [at for at, finite in zip(run.steps, run.finite) if finite is False]
        # One mark for each place on the page is enough.
        places = sorted({round(span.x(at)) for at in skipped})
        marks = "".join(f"M{place},{10 + 50 * row}v32" for place in places)
        count = f"{which}: {len(skipped)}"
        labels.append(f"<span class='y' style='top:{26 + 50 * row}%'>{count}</span>")
        if marks:
            parts.append(f"<path class='{which}' d='{marks}'/>")
    return _framed(parts, labels, "Skipped steps", span, "chart low")
