"""`tf-lossscale checkpoint`: its arguments, what it prints, and the destination of a conversion.

The child process of `isolated` reads the files, and writes a complete copy next to the destination,
which is then moved there.
"""

import argparse
import contextlib
import glob
import os
import shutil
import signal
import sys
from types import FrameType
from typing import Any, Iterator, List, Optional, Tuple

from tf_lossscale._checkpoint import locate
from tf_lossscale._checkpoint.locate import BOOKKEEPING, CheckpointError
from tf_lossscale._checkpoint_command import isolated
from tf_lossscale._process import ArgumentParser, printable

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

INSPECT = """\
Show the loss-scale state in a TensorFlow checkpoint, a SavedModel, or an .h5 or .keras file: each
variable with its value, the class that wrote it, and the classes that restore it. Show the
optimizers in it, too, and what a program on Keras 3 can restore of them.

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
checkpoints that TensorFlow 1.14 to 2.2 wrote; from keras to keras3, object checkpoints of a
tf.Module or of variables, and not of a Keras model. If a conversion would lose state, it is refused
with the reason and the values to start with.

A fixed loss scale has no state. With --control-flow or --rename, names are changed all the same.

Exit status: 0 written, 1 SRC has no loss-scale state and neither --control-flow nor --rename is
given, 2 refused and nothing written.
"""


def main(arguments: List[str], prog: str) -> int:
    """Runs `inspect` or `convert`; raises SystemExit for wrong usage and after help."""
    parsed = _parser(prog).parse_args(arguments)
    # TensorFlow is used for remote paths only; its errors are raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        status, lines = parsed.run(parsed)
    except (CheckpointError, ImportError, OSError) as error:
        message = str(error)
    except Exception as error:  # not status 1, which means that there is no loss scale
        message = f"{parsed.path}: cannot be read: {type(error).__name__}: {error}"
    else:
        # Outside the `try`, which reports errors of the files: a full disk behind stdout is not
        # one.
        is_refused = parsed.action == "convert" and status
        print("\n".join(map(printable, lines)), file=sys.stderr if is_refused else sys.stdout)
        return status
    print(f"{prog} {parsed.action}: {printable(message)}", file=sys.stderr)
    return 2


def _inspect(parsed: argparse.Namespace) -> Tuple[int, List[str]]:
    answer = isolated.answer(locate.locate(parsed.path), as_json=parsed.json)
    return (0 if answer["states"] else 1), answer["lines"]


def _convert(parsed: argparse.Namespace) -> Tuple[int, List[str]]:
    """Writes the copy; if it raises an error, the destination is unchanged.

    If the process is killed, no half-written checkpoint remains: without its index, TensorFlow does
    not find a checkpoint. The new index is moved last, and an old index is removed first.
    """
    place = locate.locate(parsed.path)
    if place.format != locate.TENSORFLOW:
        raise CheckpointError(
            f"{parsed.path}: only TensorFlow checkpoints can be converted. A {place.format} also "
            "describes its optimizer, so a copy with other state would not load. `inspect` shows "
            "the values to start with."
        )
    destination = locate.without_suffix(parsed.destination)
    _check_destination(place.path, destination, parsed.force)
    options = {
        "to": parsed.to,
        "control_flow": parsed.control_flow,
        "renames": dict(parsed.rename),
    }
    if parsed.dry_run:
        answer = isolated.answer(place, convert={**options, "written": None})
    else:
        with _ended_by_signals(), _working_folder(destination) as hidden:
            written = os.path.join(hidden, os.path.basename(destination))
            answer = isolated.answer(place, convert={**options, "written": written})
            if answer["tensors"]:
                # Again, as writing took a while.
                _check_destination(place.path, destination, parsed.force)
                _move(written, destination)
    if not answer["tensors"]:
        return 1, [
            f"{place.path}: nothing to convert: there is no loss-scale state. A fixed loss scale "
            "has none; to change names only, pass --control-flow or --rename."
        ]
    verb = "would write" if parsed.dry_run else "wrote"
    title = f"{verb} {destination}: {answer['tensors']} tensors of {place.path}"
    return 0, [title, *answer["lines"]]


@contextlib.contextmanager
def _working_folder(destination: str) -> Iterator[str]:
    """Yields the name of a new folder, in which the copy is written.

    It follows from the destination's name, so that the next conversion removes what a killed one
    has left.
    """
    folder, name = os.path.split(os.path.abspath(destination))
    hidden = os.path.join(folder, f".{name}.tf-lossscale-copy")
    missing = _missing_folders(folder)
    os.makedirs(hidden, exist_ok=True)
    with _locked(hidden, destination):
        copy = os.path.join(hidden, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        try:
            yield copy
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
            with contextlib.suppress(OSError):  # the copy is in it
                for made in missing:
                    os.rmdir(made)


def _missing_folders(folder: str) -> List[str]:
    """Returns a folder and its parents that do not exist, the innermost first."""
    found = []
    while not os.path.isdir(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


@contextlib.contextmanager
def _locked(folder: str, destination: str) -> Iterator[None]:
    """Holds a lock on the folder of the copy, so that two conversions do not mix their files there.

    Without locks (Windows, some file systems) it does nothing. The files themselves are replaced
    atomically.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CheckpointError(f"{destination}: another conversion is writing it") from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(descriptor)


class _Ended(BaseException):
    """A signal that ends this process; its argument is the number."""


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Lets the block clean up when a signal ends this process."""

    def end(number: int, frame: Optional[FrameType]) -> None:
        raise _Ended(number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {}
    with contextlib.suppress(ValueError):  # not in the main thread
        before = {name: signal.signal(getattr(signal, name), end) for name in names}
    try:
        yield
    except _Ended as ended:
        signal.signal(ended.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), ended.args[0])
        raise
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _check_destination(source: str, destination: str, force: bool) -> None:
    """Raises CheckpointError unless DST is a local prefix where no file is lost.

    SRC is never changed, also not through links.
    """
    if not destination:
        raise CheckpointError("DST is empty; name the prefix of the new checkpoint")
    if "://" in destination:
        raise CheckpointError(
            f"{destination}: DST must be a local path, so that it can be written atomically; copy "
            "it from there"
        )
    if destination.endswith(os.sep) or os.path.isdir(destination):
        raise CheckpointError(
            f"{destination} is a directory. DST is a prefix, such as "
            f"{os.path.join(destination, os.path.basename(source))}"
        )
    if os.path.basename(destination) == BOOKKEEPING:
        raise CheckpointError(f"{destination}: TensorFlow uses this name for its own records")
    paths = {os.path.realpath(path) for path in (source, *_files(source))}
    if paths & {os.path.realpath(path) for path in (destination, *_files(destination))}:
        raise CheckpointError(f"{destination}: DST is the same as SRC, which is never changed")
    if _files(destination) and not force:
        raise CheckpointError(f"{destination} exists; pass --force to replace it")


def _files(prefix: str) -> List[str]:
    found = glob.glob(glob.escape(prefix) + ".data-*-of-*")
    return found + [path for path in (prefix, prefix + ".index") if os.path.isfile(path)]


def _move(written: str, destination: str) -> None:
    """Moves a copy, and the file that names it as the latest if the folder has none."""
    for path in sorted(_files(destination), key=lambda path: not path.endswith(".index")):
        os.remove(path)
    for path in sorted(_files(written), key=lambda path: path.endswith(".index")):
        os.rename(path, destination + path[len(written) :])
    latest = os.path.join(os.path.dirname(destination), BOOKKEEPING)
    if not os.path.exists(latest):
        os.rename(os.path.join(os.path.dirname(written), BOOKKEEPING), latest)


def _parser(prog: str) -> ArgumentParser:
    """Returns the parser of `tf-lossscale checkpoint`, with a subcommand for each action."""
    parser = ArgumentParser(
        prog=prog, description="Inspect or convert the loss-scale state in checkpoints."
    )
    actions = parser.add_subparsers(dest="action", metavar="inspect|convert", required=True)
    raw = argparse.RawDescriptionHelpFormatter
    what = "show the loss-scale state in a file"
    inspect = actions.add_parser("inspect", help=what, description=INSPECT, formatter_class=raw)
    inspect.add_argument(
        "path",
        metavar="PATH",
        help="a checkpoint prefix, a directory (its latest checkpoint, or a SavedModel), or an .h5 "
        "or .keras file",
    )
    inspect.add_argument("--json", action="store_true", help="print JSON")
    inspect.set_defaults(run=_inspect)
    _add_convert(actions)
    return parser


def _add_convert(actions: Any) -> None:
    """Adds `convert`, which copies a checkpoint for another class."""
    raw = argparse.RawDescriptionHelpFormatter
    what = "copy a checkpoint so that another class can restore the loss scale"
    convert = actions.add_parser("convert", help=what, description=CONVERT, formatter_class=raw)
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
    convert.set_defaults(run=_convert)


def _renaming(text: str) -> Tuple[str, str]:
    old, _, new = text.partition("=")
    if not old or not new:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new
