"""`tf-lossscale compare`."""

import argparse
import json
import os
import sys
from typing import List, Tuple

from tf_lossscale._compare import comparing
from tf_lossscale._compare.comparing import Comparison, Conditions, Verdict
from tf_lossscale._compare.page import page
from tf_lossscale._process import ArgumentParser
from tf_lossscale._records.output import write
from tf_lossscale._records.reading import Record, RecordError, read_record


def main(argv: List[str], prog: str = "tf-lossscale") -> int:
    parser = ArgumentParser(
        prog=f"{prog} compare",
        description="Compares two recorded runs: whether the new one did what the old one did.",
        epilog="exit status: 0 the runs are the same or alike, 1 they are different or not shown "
        "to be the same\n(cut off, too short, too far apart), 2 they cannot be compared.\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", help="record of the run that is right")
    parser.add_argument("new", metavar="NEW", help="record of the run to judge")
    parser.add_argument(
        "--baseline",
        metavar="OLD2",
        help="record of a second run of the old program: shows whether it is equal to itself; "
        "twice what varies between OLD and OLD2 counts as equal",
    )
    parser.add_argument(
        "--loss-tolerance",
        type=_positive,
        metavar="X",
        default=0.0,
        help="relative difference up to which losses count as equal",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with charts of both runs")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON")
    options = parser.parse_args(argv)
    if "" in vars(options).values():
        parser.error("the name of a file is empty")
    results = options.html, options.json
    if None not in results and len(set(map(os.path.abspath, results))) == 1:
        parser.error("--html and --json name the same file")
    try:
        return _run(options)
    except RecordError as error:
        print(f"{prog} compare: {error}", file=sys.stderr)
    except MemoryError:
        print(f"{prog} compare: there is not enough memory for these records.", file=sys.stderr)
    return 2


def _run(options: argparse.Namespace) -> int:
    paths = [each for each in (options.old, options.new, options.baseline) if each]
    records = [read_record(each) for each in paths]
    old, new = records[:2]
    if options.baseline and os.path.samefile(options.baseline, options.new):
        raise RecordError("--baseline is the record of the new run; record the old program again.")
    found = _compare(records, options.loss_tolerance)
    titles = [f"Optimizer {i} ({each.cls})" for i, each in enumerate(old.optimizers)]
    ordered = sorted(enumerate(found), key=lambda each: _rank(each[1]))
    summary = _summary(found, titles, ordered[0][0])
    if options.json:
        values = {
            "old": old.path,
            "new": new.path,
            "optimizers": [
                {
                    "optimizer": number,
                    "verdict": each.verdict.value[0],
                    "sentence": each.sentence,
                    "evidence": each.evidence,
                    "step": each.step,
                    "table": each.table(),
                }
                for number, each in enumerate(found)
            ],
        }
        write(options.json, json.dumps(values, indent=1) + "\n", paths)
    if options.html:
        charts = [(titles[number], each) for number, each in ordered]
        write(options.html, page(charts, old.path, new.path, summary), paths)
    for note in [each for record in records for each in record.notes]:
        print(f"note: {note}")
    if summary:
        print(summary)
    for number, each in ordered:
        if summary:
            print(f"\n{titles[number]}:")
        print(_text(each))
    return max(each.verdict.status for each in found)


def _compare(records: List[Record], loss_tolerance: float) -> List[Comparison]:
    old, new = records[:2]
    for other, name in zip(records[1:], ("new", "baseline")):
        if len(other.optimizers) != len(old.optimizers):
            raise RecordError(
                f"The runs cannot be compared: the old one has {len(old.optimizers)} loss-scale "
                f"optimizers, and the {name} one has {len(other.optimizers)}."
            )
    are_equal = comparing.equal_conditions(old.header, new.header)
    found = []
    for mine, theirs, *again in zip(*(each.optimizers for each in records)):
        baseline = again[0] if again else None
        conditions = Conditions(are_equal, baseline, loss_tolerance, (old.ended, new.ended))
        found.append(comparing.compare(mine, theirs, conditions))
    return found


def _rank(comparison: Comparison) -> Tuple[int, float]:
    """Orders comparisons: those that are not the same first, by the step where runs part."""
    place = {Verdict.DIFFERENT: 0, Verdict.UNDECIDED: 1}.get(comparison.verdict, 2)
    return place, float("inf") if comparison.step is None else comparison.step


def _summary(found: List[Comparison], titles: List[str], first: int) -> str:
    if len(found) == 1:
        return ""
    names = [each.verdict.value[0] for each in found]
    counts = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    text = f"{len(found)} optimizers: {counts}."
    if found[first].verdict is Verdict.DIFFERENT and found[first].step is not None:
        names = [title for title, each in zip(titles, found) if _rank(each) == _rank(found[first])]
        verb = "differs" if len(names) == 1 else "differ"
        text += f" {' and '.join(names)} {verb} first, at step {found[first].step}."
    return text


def _text(comparison: Comparison) -> str:
    lines = [comparison.sentence, *(f"  - {each}" for each in comparison.evidence)]
    rows = comparison.table()
    if rows:
        lines.append("")
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row, widths)]
            lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _positive(value: str) -> float:
    number = float(value)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is not a number of at least 0")
    return number
