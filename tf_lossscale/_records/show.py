"""`tf-lossscale show`: what one record holds, as text, JSON, or a page."""

import argparse
import json
import sys
from html import escape
from typing import List, Optional, Sequence, Tuple

from tf_lossscale._process import ArgumentParser
from tf_lossscale._records import charts
from tf_lossscale._records.format import RunHeader, names_of_changes
from tf_lossscale._records.output import write
from tf_lossscale._records.reading import Record, RecordError, read_record
from tf_lossscale._records.summary import Summary
from tf_lossscale._types import JsonObject


def main(argv: List[str], prog: str = "tf-lossscale") -> int:
    """Runs the command; returns 0, or 2 if the record cannot be read."""
    parser = ArgumentParser(
        prog=f"{prog} show",
        description="Show what a record holds: steps, skipped steps, steps that were applied "
        "though their gradients were not finite, the loss scale, and the first variable that was "
        "not finite.",
        epilog="exit status: 0 shown, 2 the record cannot be read.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="the record")
    for name, what in (("--json", "JSON"), ("--html", "a page with charts")):
        parser.add_argument(
            name,
            metavar="OUT",
            nargs="?",
            const="-",
            help=f"write {what} to this file, or to standard output",
        )
    options = parser.parse_args(argv)
    # `show --json FILE`: the option has no file of its own.
    for name in ("json", "html"):
        if options.file is None and getattr(options, name) not in (None, "-"):
            options.file = getattr(options, name)
            setattr(options, name, "-")
    if not options.file or "" in (options.json, options.html):
        parser.error("the name of a record is required")
    try:
        _show(options)
    except RecordError as error:
        print(f"{prog} show: {error}", file=sys.stderr)
        return 2
    return 0


def _show(options: argparse.Namespace) -> None:
    """Writes JSON and the page to their files, or to `-` instead of the text."""
    record = read_record(options.file)
    summaries = [Summary.of(optimizer) for optimizer in record.optimizers]
    results: List[Tuple[Optional[str], str]] = []
    if options.json is not None:
        values = json.dumps(_as_json(record, summaries), indent=1, allow_nan=False)
        results.append((options.json, values + "\n"))
    if options.html is not None:
        results.append((options.html, _page(record, summaries)))
    for path, content in results:
        if path is not None and path != "-":
            write(path, content, [options.file])
    printed = [content for path, content in results if path == "-"]
    sys.stdout.write("".join(printed or [_text(record, summaries)]))


def title_of(record: Record) -> str:
    """Returns one line about a record, which begins with the names that the shim had changed."""
    changes = names_of_changes(record.header)
    names = f" with {changes}" if changes else ""
    return f"{record.path}: recorded{names} {_place(record.header)}".rstrip()


def _place(header: RunHeader) -> str:
    parts = []
    if header.tensorflow:
        keras = f", Keras {header.keras}" if header.keras else ""
        parts.append(f"on TensorFlow {header.tensorflow}{keras}")
    if header.devices:
        parts.append("/".join(header.devices))
    if header.replicas and header.replicas > 1:
        parts.append(f"{header.replicas} replicas")
    return ", ".join(parts)


def _titles(summaries: Sequence[Summary]) -> List[str]:
    several = len(summaries) > 1
    return [
        f"{f'Optimizer {number}, ' if several else ''}{summary.cls}, {summary.rule} loss scale"
        for number, summary in enumerate(summaries)
    ]


def _facts(record: Record, summary: Summary) -> List[Tuple[str, str]]:
    end = "" if record.ended else " (cut off: the run did not end by itself)"
    steps = f"{summary.steps}, from {summary.first_step} to {summary.last_step}{end}"
    advice = summary.advice()
    return [("steps", steps), *summary.rows(), *([("next", advice)] if advice else [])]


def _text(record: Record, summaries: Sequence[Summary]) -> str:
    lines = [title_of(record), *(f"note: {note}" for note in record.notes)]
    for title, summary in zip(_titles(summaries), summaries):
        rows = _facts(record, summary)
        width = max(len(name) for name, _ in rows)
        lines += ["", title, *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows)]
    return "\n".join(lines) + "\n"


def _as_json(record: Record, summaries: Sequence[Summary]) -> JsonObject:
    """Returns the values of `show --json`, whose keys are public."""
    header = record.header
    return {
        "version": 1,
        "file": record.path,
        "tensorflow": header.tensorflow,
        "keras": header.keras,
        "devices": header.devices,
        "replicas": header.replicas,
        "supplied": header.supplied or [],
        "replaced": header.replaced or [],
        "ended": record.ended,
        "notes": record.notes,
        "optimizers": [
            {**summary.as_json(), "next": summary.advice() or None} for summary in summaries
        ],
    }


def _page(record: Record, summaries: Sequence[Summary]) -> str:
    parts = [f"<p>{escape(title_of(record))}</p>"]
    parts += [f"<p>note: {escape(note)}</p>" for note in record.notes]
    for title, summary, run in zip(_titles(summaries), summaries, record.optimizers):
        parts.append(f"<h2>{escape(title)}</h2><table class='facts'>")
        for name, text in _facts(record, summary):
            parts.append(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>")
        lines = [charts.Line("", run, "old")]
        parts += ["</table>", *charts.of_runs(lines, charts.whole(lines))]
    return charts.document(record.path, "A recorded run", "", parts)
