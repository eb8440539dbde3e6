"""The command `tf-lossscale`. Each subcommand imports only what it needs, TensorFlow last."""

import argparse
import difflib
import platform
import sys
from typing import Any, List, Optional

from tf_lossscale import _paths
from tf_lossscale._about import VERSION
from tf_lossscale._cli import scripts
from tf_lossscale._process import ArgumentParser, at_once, guarded, handing_over

CODEMODS = ("migrate", "rules", "explain")
CODEMODS_PYTHON = (3, 9)

MOST_WANTED = """\
usage: {prog} COMMAND ...

  {prog} migrate                      show what would change here, write nothing
  {prog} migrate --to shim --write    rewrite to the shim, on the TensorFlow that you have
  {prog} run train.py                 run an old script unchanged

{prog}: error: a command is required; see `{prog} --help`
"""

DESCRIPTION = """\
Migrate code away from TensorFlow's retired loss-scale and cross-shard optimizers.

  migrate [PATH ...] [options]   rewrite files and trees; shows a diff and writes nothing by default
  rules                          list the rules
  explain CODE                   explain a rule, with examples
  run [--record FILE] SCRIPT     run an unmodified legacy script with the shim installed
  run --monitor SCRIPT           the same; report skipped steps and their cause at the end
  record FILE SCRIPT             record the steps of a script; installs and replaces nothing
  show FILE                      show what a record holds
  compare OLD NEW                report whether two recorded runs did the same
  checkpoint inspect|convert     inspect or convert loss-scale state in checkpoints
  doctor                         show TensorFlow, Keras, and the names that the shim supplies

See `tf-lossscale COMMAND --help` for details.
"""


def main(argv: Optional[List[str]] = None, prog: str = "tf-lossscale") -> int:
    """Runs the command; ends the process if it is one of the codemods, and no arguments are given.

    Returns:
      The exit status: 0 if nothing is left to do, 1 if something is, 2 for wrong usage.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    is_help = {"-h", "--help"} & {*scripts.options_of(arguments)}
    if arguments[:1] in (["run"], ["record"]) and not is_help:  # ends as the script does
        return handing_over(prog, lambda: _main(arguments, prog))
    if not arguments or arguments[0] not in CODEMODS:
        return guarded(prog, lambda: _main(arguments, prog))
    if argv is None:
        at_once(prog, lambda: _codemods(arguments, prog))
    return guarded(prog, lambda: _codemods(arguments, prog))


def _main(arguments: List[str], prog: str) -> int:
    """Runs a command of the shim; returns the exit status."""
    parser = ArgumentParser(
        prog=prog,
        usage=f"{prog} COMMAND ...",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tf-lossscale {VERSION}")
    parser.add_argument(
        "--print-completion",
        metavar="SHELL",
        help="print a completion script for bash, zsh or tcsh (needs the extra [completion])",
    )
    parser.add_argument("command", choices=[*CODEMODS, *OTHERS], help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    try:
        if not arguments:
            parser.exit(2, MOST_WANTED.format(prog=prog))
        if not arguments[0].startswith("-") and arguments[0] not in OTHERS:
            near = difflib.get_close_matches(arguments[0], [*CODEMODS, *OTHERS], 1)
            hint = f"did you mean {near[0]}?" if near else f"see `{prog} --help`"
            parser.error(f"unknown command {arguments[0]!a}; {hint}")
        if arguments[0].partition("=")[0] == "--print-completion":
            return _completion(parser, arguments, prog)
        parsed = parser.parse_args(arguments[:1])
        return OTHERS[parsed.command](arguments[1:], prog)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 0


def _completion(parser: ArgumentParser, arguments: List[str], prog: str) -> int:
    shells = ("bash", "zsh", "tcsh")
    given = parser.parse_known_args([*arguments, "doctor"])[0].print_completion
    if given not in shells:
        parser.error(f"--print-completion: choose from {', '.join(shells)}")
    if sys.version_info < CODEMODS_PYTHON:
        return _codemods(["--print-completion"], prog)
    from tf_lossscale_codemods.cli.command import completion

    return completion(given, prog)


def _codemods(arguments: List[str], prog: str) -> int:
    """Passes a command on to the codemods, which need a newer Python than the shim."""
    if sys.version_info < CODEMODS_PYTHON:
        print(
            "{}: {} needs Python {}.{} or later, and this is {}.{}. Install tf-lossscale under a "
            "newer Python as well; the code that it rewrites can stay on this one.".format(
                prog, arguments[0], *CODEMODS_PYTHON, *sys.version_info[:2]
            ),
            file=sys.stderr,
        )
        return 2
    from tf_lossscale_codemods.cli.command import main as codemods_main

    return codemods_main(arguments, prog=prog)


def _checkpoint(arguments: List[str], prog: str) -> int:
    from tf_lossscale._checkpoint_command.command import main as checkpoint_main

    return checkpoint_main(arguments, f"{prog} checkpoint")


def _compare(arguments: List[str], prog: str) -> int:
    from tf_lossscale._compare.command import main as compare_main

    return compare_main(arguments, prog)


def _show(arguments: List[str], prog: str) -> int:
    from tf_lossscale._records.show import main as show_main

    return show_main(arguments, prog)


def _doctor(arguments: List[str], prog: str) -> int:
    """Prints the versions and the legacy names; returns 1 if TensorFlow cannot be imported."""
    parser = ArgumentParser(
        prog=f"{prog} doctor",
        description="Show which TensorFlow and Keras are installed, which legacy names they have, "
        "and which the shim supplies. The exit status is 1 if TensorFlow cannot be imported.",
    )
    parser.parse_args(arguments)
    print(f"tf-lossscale   {VERSION}")
    print(f"Python         {platform.python_version()}")
    try:
        from tf_lossscale._versions.base import tf
        from tf_lossscale._versions.keras import keras_packages
    except Exception as error:  # a broken TensorFlow raises all kinds
        if isinstance(error, MemoryError) or getattr(error, "strerror", None):
            raise  # the machine is at fault
        _print_import_error(error)
        return 1
    print(f"TensorFlow     {tf.__version__}")
    for name, version in keras_packages():
        print(f"{name:<14} {version}")
    print(f"migrate        {migration_target()}")
    _print_names(tf)
    print(
        "\n`tf-lossscale run SCRIPT` runs a script with the missing names supplied;"
        "\n`tf-lossscale migrate` rewrites code that uses them."
    )
    return 0


def _print_import_error(error: Exception) -> None:
    """Prints that TensorFlow is missing, or what it raised when it was imported."""
    is_missing = getattr(error, "name", None) == "tensorflow"
    print(f"TensorFlow     {'none' if is_missing else 'cannot be imported'}")
    print(f"migrate        {migration_target()}")
    sys.stdout.flush()  # if that fails, it is the only message
    how = "" if is_missing else "Reinstall TensorFlow, or the package that this error names: "
    print(f"\n{how}{error if is_missing else repr(error)}", file=sys.stderr)


def _print_names(tf: Any) -> None:
    """Prints for each namespace which legacy names are in this TensorFlow, and which are not."""
    print("\nNames in this TensorFlow, and names that `import tf_lossscale as tfls` supplies:")
    width = max(map(len, _paths.NAMESPACES)) + len("tf.")
    for namespace, symbols in _paths.NAMESPACES.items():
        print(f"\n{'tf.' + namespace:<{width}}")
        owner: Any = tf
        for part in namespace.split("."):
            owner = getattr(owner, part, None)
        for title, is_there in (("in TensorFlow", True), ("from the shim", False)):
            names = [name for name in sorted(symbols) if hasattr(owner, name) is is_there]
            if names:
                print(f"  {title}    {', '.join(names)}")


def migration_target() -> str:
    """The Keras version that `migrate` targets in the working directory, and why."""
    if sys.version_info < CODEMODS_PYTHON:
        return "not available: it needs Python 3.9 or later"
    try:
        from tf_lossscale_codemods.cli.search import keras_of_directory
        from tf_lossscale_codemods.cli.settings import SettingsError
    except ImportError as error:  # in the source folder, where the codemods have another name
        return f"not available: {error}"
    try:
        return keras_of_directory()
    except (SettingsError, OSError) as error:
        return f"cannot run here: {error}"


OTHERS = {
    "run": scripts.run,
    "record": scripts.record,
    "show": _show,
    "compare": _compare,
    "checkpoint": _checkpoint,
    "doctor": _doctor,
}


if __name__ == "__main__":
    sys.exit(main())
