"""`tf-lossscale compare`."""

import argparse
import json
import os
import sys
from typing import Callable, List, NamedTuple, Tuple

from tf_lossscale._compare import rendering
from tf_lossscale._compare.comparing import (
    compare,
    equal_conditions,
    in_order_of,
    why_other_program,
)
from tf_lossscale._compare.judgements import Comparison, Kind, Verdict
from tf_lossscale._compare.page import page
from tf_lossscale._compare.runs import Again, Conditions
from tf_lossscale._process import ArgumentParser
from tf_lossscale._records.disturbed import paths_of
from tf_lossscale._records.format import (
    OptimizerRecord,
    RunHeader,
    main_change,
    names_of_changes,
    printable,
)
from tf_lossscale._records.output import write
from tf_lossscale._records.reading import Record, RecordError, read_record
from tf_lossscale._records.summary import LONGEST, shortened
from tf_lossscale._types import JsonObject


def main(argv: List[str], prog: str = "tf-lossscale") -> int:
    """Runs the command; returns the exit status."""
    parser = _parser(prog)
    options = parser.parse_args(argv)
    if "" in (options.old, options.new, options.html, options.json, *options.baseline):
        parser.error("the name of a file is empty")
    results = options.html, options.json
    if None not in results and len(set(map(os.path.abspath, results))) == 1:
        parser.error("--html and --json name the same file")
    try:
        return _run(options)
    except RecordError as error:
        print(shortened(f"{prog} compare: {error}"), file=sys.stderr)
    except MemoryError:
        print(f"{prog} compare: there is not enough memory for these records.", file=sys.stderr)
    return 2


def _parser(prog: str) -> ArgumentParser:
    """Returns the parser of `compare`; scripts rely on the exit statuses in its epilog."""
    parser = ArgumentParser(
        prog=f"{prog} compare",
        description="Compares two recorded runs: whether the new one did what the old one did. How "
        "much rounding matters to the program is measured by the disturbed runs beside OLD, which "
        "`record --disturb` makes.",
        epilog="exit status: 0 the runs are the same or alike, 1 they are different or not shown "
        "to be the same\n(cut off, too short, nothing to measure by), 2 they cannot be compared.\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", help="record of the run that is right")
    parser.add_argument("new", metavar="NEW", help="record of the run to judge")
    parser.add_argument(
        "--baseline",
        metavar="OLD2",
        action="append",
        default=[],
        help="record of another run of the old program, such as with another number of threads; "
        "repeatable. It counts as a disturbed run",
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
    return parser


class _Records(NamedTuple):
    """All records of a comparison; `notes` are about files that are not used."""

    old: Record
    new: Record
    again: List[Record]
    notes: List[str]

    @property
    def paths(self) -> List[str]:
        return [record.path for record in (self.old, self.new, *self.again)]


def _read(options: argparse.Namespace) -> _Records:
    """Reads all records, with the optimizers of each in the order of the old one.

    A baseline that the user named must fit, or it is an error. A disturbed run beside OLD that does
    not fit is left out with a note: it may be of an earlier version of the program.
    """
    old, new = read_record(options.old), read_record(options.new)
    new.optimizers = in_order_of(old.optimizers, new.optimizers)
    notes = [note for record in (old, new) for note in record.notes]
    if os.path.samefile(options.old, options.new):
        notes.append("OLD and NEW are the same file, so this shows nothing about another run.")
    again = []
    for path in options.baseline:
        if os.path.samefile(path, options.new):
            raise RecordError(
                "--baseline is the record of the new run; record the old program again."
            )
        record = read_record(path)
        if len(record.optimizers) != len(old.optimizers):
            raise RecordError(_other_number(old, record, "baseline"))
        record.optimizers = in_order_of(old.optimizers, record.optimizers)
        again.append(record)
    for path in paths_of(options.old):
        reason = _why_not_used(path, old, again)
        if reason:
            notes.append(f"{printable(path, 200)} is not used: {reason}.")
    return _Records(old, new, again, notes)


def _why_not_used(path: str, old: Record, again: List[Record]) -> str:
    """Adds the disturbed run in a file to `again`; returns why if it is not one of OLD."""
    try:
        record = read_record(path)
    except RecordError as error:
        return str(error).rstrip(".")
    disturbed = record.header.disturbed
    if disturbed is None or disturbed.record != (old.header.id or ""):
        return "it was not made with this record"
    if len(record.optimizers) != len(old.optimizers):
        return "it has another number of optimizers"
    record.optimizers = in_order_of(old.optimizers, record.optimizers)
    for run, disturbed_run in zip(old.optimizers, record.optimizers):
        reasons = list(why_other_program(run, _again(record, disturbed_run)))
        if reasons:
            reason = rendering.phrase(reasons[0])
            return f"it is no run of the same program from the same start: {reason}"
    again.append(record)
    return ""


def _again(record: Record, run: OptimizerRecord) -> Again:
    disturbed = record.header.disturbed
    return Again(run, disturbed is not None and disturbed.scale != 1.0)


def _other_number(old: Record, other: Record, name: str) -> str:
    return (
        f"The runs cannot be compared: the old one has {len(old.optimizers)} loss-scale "
        f"optimizers, and the {name} one has {len(other.optimizers)}."
    )


def _run(options: argparse.Namespace) -> int:
    """Compares the records, writes what `--json` and `--html` ask for, and prints the verdicts.

    Returns the exit status, which follows from the worst verdict of all optimizers.
    """
    records = _read(options)
    old, new = records.old, records.new
    if len(new.optimizers) != len(old.optimizers):
        raise RecordError(_other_number(old, new, "new"))
    found = _compare(records, options.loss_tolerance)
    titles = [f"Optimizer {i} ({optimizer.cls})" for i, optimizer in enumerate(old.optimizers)]
    ordered = sorted(enumerate(found), key=lambda pair: _rank(pair[1]))
    first_line = _first_line(records, found, titles, ordered[0][0])
    if options.json:
        values = json.dumps(_as_json(records, found), indent=1, allow_nan=False)
        write(options.json, values + "\n", records.paths)
    if options.html:
        charts = [(titles[number], comparison) for number, comparison in ordered]
        content = page(charts, old.path, new.path, first_line)
        write(options.html, content, records.paths)
    print(first_line)
    for note in records.notes:
        print(shortened(f"note: {note}"))
    for number, comparison in ordered:
        if len(found) > 1:
            print(f"\n{titles[number]}:\n{rendering.sentence(comparison)}")
        advice = rendering.advice(comparison)
        if advice:
            print(f"next: {advice}")
        print(_text(comparison))
    return max(comparison.verdict.status for comparison in found)


def _compare(records: _Records, loss_tolerance: float) -> List[Comparison]:
    old, new = records.old, records.new
    are_equal = equal_conditions(old.header, new.header)
    found = []
    for number, (old_run, new_run) in enumerate(zip(old.optimizers, new.optimizers)):
        again = [_again(record, record.optimizers[number]) for record in records.again]
        ended = (old.ended, new.ended)
        conditions = Conditions(are_equal, again, loss_tolerance, ended)
        found.append(compare(old_run, new_run, conditions))
    return found


def _rank(comparison: Comparison) -> Tuple[int, float, bool]:
    """Orders comparisons: those that are not the same first, by the step where runs part.

    A fact about one optimizer comes before what is measured about another: it may be the reason.
    """
    place = {Verdict.DIFFERENT: 0, Verdict.UNDECIDED: 1}.get(comparison.verdict, 2)
    step = float("inf") if comparison.step is None else comparison.step
    return place, step, comparison.first.kind in (Kind.LEAVES, Kind.SKIPS)


def _first_line(records: _Records, found: List[Comparison], titles: List[str], first: int) -> str:
    """Returns the verdict, with the names that the shim had put under `tensorflow` in a run.

    If it would be too long, it has the most important name, and a note all of them.
    """
    text = rendering.sentence(found[0]) if len(found) == 1 else _summary(found, titles, first)
    every, main = (
        " ".join([text, *_changes(records, phrase)]) for phrase in (names_of_changes, main_change)
    )
    if len(every) <= LONGEST:
        return every
    records.notes.extend(map(_lower, _changes(records, names_of_changes)))
    ending = main[len(text) :]
    return shortened(text, LONGEST - len(ending)) + ending


def _changes(records: _Records, phrase: Callable[[RunHeader], str]) -> List[str]:
    """Returns a sentence for each run with names that the shim had put under `tensorflow`."""
    headers = [("The old run", records.old.header), ("The new run", records.new.header)]
    found = [(which, phrase(header)) for which, header in headers if names_of_changes(header)]
    if len(found) > 1 and found[0][1] == found[1][1]:
        found = [("Both runs", found[0][1])]
    return [f"{which} had {changes}." for which, changes in found]


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _summary(found: List[Comparison], titles: List[str], first: int) -> str:
    """Returns one sentence about several optimizers: the verdicts, and which differed first."""
    names = [comparison.verdict.value[0] for comparison in found]
    counts = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    text = f"{len(found)} optimizers: {counts}."
    if found[first].verdict is Verdict.DIFFERENT and found[first].step is not None:
        names = [
            title
            for title, comparison in zip(titles, found)
            if _rank(comparison) == _rank(found[first])
        ]
        verb = "differs" if len(names) == 1 else "differ"
        text += f" {' and '.join(names)} {verb} first, at step {found[first].step}."
    return text


def _as_json(records: _Records, found: List[Comparison]) -> JsonObject:
    """Returns what `--json` writes: the records, and one comparison for each optimizer."""
    headers = {"old": records.old.header, "new": records.new.header}
    return {
        "version": 2,
        "old": records.old.path,
        "new": records.new.path,
        "again": [record.path for record in records.again],
        "supplied": {name: header.supplied or [] for name, header in headers.items()},
        "replaced": {name: header.replaced or [] for name, header in headers.items()},
        "notes": records.notes,
        "optimizers": [
            {
                "optimizer": number,
                "verdict": comparison.verdict.value[0],
                "sentence": rendering.sentence(comparison),
                "next": rendering.advice(comparison) or None,
                "judgements": [rendering.as_json(judgement) for judgement in comparison.judgements],
                "evidence": rendering.evidence(comparison),
                "step": comparison.step,
                "table": rendering.table(comparison),
            }
            for number, comparison in enumerate(found)
        ],
    }


def _text(comparison: Comparison) -> str:
    lines = [f"  - {reason}" for reason in rendering.evidence(comparison)]
    rows = rendering.table(comparison)
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
