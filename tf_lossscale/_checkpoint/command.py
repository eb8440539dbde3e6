"""The arguments of `tf-lossscale checkpoint`."""

import argparse
import os
import sys
from typing import List, Tuple

from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.printing import printable
from tf_lossscale._checkpoint.targets import TARGETS

__all__ = ["main"]

INSPECT = """\
Shows the loss-scale state in a TensorFlow checkpoint, a SavedModel, or an .h5 or .keras file: each
variable with its value, the class that wrote it, and the classes that restore it.

Exit status: 0 there is some, 1 there is none, 2 the file cannot be read.
"""

CONVERT = """\
Writes a copy of a TensorFlow checkpoint in which the loss scale stands where another class restores
it. All other tensors stay as they are; SRC is only read.

  --to contrib   ExponentialUpdateLossScaleManager of tf.contrib.mixed_precision, and ours
  --to v1        DynamicLossScale of tf.compat.v1.mixed_precision or tf.train.experimental, and ours
  --to keras     LossScaleOptimizer of Keras 2 from TensorFlow 2.3 on
  --to keras3    LossScaleOptimizer of Keras 3

Between contrib and v1 files of tf.train.Saver are converted; from keras to keras, checkpoints of
objects that TensorFlow 1.14 to 2.2 wrote. What cannot be converted faithfully is refused, with the
reason and the values to start with.

Exit status: 0 written, 1 SRC holds no loss-scale state, 2 refused, with nothing written.
"""


def main(arguments: List[str], prog: str) -> int:
    """Runs `inspect` or `convert`.

    Args:
      arguments: those after `checkpoint`.
      prog: the name to show in messages.

    Returns:
      The exit status.
    """
    try:
        parsed = _parser(prog).parse_args(arguments)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 0
    # TensorFlow is started for remote paths only, and errors it raises.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        return _inspect(parsed) if parsed.action == "inspect" else _convert(parsed)
    except (CheckpointError, ImportError, OSError) as error:
        message = str(error)
    except MemoryError:
        message = f"{_path(parsed)}: damaged, or larger than the memory"
    except Exception as error:  # status 1 says that there is no loss scale, so it is no option
        message = f"{_path(parsed)}: cannot be read: {type(error).__name__}: {error}"
    print(f"{prog} {parsed.action}: {printable(message)}", file=sys.stderr)
    return 2


def _path(parsed: argparse.Namespace) -> str:
    return str(parsed.path if parsed.action == "inspect" else parsed.source)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description="Loss-scale state in checkpoints: look at it, or move it."
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
        help="the prefix of a checkpoint, a directory (its latest checkpoint, or a SavedModel), an "
        ".h5 or a .keras file",
    )
    inspect.add_argument("--json", action="store_true", help="print JSON")
    convert = actions.add_parser(
        "convert",
        help="copy a checkpoint, with its loss scale where another class restores it",
        description=CONVERT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.add_argument("source", metavar="SRC", help="the checkpoint, as for `inspect`")
    convert.add_argument("destination", metavar="DST", help="the prefix of the new checkpoint")
    convert.add_argument(
        "--to", choices=TARGETS, required=True, help="the class that is to read it"
    )
    convert.add_argument(
        "--control-flow",
        choices=("v1", "v2"),
        help="the control flow of the program that will read it, which Adam's beta powers are "
        "named after; default: that of the program that wrote SRC",
    )
    convert.add_argument(
        "--rename",
        metavar="OLD=NEW",
        type=_renaming,
        action="append",
        default=[],
        help="store the tensor OLD as NEW; may repeat",
    )
    convert.add_argument("--force", action="store_true", help="replace DST if it exists")
    convert.add_argument("--dry-run", action="store_true", help="say what would be done, only")
    return parser


def _renaming(text: str) -> Tuple[str, str]:
    old, _, new = text.partition("=")
    if not old or not new:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new


def _inspect(parsed: argparse.Namespace) -> int:
    from tf_lossscale._checkpoint import reading, report

    contents = reading.read(parsed.path)
    print(report.as_json(contents) if parsed.json else report.as_text(contents))
    sys.stdout.flush()
    return 0 if contents.states else 1


def _convert(parsed: argparse.Namespace) -> int:
    from tf_lossscale._checkpoint import converting

    return converting.convert(
        parsed.source,
        parsed.destination,
        to=parsed.to,
        control_flow=parsed.control_flow,
        renames=dict(parsed.rename),
        force=parsed.force,
        dry_run=parsed.dry_run,
    )
