"""Writes a comparison as one HTML file: loss, scale, norm and skipped steps of both runs."""

import html
import math
from typing import Callable, List, Optional, Sequence, Tuple

from tf_lossscale._recording.comparing import Comparison, Verdict
from tf_lossscale._recording.record import OptimizerRecord
from tf_lossscale._recording.summary import table

__all__ = ["page"]

_WIDTH, _HEIGHT = 960, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 12, 26
_BUCKETS = 480
"""For longer runs, only the smallest and the largest value of each bucket of steps are drawn."""

_STYLE = """
:root { --back: #fff; --text: #1c2024; --faint: #868e96; --line: #dee2e6; --old: #0b6bcb;
        --new: #d9480f; --part: #c92a2a; --good: #2b8a3e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16181c; --text: #e9ecef; --faint: #909296; --line: #343a40; --old: #74b3f5;
          --new: #ff922b; --part: #ff8787; --good: #69db7c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 16px 64px; max-width: 1000px; background: var(--back);
       color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 32px 0 4px; }
h3 { font-size: 14px; margin: 20px 0 0; }
.verdict { border-left: 4px solid var(--part); padding: 8px 12px; font-size: 17px; }
.verdict.ok { border-color: var(--good); }
.key span { margin-right: 20px; } .key i { display: inline-block; width: 22px; height: 3px;
       vertical-align: middle; margin-right: 6px; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--faint); font: 11px system-ui, sans-serif; }
svg { overflow: visible; }
@media (max-width: 640px) { svg text { font-size: 17px; } }
.grid { stroke: var(--line); } .old { stroke: var(--old); } .new { stroke: var(--new); }
.part { stroke: var(--part); stroke-dasharray: 4 3; }
path { fill: none; stroke-width: 1.4; } .new { stroke-dasharray: 5 3; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font: 13px ui-monospace, monospace; }
th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid var(--line);
         white-space: nowrap; }
tr.here td { color: var(--part); font-weight: 600; }
"""


def page(comparisons: Sequence[Comparison], old: str, new: str) -> str:
    """Returns the page.

    Args:
      comparisons: one for each optimizer.
      old: name of the old record.
      new: name of the new record.
    """
    parts = [
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{_escape(old)} and {_escape(new)}</title><style>{_STYLE}</style></head><body>",
        "<h1>Two recorded runs</h1>",
        "<p class='key'><span><i style='background:var(--old)'></i>old: ",
        f"{_escape(old)}</span><span><i style='background:var(--new)'></i>new: {_escape(new)}",
        "</span></p>",
    ]
    for number, comparison in enumerate(comparisons):
        if len(comparisons) > 1:
            parts.append(f"<h2>Optimizer {number}</h2>")
        parts += _section(comparison)
    return "".join([*parts, "</body></html>\n"])


def _section(comparison: Comparison) -> List[str]:
    ok = " ok" if comparison.verdict in (Verdict.IDENTICAL, Verdict.SAME, Verdict.ALIKE) else ""
    parts = [f"<p class='verdict{ok}'>{_escape(comparison.sentence)}</p><ul>"]
    parts += [f"<li>{_escape(each)}</li>" for each in comparison.evidence]
    parts.append("</ul>")
    aligned = comparison.aligned
    if aligned is not None:
        runs = (aligned.old, aligned.new)
        step = comparison.step
        parts += ["<h3>Loss</h3>", _chart(runs, "loss", step, _same, _plain)]
        parts += ["<h3>Loss scale</h3>", _chart(runs, "scales", step, _log2, _power_of_2)]
        if any(each is not None for run in runs for each in run.norm):
            parts += ["<h3>Gradient norm</h3>", _chart(runs, "norm", step, _log10, _power_of_10)]
        parts += ["<h3>Skipped steps</h3>", _skips(runs, step)]
    rows = table(comparison)
    if rows:
        parts.append("<h3>Around the first divergence</h3><div class='scroll'><table><tr>")
        parts += [f"<th>{_escape(each)}</th>" for each in rows[0]] + ["</tr>"]
        for row in rows[1:]:
            parts.append("<tr class='here'>" if row[0].startswith(">") else "<tr>")
            parts += [f"<td>{_escape(each)}</td>" for each in row] + ["</tr>"]
        parts.append("</table></div>")
    return parts


def _escape(value: str) -> str:
    return html.escape(value, quote=True)


def _same(value: float) -> float:
    return value


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else math.nan


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else math.nan


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _power_of_2(value: float) -> str:
    return f"{2.0**value:.4g}"


def _power_of_10(value: float) -> str:
    return f"{10.0**value:.2g}"


_Runs = Tuple[OptimizerRecord, OptimizerRecord]


def _range(runs: _Runs) -> Tuple[int, int]:
    return min(run.steps[0] for run in runs), max(run.steps[-1] for run in runs)


def _x(step: float, first: int, last: int) -> float:
    return _LEFT + (step - first) / max(last - first, 1) * (_WIDTH - _LEFT - _RIGHT)


def _points(
    run: OptimizerRecord, name: str, transform: Callable[[float], float]
) -> List[Tuple[int, float]]:
    points = []
    for step, value in zip(run.steps, getattr(run, name)):
        if value is not None and math.isfinite(value):
            changed = transform(value)
            if math.isfinite(changed):
                points.append((step, changed))
    return _thinned(points)


def _thinned(points: List[Tuple[int, float]]) -> List[Tuple[int, float]]:
    size = len(points) / _BUCKETS
    if size <= 2:
        return points
    thin: List[Tuple[int, float]] = []
    for bucket in range(_BUCKETS):
        part = points[int(bucket * size) : int((bucket + 1) * size)]
        low = min(part, key=lambda point: point[1])
        high = max(part, key=lambda point: point[1])
        thin += sorted({low, high})
    return thin


def _chart(
    runs: _Runs,
    name: str,
    step: Optional[int],
    transform: Callable[[float], float],
    label: Callable[[float], str],
) -> str:
    lines = [_points(run, name, transform) for run in runs]
    values = [value for line in lines for _, value in line]
    if not values:
        return "<p>not recorded</p>"
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-30):
        low, high = low - 0.5, high + 0.5
    first, last = _range(runs)

    def y(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_frame(first, last, step, name)]
    for part in range(5):
        value = low + (high - low) * part / 4
        parts.append(
            f"<line class='grid' x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y(value):.1f}' "
            f"y2='{y(value):.1f}'/><text x='{_LEFT - 8}' y='{y(value) + 4:.1f}' "
            f"text-anchor='end'>{label(value)}</text>"
        )
    for line, which in zip(lines, ("old", "new")):
        path = " ".join(f"{_x(at, first, last):.1f},{y(value):.1f}" for at, value in line)
        if path:
            parts.append(f"<path class='{which}' d='M{path}'/>")
    return "".join([*parts, "</svg>"])


def _frame(first: int, last: int, step: Optional[int], name: str, height: int = _HEIGHT) -> str:
    parts = [f"<svg viewBox='0 0 {_WIDTH} {height}' role='img' aria-label='{name} over the steps'>"]
    for part in range(5):
        at = first + (last - first) * part / 4
        anchor = "start" if part == 0 else "end" if part == 4 else "middle"
        parts.append(
            f"<text x='{_x(at, first, last):.1f}' y='{height - 8}' text-anchor='{anchor}'>"
            f"{at:.0f}</text>"
        )
    if step is not None:
        x = f"{_x(step, first, last):.1f}"
        parts.append(f"<line class='part' x1='{x}' x2='{x}' y1='2' y2='{height - _BOTTOM}'/>")
    return "".join(parts)


def _skips(runs: _Runs, step: Optional[int]) -> str:
    first, last = _range(runs)
    parts = [_frame(first, last, step, "skipped steps", 84)]
    for row, (run, which) in enumerate(zip(runs, ("old", "new"))):
        skipped = [at for at, finite in zip(run.steps, run.finite) if finite is False]
        # One mark for each place on the page is enough.
        places = sorted({f"{_x(at, first, last):.0f}" for at in skipped}, key=float)
        marks = "".join(f"M{x},{10 + 24 * row}v16" for x in places)
        parts.append(
            f"<text x='{_LEFT - 8}' y='{22 + 24 * row}' text-anchor='end'>{which}: "
            f"{len(skipped)}</text>"
        )
        if marks:
            parts.append(f"<path class='{which}' style='stroke-dasharray:none' d='{marks}'/>")
    return "".join([*parts, "</svg>"])
