"""The recorded runs of `tests/data/records`, correct ones and ones with a mistake, compared.

They are small programs of many kinds (`tests/data/recorders/various_programs.py`), and some of them
were not looked at while the limits of `compare` were chosen.
"""

import dataclasses
import functools
import gzip
import json
import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from tf_lossscale._compare.comparing import Comparison, Conditions, compare, equal_conditions
from tf_lossscale._compare.runs import Runs
from tf_lossscale._records.format import (
    COLUMNS,
    OptimizerRecord,
    RunHeader,
    ScaleParameters,
    fields_from,
)

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "..", "..", "data", "records")
HELD_OUT = ("v1_noise", "keras_noise", "keras_steps", "fit_wide", "fit_stride")
VERSIONS = ("1.15", "2.4", "2.8", "2.15", "2.21")
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
NEW_COLUMNS = ("bad_count", "unscaled_norm", "rate", "replica_norms")
OTHER_RUNS = ("weights", "order")
"""Mistakes that make another correct run where both runs have them."""


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
        settings=packed["settings"],
        steps=list(range(len(packed["loss"]))),
        finite=[flags[each] for each in packed["finite"]],
        applied=[flags[each] for each in packed["applied"]],
        **{name: packed[name] for name in ("loss", "scales", "norm", "bad")},
        **{name: [None] * len(packed["loss"]) for name in NEW_COLUMNS},
    )


def some_steps(run: OptimizerRecord, end: int, first: int = 0) -> OptimizerRecord:
    """Returns the steps of a run up to one, or those between two."""
    columns = ("steps", *(each.name for each in COLUMNS))
    found = {name: getattr(run, name)[first:end] for name in columns}
    return dataclasses.replace(run, gaps=[], **found)


def compared(old: Program, new: Program, baseline: Optional[Program] = None) -> Comparison:
    """Returns the comparison of the optimizer that differs first."""
    found = []
    for number, (mine, theirs) in enumerate(zip(old.runs, new.runs)):
        count = min(len(mine.steps), len(theirs.steps))
        second = None if baseline is None else baseline.runs[number]
        conditions = Conditions(equal_conditions(old.header, new.header), second)
        runs = (some_steps(each, count) for each in (mine, theirs))
        found.append(compare(*runs, conditions))
    return max(found, key=lambda each: (each.verdict.value[0] == "different", -(each.step or 0)))


def correct(key: str, version: str) -> Optional[Program]:
    """Returns a correct run on a version; None if it is not recorded."""
    found = collection(f"right-{version}").get(key)
    if found is None and version == "2.21" and key.split("-")[1] in OTHER_RUNS:
        found = collection("mistakes-2.21").get(key)
    return found


def correct_pairs() -> List[Tuple[str, str, str]]:
    """Returns each run that was recorded on two versions, with the versions."""
    return [
        (key, old, new)
        for number, old in enumerate(VERSIONS)
        for new in VERSIONS[number + 1 :]
        for key in collection(f"right-{old}")
        if correct(key, new)
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


def times_the_noise(name: str, program: Program) -> float:
    """Returns how much larger a mistake makes the mean difference than rounding does."""
    old, right = reference(name), collection("right-2.21")[name + "-none"]
    found = []
    for column in ("loss", "norm"):
        sizes = []
        for new in (right, program):
            count = min(len(run.steps) for run in program.runs)
            pairs = (
                Runs(*(some_steps(each, count) for each in both))
                for both in zip(old.runs, new.runs)
            )
            errors = [abs(e) for pair in pairs for e in pair.differences(column) if e is not None]
            sizes.append(sum(errors) / len(errors) if errors else 0.0)
        if sizes[0]:
            found.append(sizes[1] / sizes[0])
    return max(found)
