"""The arguments of `tf-lossscale checkpoint`, and what it prints."""

import argparse
import os
import sys
from typing import List, Tuple

from tf_lossscale._checkpoint import isolated
from tf_lossscale._checkpoint.converting import convert
from tf_lossscale._checkpoint.locate import CheckpointError, locate
from tf_lossscale._process import ArgumentParser, printable

__all__ = ["main"]

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
    try:
        status, lines = _inspect(parsed) if parsed.action == "inspect" else convert(parsed)
    except (CheckpointError, ImportError, OSError) as error:
        message = str(error)
    except Exception as error:  # not status 1, which means that there is no loss scale
        message = f"{parsed.path}: cannot be read: {type(error).__name__}: {error}"
    else:
        # Out of the `try`, whose errors are those of the files: a full disk behind stdout is none.
        is_refused = parsed.action == "convert" and status
        print("\n".join(map(printable, lines)), file=sys.stderr if is_refused else sys.stdout)
        return status
    print(f"{prog} {parsed.action}: {printable(message)}", file=sys.stderr)
    return 2


def _inspect(parsed: argparse.Namespace) -> Tuple[int, List[str]]:
    answer = isolated.answer(locate(parsed.path), as_json=parsed.json)
    return (0 if answer["states"] else 1), answer["lines"]


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
    convert.add_argument("path", metavar="SRC", help="the checkpoint to copy, as for `inspect`")
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
