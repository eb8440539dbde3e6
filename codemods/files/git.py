"""All calls to git, made so that git runs no program that the repository chooses.

The configuration of a repository can name programs that git runs: for `core.fsmonitor`, hooks,
filters (even `git status` runs `filter.*.clean`), external diffs, text conversion, aliases,
credentials, and the transports of a partial clone. So this module calls only commands that
compare or print stored objects, the index, and the names of files; they write nothing. Options that
take precedence over the configuration turn off what could still run, filters by their names, and
nothing is fetched. Git gets none of its environment variables, except those that name the files of
the user's own settings, no input except what is passed here, and limits on its time and output.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import IO, TYPE_CHECKING, Optional

if TYPE_CHECKING:
    import subprocess

__all__ = ["GitError", "LateError", "is_safe", "run", "top_of", "without_filters"]

_SECONDS = 120.0
"""More than any repository needs."""

_STUCK_SECONDS = 1.0
"""Time after which git is ended if it only waits, as it does forever for a pipe in place of a file.
"""

_TICK = 0.25

_MOST_OUTPUT = 512 * 1024**2

_SLEEPS = re.compile(rb"^State:\s*S.*^(voluntary_ctxt_switches:\s*\d+)$", re.MULTILINE | re.DOTALL)

_OFF = {
    "core.fsmonitor": "",
    "core.hooksPath": os.devnull,
    "core.sshCommand": "false",
    "core.askPass": "",
    "core.pager": "cat",
    "core.alternateRefsCommand": "false",
    "core.attributesFile": os.devnull,
    "core.untrackedCache": "false",
    "core.quotePath": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # takes precedence over `protocol.ext.allow` in the repository
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class GitError(Exception):
    """Git cannot be run or has failed; the message continues a sentence that ends in "git"."""


class LateError(GitError):
    """Git exceeded its time limit."""


def top_of(path: str) -> Optional[str]:
    """The top of the git work tree that contains `path`, found without git; None if there is none.

    Any kind of `.git` counts: a directory, the file of a submodule or a linked work tree, a link.
    Unlike git, this does not continue above a damaged `.git`.
    """
    above = os.path.realpath(path)
    while not os.path.lexists(os.path.join(above, ".git")):
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent
    return above


def is_safe(path: str) -> bool:
    """Whether git works in the work tree that contains a directory, whoever owns it.

    Git refuses the work trees of other users, except those that `safe.directory` in the settings of
    the user or the system names. The settings of the work tree itself do not count for that.
    """
    top = top_of(path)
    try:
        return top is not None and bool(run(top, "rev-parse", "--git-dir"))
    except GitError:
        return False


def run(top: str, *arguments: str, data: bytes = b"", seconds: float = 0.0) -> bytes:
    """Runs a plumbing command in the work tree `top`, and returns its output.

    Args:
      top: the directory that contains `.git`.
      arguments: the command and its arguments.
      data: the input of the command.
      seconds: a time limit; 0 means the default.

    Raises:
      GitError: if git is not installed, ends with another status, or takes too long.
    """
    # Late: outside of git work trees, the command needs none of them.
    import shutil
    import subprocess
    import tempfile

    program = shutil.which("git", path=_search_path())
    if program is None:
        raise GitError("cannot be run (No such file or directory)")
    command = [
        # With optional locks, git could rewrite the index.
        *(program, "--no-pager", "--no-optional-locks", "--literal-pathspecs"),
        f"--work-tree={top}",  # takes precedence over `core.worktree`
        *(word for key, value in _OFF.items() for word in ("-c", f"{key}={value}")),
        *arguments,
    ]
    try:
        with contextlib.ExitStack() as stack:
            files = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            given, answer, errors = files
            given.write(data)
            given.seek(0)
            process = subprocess.Popen(
                command, cwd=top, env=_environment(top), stdin=given, stdout=answer, stderr=errors
            )
            status = _answer(process, answer, seconds or _SECONDS)
            answer.seek(0)
            errors.seek(0)
            if status:
                lines = errors.read(1000).decode("utf-8", "replace").strip().splitlines()
                raise GitError(f"failed ({' '.join(lines[:1])})")
            return answer.read()
    except OSError as error:
        raise GitError(f"cannot be run ({error.strerror})") from None


def without_filters(top: str) -> list[str]:
    """The options that turn off every filter that the configuration of a work tree defines.

    Raises:
      GitError: if git fails, or if the name of a filter cannot be written as an option.
    """
    listed = run(top, "config", "--list", "--name-only", "-z")
    names = {key.rpartition(".")[0] for key in os.fsdecode(listed).split("\0")}
    filters = sorted(name for name in names if name.startswith("filter."))
    if any("=" in name for name in filters):
        raise GitError("has a filter with an equals sign in its name")
    settings = [f"{name}.{key}" for name in filters for key in ("clean=", "process=", "required=0")]
    return [argument for setting in settings for argument in ("-c", setting)]


def _answer(process: subprocess.Popen[bytes], output: IO[bytes], seconds: float) -> int:
    """Waits for the process, and returns its exit status.

    Raises:
      GitError: if it takes too long or prints too much; it is ended.
    """
    import subprocess

    waits, before = 0.0, None
    end = time.monotonic() + seconds
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_TICK)
            if os.fstat(output.fileno()).st_size > _MOST_OUTPUT:
                raise GitError("printed too much output")
            now = _switches(process.pid)
            waits = waits + _TICK if now is not None and now == before else 0.0
            before = now
            if waits >= _STUCK_SECONDS:
                raise LateError("is stuck, perhaps at a pipe in place of a file")
            if time.monotonic() > end:
                raise LateError(f"did not answer within {seconds:g} seconds")
    finally:
        process.kill()
        process.wait()


def _switches(process: int) -> Optional[bytes]:
    """How often a sleeping process has gone to sleep so far; None if it runs, or if unknown.

    While it waits for a single event, this stays the same. A process that reads from a disk does
    not count as sleeping, even if the disk is slow.
    """
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            status = file.read()
    except OSError:  # not Linux, or it has ended
        return None
    found = _SLEEPS.search(status)
    return found[1] if found else None


def _search_path() -> str:
    """The absolute entries of the PATH; the repository could control relative ones."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, entries))


def _environment(top: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):  # where the user's settings are
        if os.path.isabs(os.environ.get(name, "")):
            kept[name] = os.environ[name]
    if "GIT_CONFIG_NOSYSTEM" in os.environ:
        kept["GIT_CONFIG_NOSYSTEM"] = os.environ["GIT_CONFIG_NOSYSTEM"]
    # Keeps git from searching above `top`, where it could find another repository.
    ceiling = {"GIT_CEILING_DIRECTORIES": os.path.dirname(top), "PATH": _search_path()}
    return {**kept, **_ENVIRONMENT, **ceiling}
