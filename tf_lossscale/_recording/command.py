"""`tf-lossscale compare`."""

import argparse
import json
import sys
from typing import List, Optional

from tf_lossscale._arguments import ArgumentParser
from tf_lossscale._recording.comparing import (
    Comparison,
    Tolerances,
    compare,
    measured,
)
from tf_lossscale._recording.page import page
from tf_lossscale._recording.reading import Record, RecordError, read_record
from tf_lossscale._recording.summary import as_values, text

__all__ = ["main"]

_EPILOG = """\
exit status: 0 the runs are the same or alike, 1 they are different or too short to judge, 2 they
cannot be compared.
"""


def main(argv: List[str], prog: str = "tf-lossscale") -> int:
    """Runs `compare` and returns the exit status."""
    parser = ArgumentParser(
        prog=f"{prog} compare",
        description="Compares two recorded runs: whether the new one did what the old one did.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", help="record of the run that is right")
    parser.add_argument("new", metavar="NEW", help="record of the run to judge")
    parser.add_argument(
        "--baseline",
        metavar="OLD2",
        help="record of a second run of the old program: what varies between OLD and OLD2 counts "
        "as equal",
    )
    parser.add_argument(
        "--loss-tolerance",
        type=_positive,
        metavar="X",
        help="relative difference up to which losses are equal before a skip differs (default: "
        f"{Tolerances().early_loss:g} in the first steps, then {Tolerances().loss:g})",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with charts of both runs")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON")
    options = parser.parse_args(argv)
    try:
        old, new = read_record(options.old), read_record(options.new)
        baseline = read_record(options.baseline) if options.baseline else None
        found = _compare(old, new, baseline, options.loss_tolerance)
        values = {
            "old": options.old,
            "new": options.new,
            "optimizers": [as_values(each, number) for number, each in enumerate(found)],
        }
        if options.json:
            _write(options.json, json.dumps(values, indent=1) + "\n")
        if options.html:
            _write(options.html, page(found, options.old, options.new))
    except RecordError as error:
        print(f"{prog} compare: {error}", file=sys.stderr)
        return 2
    for note in [*old.notes, *new.notes]:
        print(f"note: {note}")
    for number, each in enumerate(found):
        title = f"Optimizer {number} ({old.optimizers[number].cls}):" if len(found) > 1 else ""
        print(text(each, title), end="" if number == len(found) - 1 else "\n")
    return max(each.verdict.status for each in found)


def _compare(
    old: Record, new: Record, baseline: Optional[Record], loss_tolerance: Optional[float]
) -> List[Comparison]:
    for other, name in ((new, "new"), (baseline, "baseline")):
        if other is not None and len(other.optimizers) != len(old.optimizers):
            raise RecordError(
                f"The runs cannot be compared: the old one has {len(old.optimizers)} loss-scale "
                f"optimizers, and the {name} one has {len(other.optimizers)}."
            )
    found = []
    for number, (mine, theirs) in enumerate(zip(old.optimizers, new.optimizers)):
        limits = Tolerances()
        if loss_tolerance is not None:
            limits = Tolerances(loss_tolerance, loss_tolerance, loss_tolerance)
        if baseline is not None:
            limits = limits.widened(measured(mine, baseline.optimizers[number]))
        found.append(compare(mine, theirs, limits))
    return found


def _positive(value: str) -> float:
    number = float(value)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is not a number of at least 0")
    return number


def _write(path: str, content: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise RecordError(f"{path} cannot be written: {error.strerror or error}.") from None
