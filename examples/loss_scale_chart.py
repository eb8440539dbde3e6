"""Draws the loss scale of training runs over their steps, with the skipped steps, as SVG.

    python examples/loss_scale_chart.py     # writes docs/loss-scale.svg from a recorded run

`make demo` draws each run of an original class and the run of the migrated code in one chart. Needs
nothing but Python.
"""

import html
import json
import math
import os
from typing import Any, Dict, List, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "traces", "digits_keras.jsonl")
PICTURE = os.path.join(os.path.dirname(HERE), "docs", "loss-scale.svg")

WIDTH, LEFT, RIGHT, TOP, HEIGHT, ROW = 720, 44, 16, 62, 190, 18
"""In pixels: of the picture, around the axes, of the axes, and of a row of skipped steps."""
COLORS = ("#f08c00", "#4263eb")
"""Of the first run and of the second one."""
GRAY = "#5c636a"
"""Of text and axes. No gray can be read on white and on black: the background is white."""
STYLE = "width: 100%; height: auto; background: #fff"


class Run(NamedTuple):
    """What is drawn of a run.

    Attributes:
      name: what the legend calls it.
      scales: the loss scale of each step.
      skipped: the numbers of the skipped steps.
    """

    name: str
    scales: List[float]
    skipped: List[int]


def read_record(path: str) -> "tuple[str, List[Dict[str, Any]]]":
    """Returns the TensorFlow version and the steps of a record with one optimizer."""
    with open(path) as file:
        header, *others = [json.loads(line) for line in file]
    return header["tensorflow"], [row for row in others if "step" in row]


def run_of(name: str, steps: Sequence[Dict[str, Any]]) -> Run:
    """The run whose record has these steps."""
    skipped = [number for number, step in enumerate(steps) if not step["applied"]]
    return Run(name, [step["scale"] for step in steps], skipped)


def chart(title: str, runs: Sequence[Run]) -> str:
    """Returns an SVG element without empty lines, for light and dark pages."""
    count = max(len(run.scales) for run in runs)
    powers = [math.log2(scale) for run in runs for scale in run.scales]
    low, high = math.floor(min(powers)) - 1, math.ceil(max(powers)) + 1
    bottom = TOP + HEIGHT

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / count

    def y(power: float) -> float:
        return bottom - HEIGHT * (power - low) / (high - low)

    height = bottom + ROW * len(runs) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" font-family="sans-serif" font-size="13" fill="{GRAY}" '
        f'style="{STYLE}">',
        f"<title>{html.escape(title)}</title>",
        text(LEFT, 20, title, size=15),
    ]
    for power in range(low, high + 1, 2 if high - low < 12 else 4):
        lines.append(line([(LEFT, y(power)), (WIDTH - RIGHT, y(power))], GRAY, 0.15))
        lines.append(
            f'<text x="{LEFT - 8}" y="{y(power) + 4:.1f}" text-anchor="end">2'
            f'<tspan dy="-5" font-size="10">{power}</tspan></text>'
        )
    for number, run in enumerate(runs):
        # The first run is wide, so that it can be seen below an equal second one.
        width = 2 if len(runs) == 1 or number else 7
        points = []
        for step, scale in enumerate(run.scales):
            points += [(x(step), y(math.log2(scale))), (x(step + 1), y(math.log2(scale)))]
        color = COLORS[number] if len(runs) > 1 else COLORS[1]
        opacity = 1.0 if width == 2 else 0.5
        lines.append(line(points, color, opacity, width))
        middle = bottom + ROW * (number + 0.5)
        for step in run.skipped:
            lines.append(
                f'<circle cx="{x(step + 0.5):.1f}" cy="{middle:.1f}" r="4" fill="{color}"/>'
            )
        across = LEFT + 400 * number
        lines.append(
            line([(across, 38), (across + 24, 38)], color, 0.6 + 0.4 * (width == 2), width)
        )
        label = f"{run.name}: {len(run.skipped)} of {len(run.scales)} steps skipped"
        lines.append(text(across + 32, 42, label))
    axis = bottom + ROW * len(runs)
    lines.append(line([(LEFT, axis), (WIDTH - RIGHT, axis)], GRAY, 0.6))
    for step in range(0, count + 1, 20 if count <= 200 else 100):
        lines.append(text(x(step), axis + 18, str(step), anchor="middle"))
    lines.append(text(WIDTH - RIGHT, axis + 34, "step", anchor="end"))
    lines.append(text(LEFT, axis + 34, "dots: skipped steps"))
    return "\n".join([*lines, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "start") -> str:
    escaped = html.escape(words)
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escaped}</text>'
    )


def line(
    points: Sequence["tuple[float, float]"], color: str, opacity: float, width: int = 1
) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{color}" '
        f'stroke-opacity="{opacity}" stroke-width="{width}"/>'
    )


def of_a_recorded_run() -> str:
    """The picture of the documentation: a run of the original class, begun with a high scale."""
    version, steps = read_record(RECORDED)
    title = f"The loss scale of a run with TensorFlow {version}"
    return chart(title, [run_of("this run", steps)])


if __name__ == "__main__":
    with open(PICTURE, "w") as file:
        file.write(of_a_recorded_run())
    print(PICTURE)
