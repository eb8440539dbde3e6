"""The recorded runs of `tests/data/records`, correct ones and ones with a mistake, compared.

They are small programs of many kinds (`tests/data/recorders/various_programs.py`).
"""

import dataclasses
import functools
import gzip
import json
import os
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._compare.comparing import compare, equal_conditions, in_order_of
from tf_lossscale._compare.judgements import Comparison, Verdict
from tf_lossscale._compare.runs import Again, Conditions
from tf_lossscale._records.format import (
    COLUMNS,
    DESCRIPTIONS,
    OptimizerRecord,
    RunHeader,
    ScaleParameters,
    fields_from,
)

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "..", "..", "data", "records")
VERSIONS = ("1.15", "2.3", "2.8", "2.21")
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
DISTURBED = ("1.15", "2.3", "2.8")
"""Of these versions, each correct run was recorded five times more, disturbed."""
ALL, TWO = (1, 2, 3, 4, 5), (1, 2)
"""The numbers of the disturbed runs: those of `record --disturb 5`, and of `--disturb 2`."""


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
        key: Program(header_of(content["header"]), [run_of(run) for run in content["runs"]])
        for key, content in found.items()
    }


def header_of(packed: Dict) -> RunHeader:
    """Returns the header that `collect.py` packed."""
    return RunHeader(**fields_from(RunHeader, packed))


def run_of(packed: Dict) -> OptimizerRecord:
    """Returns the run that `collect.py` packed."""
    flags = {"1": True, "0": False, "?": None}
    shapes, count = packed["shapes"], len(packed["applied"])
    values = {column.name: packed.get(column.name, [None] * count) for column in COLUMNS}
    for name in ("finite", "applied"):
        values[name] = [flags[flag] for flag in values[name]]
    return OptimizerRecord(
        cls=packed["class"],
        scale=ScaleParameters(**packed["scale"]),
        names=[f"variable {number}" for number in range(len(shapes))],
        shapes=shapes,
        initial_weights=packed["initial_weights"] or None,
        settings=packed["settings"],
        norms=packed["norms"] or None,
        steps=list(range(count)),
        **{name: packed[name] for name in DESCRIPTIONS},
        **values,
    )


def some_steps(run: OptimizerRecord, end: int) -> OptimizerRecord:
    """Returns the steps of a run up to one."""
    columns = ("steps", *(column.name for column in COLUMNS))
    found = {name: getattr(run, name)[:end] for name in columns}
    return dataclasses.replace(run, gaps=[], **found)


def compared(old: Program, new: Program, again: Sequence[Program] = ()) -> Comparison:
    """Returns the comparison of the optimizer that differs first."""
    are_equal = equal_conditions(old.header, new.header)
    found = []
    ordered = [in_order_of(old.runs, other.runs) for other in again]
    for number, (mine, theirs) in enumerate(zip(old.runs, in_order_of(old.runs, new.runs))):
        count = min(len(mine.steps), len(theirs.steps))
        others = [
            Again(some_steps(runs[number], count), other.header.disturbed.scale != 1.0)
            for runs, other in zip(ordered, again)
        ]
        runs = [some_steps(run, count) for run in (mine, theirs)]
        found.append(compare(*runs, Conditions(are_equal, others)))
    return max(found, key=lambda result: (result.verdict is Verdict.DIFFERENT, -(result.step or 0)))


def correct(key: str, version: str) -> Optional[Program]:
    """Returns a correct run on a version; None if it is not recorded."""
    return collection(f"right-{version}").get(key)


def disturbed(name: str, version: str, numbers: Sequence[int]) -> List[Program]:
    """Returns the disturbed runs of a correct program."""
    return disturbed_runs(f"right-{version}", name, numbers)


def disturbed_runs(source: str, name: str, numbers: Sequence[int]) -> List[Program]:
    """Returns the disturbed runs of a program in a collection."""
    return [collection(source)[f"{name}-none#{number}"] for number in numbers]


def correct_pairs() -> List[Tuple[str, str, str]]:
    """Returns each program that was recorded on two versions, with the versions."""
    return [
        (key.partition("-")[0], old, new)
        for number, old in enumerate(DISTURBED)
        for new in VERSIONS[number + 1 :]
        for key in collection(f"right-{old}")
        if "#" not in key and correct(key, new)
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
            run.loss[: len(other.loss)] == other.loss and run.norm[: len(other.norm)] == other.norm
            for run, other in zip(right.runs, program.runs)
        )
        if which == mistake and (mistake in ("fixed", "period") or not same):
            found[name] = program
    return found


def oldest_version(name: str) -> Optional[str]:
    """Returns the oldest version that a program was recorded on; None if it has no other."""
    return next((version for version in DISTURBED if correct(f"{name}-none", version)), None)


class Family(NamedTuple):
    """Collections of programs that were written after the rules were fixed.

    They are called `NAME-VERSION`, from the oldest version on, and `NAME-mistakes-2.21`.
    """

    name: str
    versions: Tuple[str, ...]

    def right(self, version: str) -> Dict[str, Program]:
        """Returns the correct runs on a version."""
        return collection(f"{self.name}-{version}")

    def old_runs(self) -> Iterator[Tuple[str, str]]:
        """Yields each correct run that has disturbed runs: its program and version."""
        for version in self.versions:
            for key in self.right(version):
                if key.endswith("-none#1"):
                    yield key.partition("-")[0], version

    def pairs(self) -> Iterator[Tuple[str, str, str, str]]:
        """Yields each correct pair: the program, both versions, and the key of the new run."""
        for name, old in self.old_runs():
            for new in self.versions[self.versions.index(old) + 1 :]:
                for key in self.right(new):
                    if "#" not in key and key.partition("-")[0].partition("@")[0] == name:
                        yield name, old, new, key

    @functools.lru_cache(maxsize=None)  # noqa: B019 - there are two of them
    def correct(self, numbers: Sequence[int]) -> Dict[Tuple[str, str, str, str], Comparison]:
        """Returns what is found about correct pairs."""
        return {
            (name, old, new, key): self._compared(name, old, self.right(new)[key], numbers)
            for name, old, new, key in self.pairs()
        }

    @functools.lru_cache(maxsize=None)  # noqa: B019 - likewise
    def wrong(self, numbers: Sequence[int]) -> Dict[Tuple[str, str, str], Comparison]:
        """Returns what is found about runs with a mistake, by program, mistake and old version."""
        mistakes = collection(f"{self.name}-mistakes-2.21").items()
        return {
            (name, key.partition("-")[2], old): self._compared(name, old, program, numbers)
            for name, old in self.old_runs()
            for key, program in mistakes
            if key.partition("-")[0] == name
        }

    def _compared(self, name: str, old: str, new: Program, numbers: Sequence[int]) -> Comparison:
        again = disturbed_runs(f"{self.name}-{old}", name, numbers)
        return compared(self.right(old)[f"{name}-none"], new, again)
