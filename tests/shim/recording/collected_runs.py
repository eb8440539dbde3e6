"""The recorded runs of `tests/data/records`, correct ones and ones with a mistake, compared.

They are small programs of many kinds (`tests/data/recorders/various_programs.py`), and some of them
were not looked at while the limits of `compare` were chosen.
"""

import functools
import gzip
import json
import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from tf_lossscale._recording.comparing import Comparison, Conditions, compare, equal_conditions
from tf_lossscale._recording.record import (
    OptimizerRecord,
    RunHeader,
    ScaleParameters,
    fields_from,
)

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "..", "..", "data", "records")
HELD_OUT = ("contrib_residual", "v1_attention", "keras_lstm", "fit_conv", "keras_auto")
VERSIONS = ("1.15", "2.4", "2.15", "2.21")
MISTAKES = {
    "rate": "learning rate 1.1 times as large",
    "momentum": "momentum lost",
    "settings": "beta 2 of 0.9, decay of 0.99, Nesterov",
    "twice": "gradients unscaled twice",
    "scaled": "gradients not unscaled",
    "sum": "sum over 4 parts, not their mean",
    "half": "gradients of half of the batch lost",
    "part": "half of the batch lost",
    "clip": "clipped at a third of the norm",
    "frozen": "a variable not trained",
    "order": "other order of the data",
    "late": "other order from step 70 on",
    "weights": "other initial weights",
    "period": "scale grows twice as often",
    "fixed": "fixed scale, not dynamic",
    "schedule": "learning rate does not fall at step 90",
    "restart": "slots lost at step 110",
    "decay": "weight decay lost",
}
REAL_DIFFERENCES = [("fit_words", "2.4", "2.21"), ("fit_words", "2.15", "2.21")]
"""Keras 3 updates the rows of an embedding in another way: in float32, too, by 0.001 in a step."""


class Program(NamedTuple):
    """A recorded run."""

    header: RunHeader
    runs: List[OptimizerRecord]


@functools.lru_cache(maxsize=None)
def collection(name: str) -> Dict[str, Program]:
    """Returns the runs of a collection by `PROGRAM-MISTAKE`."""
    with gzip.open(os.path.join(RECORDS, name + ".json.gz"), "rt", encoding="utf-8") as file:
        found = json.load(file)
    return {
        key: Program(header_of(each["header"]), [run_of(run) for run in each["runs"]])
        for key, each in found.items()
    }


def header_of(packed: Dict) -> RunHeader:
    """Returns the header that `collect.py` packed."""
    return RunHeader(**fields_from(RunHeader, packed))


def run_of(packed: Dict) -> OptimizerRecord:
    """Returns the run that `collect.py` packed."""
    flags = {"1": True, "0": False, "?": None}
    shapes = packed["shapes"]
    return OptimizerRecord(
        cls=packed["class"],
        scale=ScaleParameters(**packed["scale"]),
        names=[f"variable {number}" for number in range(len(shapes))],
        shapes=shapes,
        initial_weights=packed["initial_weights"] or None,
        steps=list(range(len(packed["loss"]))),
        finite=[flags[each] for each in packed["finite"]],
        applied=[flags[each] for each in packed["applied"]],
        **{name: packed[name] for name in ("loss", "scales", "norm", "bad")},
    )


def first_steps(run: OptimizerRecord, count: int) -> OptimizerRecord:
    """Returns the first steps of a run."""
    columns = ("steps", "loss", "scales", "finite", "applied", "norm", "bad")
    found = {name: getattr(run, name)[:count] for name in columns}
    return OptimizerRecord(run.cls, run.scale, run.names, run.shapes, run.initial_weights, **found)


def compared(old: Program, new: Program, baseline: Optional[Program] = None) -> Comparison:
    """Returns the comparison of the optimizer that differs first."""
    found = []
    for number, (mine, theirs) in enumerate(zip(old.runs, new.runs)):
        count = min(len(mine.steps), len(theirs.steps))
        second = None if baseline is None else baseline.runs[number]
        conditions = Conditions(equal_conditions(old.header, new.header), second)
        runs = (first_steps(each, count) for each in (mine, theirs))
        found.append(compare(*runs, conditions))
    return max(found, key=lambda each: (each.verdict.value[0] == "different", -(each.step or 0)))


def correct_pairs() -> List[Tuple[str, str, str]]:
    """Returns each program with two versions that it was recorded on."""
    return [
        (key.split("-")[0], old, new)
        for number, old in enumerate(VERSIONS)
        for new in VERSIONS[number + 1 :]
        for key in collection(f"right-{old}")
        if key in collection(f"right-{new}")
    ]


def with_effect(mistake: str) -> Dict[str, Program]:
    """Returns the runs with a mistake by program, without those whose numbers it does not change.

    A clipping norm that no gradient reaches, for example.
    """
    found = {}
    for key, program in collection("mistakes-2.21").items():
        name, which = key.split("-")
        right = collection("right-2.21")[f"{name}-none"]
        same = all(
            one.loss[: len(other.loss)] == other.loss and one.norm[: len(other.norm)] == other.norm
            for one, other in zip(right.runs, program.runs)
        )
        if which == mistake and (mistake in ("fixed", "period") or not same):
            found[name] = program
    return found


def reference(key: str) -> Program:
    """Returns the correct run of a program on the oldest version."""
    name = key.split("-")[0] + "-none"
    files = [collection(f"right-{each}") for each in VERSIONS]
    return next(file[name] for file in files if name in file)
