"""Draws the columns of recorded runs: pages of one HTML file, without anything from elsewhere.

The lines are drawings that are stretched to the width of the page. The numbers beside them are text
of the page, so that they stay readable on a narrow one.
"""

import math
import os
import string
from html import escape
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._records.format import OptimizerRecord

_BUCKETS = 480
"""For longer runs, only the smallest and the largest value of each bucket of steps are drawn."""
_PERCENTILE, _SPIKE = 0.99, 0.5
"""A linear axis ends at this percentile if the rest would add so much of its length, or more."""
_PAGE = os.path.join(os.path.dirname(__file__), "page.html")
_Points = List[Tuple[int, float]]


class Kind(NamedTuple):
    """A chart of one column, and the logarithm of its axis if that is not linear."""

    title: str
    name: str
    log: Optional[Callable[[float], float]] = None


LOSS = Kind("Loss", "loss")
SCALE = Kind("Loss scale", "scales", math.log2)
NORM = Kind("Gradient norm", "norm", math.log10)


class Line(NamedTuple):
    """A run, what the page calls it, and the style of its line: `old` or `new`."""

    name: str
    run: OptimizerRecord
    style: str


class Span(NamedTuple):
    """The steps that are drawn, and one of them that is marked, if any."""

    first: int
    last: int
    step: Optional[int] = None

    def x(self, step: float) -> float:
        return 1000 * (step - self.first) / max(self.last - self.first, 1)


def whole(lines: Sequence[Line], step: Optional[int] = None) -> Span:
    """Returns the span of all steps of all runs."""
    first = min(line.run.steps[0] for line in lines)
    return Span(first, max(line.run.steps[-1] for line in lines), step)


def document(title: str, heading: str, key: str, body: Sequence[str]) -> str:
    """Returns a page; the key explains its lines, and like the body it is HTML."""
    with open(_PAGE, encoding="utf-8") as file:
        text = string.Template(file.read())
    return text.substitute(
        title=escape(title), heading=escape(heading), key=key, body="".join(body)
    )


def key_of(lines: Sequence[Tuple[str, str]]) -> str:
    """Returns what explains the lines of a page: their styles and texts."""
    return "<p class='key'>{}</p>".format(
        " ".join(f"<span class='{style}'><i></i>{escape(text)}</span>" for style, text in lines)
    )


def chart(kind: Kind, lines: Sequence[Line], span: Span) -> List[str]:
    """Returns a chart with its title; nothing if no run has its column."""
    series = [_points(line.run, kind, span) for line in lines]
    values = sorted(value for points in series for _, value in points)
    if not values:
        return []
    axis = _Axis.of(kind, values)
    parts, labels = axis.grid()
    for points, line in zip(series, lines):
        path = " ".join(f"{span.x(at):.1f},{axis.y(value):.2f}" for at, value in _thinned(points))
        if path:
            parts.append(f"<path class='{line.style}' d='M{path}'/>")
    marks, texts = axis.outside(series, span)
    title = kind.title
    if (span.first, span.last) != whole(lines)[:2]:
        title += f", steps {span.first} to {span.last}"
    drawing = _framed(parts + marks, labels + texts, kind.title, span, "chart")
    return [f"<h3>{title}</h3>", drawing]


class _Axis(NamedTuple):
    """The vertical axis of a chart. If it is linear, it leaves out spikes.

    One loss of 1e6 would press all others to the bottom; it becomes a mark at the edge, with its
    value.
    """

    kind: Kind
    low: float
    high: float
    ticks: List[float]

    @classmethod
    def of(cls, kind: Kind, values: List[float]) -> "_Axis":
        """Returns an axis for sorted values: whole powers of two, or five ticks at equal steps."""
        low, high = (values[0], values[-1]) if kind.log else _without_spikes(values)
        if kind.log is math.log2:
            first = math.floor(low)
            last = max(math.ceil(high), first + 1)
            step = 1 + (last - first) // 6  # at most seven labels
            return cls(kind, first, last, [float(tick) for tick in range(first, last + 1, step)])
        is_flat = high - low < 1e-9 * max(abs(low), abs(high), 1e-30)
        if is_flat:
            low, high = low - 0.5, high + 0.5
        return cls(kind, low, high, [low + (high - low) * part / 4 for part in range(5)])

    def y(self, value: float) -> float:
        return 100 * (self.high - min(max(value, self.low), self.high)) / (self.high - self.low)

    def grid(self) -> Tuple[List[str], List[str]]:
        """Returns the lines of the axis and their labels."""
        parts, labels = [], []
        for value, text in zip(self.ticks, self._texts()):
            at = f"{self.y(value):.2f}"
            parts.append(f"<line class='grid' x1='0' x2='1000' y1='{at}' y2='{at}'/>")
            labels.append(f"<span class='y' style='top:{at}%'>{text}</span>")
        return parts, labels

    def _texts(self) -> List[str]:
        """Returns the texts of the labels, with as many digits as tell them apart."""
        if self.kind.log is math.log2:
            return [f"2<sup>{tick:.3g}</sup>" for tick in self.ticks]
        values = [10.0**tick if self.kind.log else tick for tick in self.ticks]
        for digits in range(2 if self.kind.log else 4, 8):
            texts = [f"{value:.{digits}g}" for value in values]
            if len(set(texts)) == len(texts):
                break
        return texts

    def outside(self, series: Sequence[_Points], span: Span) -> Tuple[List[str], List[str]]:
        """Returns marks and labels for the values that the axis leaves out."""
        points = [point for line in series for point in line]
        above = [point for point in points if point[1] > self.high]
        below = [point for point in points if point[1] < self.low]
        parts, labels = [], []
        if above:
            parts.append(_marks(above, "0v-5", span))
            labels.append(
                f"<span class='cut'>&#9650; {len(above)} above, up to {_most(above)}</span>"
            )
        if below:
            parts.append(_marks(below, "100v5", span))
            text = f"&#9660; {len(below)} below, to {_least(below)}"
            labels.append(f"<span class='cut below'>{text}</span>")
        return parts, labels


def _most(points: _Points) -> str:
    return f"{max(value for _, value in points):.3g}"


def _least(points: _Points) -> str:
    return f"{min(value for _, value in points):.3g}"


def _marks(points: _Points, shape: str, span: Span) -> str:
    steps = sorted({step for step, _ in points})
    path = "".join(f"M{span.x(at):.1f},{shape}" for at in steps[:_BUCKETS])
    return f"<path style='stroke:var(--part)' d='{path}'/>"


def _points(run: OptimizerRecord, kind: Kind, span: Span) -> _Points:
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


def _framed(parts: List[str], labels: List[str], title: str, span: Span, style: str) -> str:
    """Returns a drawing with the numbers of the steps below it, and the marked step."""
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


def is_skipped(applied: Optional[bool], finite: Optional[bool]) -> bool:
    return applied is False or (applied is None and finite is False)


def is_applied_not_finite(applied: Optional[bool], finite: Optional[bool]) -> bool:
    return applied is True and finite is False


def marks(title: str, lines: Sequence[Line], span: Span, test: Callable[..., bool]) -> List[str]:
    """Returns a chart that marks the steps which pass a test; nothing if no step does."""
    found = [
        [
            step
            for step, *flags in zip(line.run.steps, line.run.applied, line.run.finite)
            if test(*flags)
        ]
        for line in lines
    ]
    if not any(found):
        return []
    parts, labels, height = [], [], 100 / len(lines)
    for row, (steps, line) in enumerate(zip(found, lines)):
        top = row * height
        # One mark for each place on the page is enough.
        places = sorted({round(span.x(step)) for step in steps})
        path = "".join(f"M{place},{top + 0.2 * height:g}v{0.6 * height:g}" for place in places)
        count = f"{line.name}: {len(steps)}" if line.name else str(len(steps))
        middle = f"{top + height / 2:g}%"
        labels.append(f"<span class='y' style='top:{middle}'>{escape(count)}</span>")
        if path:
            parts.append(f"<path class='{line.style}' d='{path}'/>")
    return [f"<h3>{title}</h3>", _framed(parts, labels, title, span, "chart low")]


def of_runs(lines: Sequence[Line], span: Span) -> List[str]:
    """Returns the charts of whole runs."""
    return [
        *(part for kind in (LOSS, SCALE, NORM) for part in chart(kind, lines, span)),
        *marks("Skipped steps", lines, span, is_skipped),
        *marks("Steps that were applied though not finite", lines, span, is_applied_not_finite),
    ]
