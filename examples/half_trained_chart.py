"""Draws the loss of a run that was stopped on Keras 2 and continued on Keras 3, as SVG.

    python examples/half_trained_chart.py     # writes docs/half-trained.svg from recorded losses

The program is `guide-half-trained`. Needs nothing but Python.
"""

import json
import math
import os
from typing import Dict, NamedTuple

from loss_scale_chart import COLORS, GRAY, HERE, LEFT, RIGHT, STYLE, WIDTH, line, text

RECORDED = os.path.join(HERE, "traces", "half_trained.json")
PICTURE = os.path.join(os.path.dirname(HERE), "docs", "half-trained.svg")
TOP, BOTTOM, STOPPED = 76, 300, 100
"""Where the axes begin and end, and the step after which the first run was stopped."""


class Curve(NamedTuple):
    """A run in the picture: its key in the recorded losses, its name, and how it is drawn."""

    key: str
    name: str
    color: str
    opacity: float
    width: int


CURVES = (
    Curve("whole", "TensorFlow 2.3, not stopped", COLORS[0], 0.5, 7),
    Curve("continued", "stopped at step 100, continued on TensorFlow 2.21", COLORS[1], 1.0, 2),
    Curve("weights only", "only the weights restored: the optimizer starts again", GRAY, 0.8, 2),
)


def chart(losses: Dict[str, Dict[int, float]]) -> str:
    """Returns an SVG element, with the losses on a logarithmic scale."""
    last = max(losses["whole"])
    values = [loss for run in losses.values() for loss in run.values()]
    low, high = math.log10(min(values)), math.log10(max(values))

    def x(step: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(loss: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (math.log10(loss) - low) / (high - low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {BOTTOM + 40}" '
        f'role="img" font-family="sans-serif" font-size="13" fill="{GRAY}" '
        f'style="{STYLE}">',
        "<title>The loss of a run that continues on Keras 3</title>",
    ]
    for loss in (0.02, 0.05, 0.1, 0.2, 0.5):
        lines.append(line([(LEFT, y(loss)), (WIDTH - RIGHT, y(loss))], GRAY, 0.15))
        lines.append(text(LEFT - 6, y(loss) + 4, str(loss), anchor="end"))
    lines.append(line([(x(STOPPED), TOP), (x(STOPPED), BOTTOM)], GRAY, 0.6))
    for number, curve in enumerate(CURVES):
        points = [(x(step), y(loss)) for step, loss in losses[curve.key].items()]
        lines.append(line(points, curve.color, curve.opacity, curve.width))
        height = 16 + 20 * number
        lines.append(
            line([(LEFT, height), (LEFT + 24, height)], curve.color, curve.opacity, curve.width)
        )
        lines.append(text(LEFT + 32, height + 4, curve.name))
    lines.append(line([(LEFT, BOTTOM), (WIDTH - RIGHT, BOTTOM)], GRAY, 0.6))
    lines += [text(x(step), BOTTOM + 18, str(step), anchor="middle") for step in range(0, 201, 50)]
    lines.append(text(WIDTH - RIGHT, BOTTOM + 34, "step", anchor="end"))
    lines.append(text(LEFT, BOTTOM + 34, "loss"))
    return "\n".join([*lines, "</svg>"]) + "\n"


def recorded() -> Dict[str, Dict[int, float]]:
    """Returns the recorded losses of each run, by step."""
    with open(RECORDED, encoding="utf-8") as file:
        runs = json.load(file)
    return {
        name: {int(step): loss for step, loss in run["loss"].items()} for name, run in runs.items()
    }


if __name__ == "__main__":
    with open(PICTURE, "w", encoding="utf-8") as picture:
        picture.write(chart(recorded()))
