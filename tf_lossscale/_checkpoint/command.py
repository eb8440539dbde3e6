"""The arguments of `tf-lossscale checkpoint`, and what it prints."""

import argparse
import contextlib
import io
import json
import math
import os
import sys
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from tf_lossscale._arguments import ArgumentParser
from tf_lossscale._checkpoint import converting, isolated
from tf_lossscale._checkpoint.finding import Contents, State, Variable
from tf_lossscale._checkpoint.isolated import Conversion
from tf_lossscale._checkpoint.locate import CheckpointError, locate

__all__ = ["main", "printable"]

INSPECT = """\
Show the loss-scale state in a TensorFlow checkpoint, a SavedModel, or an .h5 or .keras file: each
variable with its value, the class that wrote it, and the classes that restore it.

Exit status: 0 the file has loss-scale state, 1 it has none, 2 the file cannot be read.
"""

CONVERT = """\
Write a copy of a TensorFlow checkpoint from which another class restores the loss scale. All other
tensors stay the same, and SRC is not changed.

  --to contrib   ExponentialUpdateLossScaleManager of tf.contrib.mixed_precision, or of the shim
  --to v1        DynamicLossScale of tf.compat.v1.mixed_precision, tf.train.experimental or the shim
  --to keras     LossScaleOptimizer of Keras 2 from TensorFlow 2.3 on
  --to keras3    LossScaleOptimizer of Keras 3

Between contrib and v1, checkpoints of tf.train.Saver can be converted; from keras to keras, object
checkpoints that TensorFlow 1.14 to 2.2 wrote. If a conversion would lose state, it is refused with
the reason and the values to start with.

Exit status: 0 written, 1 SRC has no loss-scale state, 2 refused and nothing written.
"""


def main(arguments: List[str], prog: str) -> int:
    """Runs `inspect` or `convert`."""
    try:
        parsed = _parser(prog).parse_args(arguments)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 0
    # TensorFlow is used for remote paths only; its errors are raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            return _inspect(parsed) if parsed.action == "inspect" else _convert(parsed)
    except (CheckpointError, ImportError, OSError) as error:
        message = str(error)
    except MemoryError:
        message = f"{_path(parsed)}: damaged, or too large for the memory"
    except Exception as error:  # not status 1, which means that there is no loss scale
        message = f"{_path(parsed)}: cannot be read: {type(error).__name__}: {error}"
    finally:
        # Out of the `try`, whose errors are those of the files: a full disk behind stdout is none.
        print(output.getvalue(), end="")
    print(f"{prog} {parsed.action}: {printable(message)}", file=sys.stderr)
    return 2


def _path(parsed: argparse.Namespace) -> str:
    return str(parsed.path if parsed.action == "inspect" else parsed.source)


def _parser(prog: str) -> ArgumentParser:
    parser = ArgumentParser(
        prog=prog, description="Inspect or convert the loss-scale state in checkpoints."
    )
    actions = parser.add_subparsers(dest="action", metavar="inspect|convert")
    actions.required = True
    inspect = actions.add_parser(
        "inspect",
        help="show the loss-scale state in a file",
        description=INSPECT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inspect.add_argument(
        "path",
        metavar="PATH",
        help="a checkpoint prefix, a directory (its latest checkpoint, or a SavedModel), or an .h5 "
        "or .keras file",
    )
    inspect.add_argument("--json", action="store_true", help="print JSON")
    convert = actions.add_parser(
        "convert",
        help="copy a checkpoint so that another class can restore the loss scale",
        description=CONVERT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.add_argument("source", metavar="SRC", help="the checkpoint to copy, as for `inspect`")
    convert.add_argument("destination", metavar="DST", help="the prefix of the new checkpoint")
    convert.add_argument(
        "--to",
        choices=("contrib", "v1", "keras", "keras3"),
        required=True,
        help="the class that will read the copy",
    )
    convert.add_argument(
        "--control-flow",
        choices=("v1", "v2"),
        help="the control flow of the program that will read the copy, on which the names of "
        "Adam's beta powers depend (default: that of the program that wrote SRC)",
    )
    convert.add_argument(
        "--rename",
        metavar="OLD=NEW",
        type=_renaming,
        action="append",
        default=[],
        help="store the tensor OLD as NEW; repeatable",
    )
    convert.add_argument("--force", action="store_true", help="replace DST if it exists")
    convert.add_argument(
        "--dry-run", action="store_true", help="report what would be done; write nothing"
    )
    return parser


def _renaming(text: str) -> Tuple[str, str]:
    old, _, new = text.partition("=")
    if not old or not new:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new


def _inspect(parsed: argparse.Namespace) -> int:
    contents = isolated.read(locate(parsed.path))
    print(_as_json(contents) if parsed.json else _as_text(contents))
    return 0 if contents.states else 1


def _convert(parsed: argparse.Namespace) -> int:
    source, destination, conversion = converting.convert(
        parsed.source,
        parsed.destination,
        to=parsed.to,
        control_flow=parsed.control_flow,
        renames=dict(parsed.rename),
        force=parsed.force,
        dry_run=parsed.dry_run,
    )
    if conversion is None:
        print(
            f"{source}: nothing to convert: there is no loss-scale state. A fixed loss "
            "scale has none.",
            file=sys.stderr,
        )
        return 1
    verb = "would write" if parsed.dry_run else "wrote"
    title = f"{verb} {destination}: {conversion.tensors} tensors of {source}"
    print("\n".join(map(printable, [title, *_conversion_lines(conversion)])))
    return 0


def _as_text(contents: Contents) -> str:
    """Returns the report as text."""
    lines = [contents.path, f"  {contents.format}"]
    for state in contents.states:
        lines += ["", *_state_lines(state)]
    for each in contents.configured:
        settings = ", ".join(f"{name}={value}" for name, value in each.settings.items())
        lines += ["", f"Configured: {each.class_name}({settings})", f"  {each.note}"]
    if not contents.states:
        lines += [
            "",
            "No loss-scale state. A fixed loss scale has none; that of a dynamic one is missing "
            "where only weights were saved.",
        ]
    return "\n".join(map(printable, lines))


def _state_lines(state: State) -> Iterator[str]:
    yield f"Loss scale of {state.layout.written_by}"
    yield f"  TensorFlow: {state.layout.tensorflow}"
    for row in _rows([(v.key, v.role, v.dtype, str(v.value)) for v in state.variables]):
        yield f"    {row}"
    if state.layout.restored_by:
        yield "  restored by:"
        for each in state.layout.restored_by:
            yield f"    {each}"
    for note in state.layout.notes:
        yield f"  note: {note}"


def _rows(cells: Sequence[Sequence[str]]) -> List[str]:
    """Returns the lines of a table."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells
    ]


def _as_json(contents: Contents) -> str:
    """Returns the report as JSON. NaN and infinity are strings, because JSON lacks them."""
    return json.dumps(
        {
            "version": 1,
            "path": contents.path,
            "format": contents.format,
            "states": [
                {
                    "family": state.layout.family or None,
                    "written_by": state.layout.written_by,
                    "tensorflow": state.layout.tensorflow,
                    "restored_by": list(state.layout.restored_by),
                    "notes": list(state.layout.notes),
                    "variables": [_variable(each) for each in state.variables],
                }
                for state in contents.states
            ],
            "configured": [
                {"class_name": each.class_name, "settings": each.settings, "note": each.note}
                for each in contents.configured
            ],
        },
        indent=2,
    )


def _variable(variable: Variable) -> Dict[str, Any]:
    value: Any = variable.value
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    return {**variable._asdict(), "value": value}


def _conversion_lines(conversion: Conversion) -> Iterator[str]:
    if conversion.changes:
        for row in _rows([(old, "->", new) for old, new in conversion.changes]):
            yield f"  {row}"
    else:
        yield "  unchanged: the target can restore the loss scale from it"
    for notice in conversion.notices:
        yield f"note: {notice}"


def printable(text: str) -> str:
    """Returns a text as one line that every terminal can show.

    Names in a file may contain line breaks, control characters, and characters that the encoding of
    the output lacks. Such characters are escaped.
    """
    text = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
