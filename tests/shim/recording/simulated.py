"""Records of simulated runs: a quadratic loss, gradients with noise, overflows at large scales.

The numbers are those of a real loop (losses, norms and skips follow from the weights), made with
the standard library only, so that mistakes of every kind can be put in deliberately.
"""

import dataclasses
import math
import random
from typing import List, Optional

from tf_lossscale._records.format import OptimizerRecord, ScaleParameters

SIZE = 8
LARGEST = 65504.0  # of float16


@dataclasses.dataclass
class Run:
    """The parameters of a run; the defaults are those of a correct program."""

    steps: int = 1000
    rate: float = 0.02
    rule: str = "dynamic"
    initial_scale: float = 4096.0
    growth_steps: int = 20
    growth_factor: float = 2.0
    shrink_steps: int = 1
    shrink_factor: float = 0.5
    weights: int = 1
    data: int = 1
    rounding: float = 0.0
    kernel: int = 0
    """What makes rounding another one, as disturbed weights do."""
    clip: Optional[float] = None
    norm_factor: float = 1.0
    norm_by_scale: int = 0
    obeyed: Optional[int] = None
    """The growth steps that the run has, if not those that it declares."""
    known_weights: bool = True
    disturbed: int = 0
    """The seed of a small change of the weights, by 2^-11 of each."""
    scale_factor: float = 1.0
    """What the initial scale is multiplied by, although the run declares another one."""
    changes_rate_at: int = 10**9
    """From this step on, the rate is half as large, which is recorded if `knows_rate`."""
    knows_rate: bool = True
    updates: float = math.inf
    """The run ends after so many steps that are not skipped, as with `StopAtStepHook`."""


def record(run: Run) -> OptimizerRecord:
    """Returns the record of a simulated run."""
    parameters = ScaleParameters(
        run.rule,
        run.initial_scale,
        run.growth_steps,
        run.growth_factor,
        run.shrink_steps,
        run.shrink_factor,
    )
    found = OptimizerRecord("Simulated", parameters, ["weights"], [[SIZE]])
    found.initial_weights = f"hash of {run.weights}" if run.known_weights else None
    start = random.Random(run.weights)
    weights = [start.gauss(0, 3) for _ in range(SIZE)]
    if run.disturbed:
        change = random.Random(run.disturbed)
        weights = [weight * (1 + 2.0**-11 * change.gauss(0, 1)) for weight in weights]
        found.initial_weights = f"hash of {run.weights}, disturbed"
    data, noise = random.Random(run.data), random.Random(99 + run.kernel + 7 * run.disturbed)
    scale, good, bad = run.initial_scale * run.scale_factor, 0, 0
    growth_steps = run.obeyed or run.growth_steps
    for step in range(run.steps):
        if sum(found.applied) == run.updates:
            break
        target = [data.gauss(0, 1) for _ in range(SIZE)]
        loss = sum((w - t) ** 2 for w, t in zip(weights, target)) / SIZE
        gradients: List[float] = [2 * (w - t) / SIZE for w, t in zip(weights, target)]
        gradients = [g * (1 + run.rounding * noise.uniform(-1, 1)) for g in gradients]
        finite = max(map(abs, gradients)) * scale <= LARGEST
        norm = math.sqrt(sum(g * g for g in gradients)) if finite else math.inf
        shown = norm * run.norm_factor * scale**run.norm_by_scale
        rate = run.rate * (0.5 if step >= run.changes_rate_at else 1.0)
        found.add(
            step,
            loss=loss,
            scales=scale,
            finite=finite,
            applied=finite,
            norm=shown if run.clip is None or not finite else min(shown, run.clip),
            unscaled_norm=shown,
            bad=None if finite else 0,
            rate=rate if run.knows_rate else None,
        )
        if not finite:
            good, bad = 0, bad + 1
            if bad >= run.shrink_steps:
                scale, bad = max(scale * run.shrink_factor, 1.0), 0
            continue
        if run.clip is not None and norm > run.clip:
            gradients = [g * run.clip / norm for g in gradients]
        weights = [w - rate * g for w, g in zip(weights, gradients)]
        good += 1
        if good >= growth_steps:
            scale, good, bad = scale * run.growth_factor, 0, 0
    return found
