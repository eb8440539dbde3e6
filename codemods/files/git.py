"""Every call of git, in one place and in a form that runs nothing of the repository.

The configuration of a repository can name programs that git runs: for `core.fsmonitor`, hooks,
filters (`filter.*.clean` runs in a mere `git status`), external diffs, text conversion, aliases,
credentials, the transports of a partial clone. So only plumbing is called here, and only such that
compares or prints stored objects and the index. None of it reads the content of a file of the work
tree, which is where filters come in, and none writes. What could still run is switched off by
options that come before the repository's own, and nothing is fetched. Environment variables of git
do not reach it. It has no input but what is passed here, a time limit, and a limit of its output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Optional

__all__ = ["GitError", "LateError", "run", "top_of", "user_path"]

_SECONDS = 120.0
"""More than any repository needs; a pipe in the place of a file would hold git for ever."""

_MOST_OUTPUT = 512 * 1024**2

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
    "GIT_ALLOW_PROTOCOL": "",  # wins over `protocol.ext.allow` of the repository
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class GitError(Exception):
    """Git cannot be run, or does not answer; the message continues "…, but git"."""


class LateError(GitError):
    """Git was ended, as it took too long."""


def top_of(path: str) -> Optional[str]:
    """The top of the git work tree that holds `path`, found without git; None outside any.

    A `.git` of any kind counts: a directory, the file of a submodule or of a second work tree, a
    link. Where git would find it damaged and go further up, this does not.
    """
    above = os.path.realpath(path)
    while not os.path.lexists(os.path.join(above, ".git")):
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent
    return above


def run(
    top: str,
    *arguments: str,
    data: bytes = b"",
    statuses: Sequence[int] = (0,),
    seconds: Optional[float] = None,
) -> bytes:
    """What the plumbing command prints about the work tree `top`.

    Args:
      top: the directory that holds `.git`.
      arguments: the command and its arguments.
      data: its input.
      statuses: the exit statuses that are an answer.
      seconds: that it may take, where that is less than usual.

    Raises:
      GitError: there is no git, it ends with another status, or takes too long.
    """
    # --work-tree wins over `core.worktree`.
    command = [f"--work-tree={top}", *_switched_off(), *arguments]
    limit = _SECONDS if seconds is None else min(seconds, _SECONDS)
    answer, status, said = _run(command, top, _environment(top), limit, data)
    if status not in statuses:
        raise GitError(f"does not tell its state ({said})")
    return answer


def user_path(key: str) -> Optional[str]:
    """The path that `key` has in the configuration of the user or the system; None: not set.

    No repository is looked at, so none can set it; nor does a condition on it (`includeIf
    "gitdir:…"`) hold.

    Raises:
      GitError: there is no git, or it cannot read its configuration.
    """
    environment = _environment(os.sep)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):  # where these files are
        if os.path.isabs(os.environ.get(name, "")):
            environment[name] = os.environ[name]
    if "GIT_CONFIG_NOSYSTEM" in os.environ:
        environment["GIT_CONFIG_NOSYSTEM"] = os.environ["GIT_CONFIG_NOSYSTEM"]
    environment["GIT_DIR"] = os.devnull  # which is none, and keeps git from searching for one
    command = ["config", "-z", "--path", "--get", key]
    answer, status, said = _run(command, os.sep, environment, _SECONDS)
    if status not in (0, 1):
        raise GitError(f"does not tell its configuration ({said})")
    return os.fsdecode(answer.rstrip(b"\0")) if status == 0 else None


def _switched_off() -> list[str]:
    return [argument for key, value in _OFF.items() for argument in ("-c", f"{key}={value}")]


def _run(
    arguments: Sequence[str],
    directory: str,
    environment: dict[str, str],
    seconds: float,
    data: bytes = b"",
) -> tuple[bytes, int, str]:
    """What git prints, its exit status, and the first line of its errors."""
    # With optional locks git could rewrite the index.
    command = [_program(), "--no-pager", "--no-optional-locks", "--literal-pathspecs", *arguments]
    try:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
            given.write(data)
            given.seek(0)
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdin=given if data else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            answer, status = _answer(process, seconds)
            errors.seek(0)
            said = errors.read(1000).decode("utf-8", "replace").strip().splitlines()
    except OSError as error:
        raise GitError(f"cannot be run ({error.strerror})") from None
    return answer, status, " ".join(said[:1])


def _answer(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, int]:
    """What the process prints, and its exit status.

    Raises:
      GitError: it took too long or printed too much, and was ended.
    """
    assert process.stdout is not None
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        answer = process.stdout.read(_MOST_OUTPUT + 1)
        if len(answer) > _MOST_OUTPUT:
            raise GitError("tells more than can be read")
        status = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.stdout.close()
        process.wait()
    if late.is_set():
        raise LateError(f"did not answer within {seconds:g} seconds")
    return answer, status


def _program() -> str:
    """The git of the PATH, without entries that depend on the working directory.

    Those could be the repository's.

    Raises:
      GitError: there is none.
    """
    path = _search_path()
    found = shutil.which("git", path=path) if path else None
    if found is None or not os.path.isabs(found):
        raise GitError("cannot be run (No such file or directory)")
    return found


def _search_path() -> str:
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(one for one in entries if os.path.isabs(one))


def _environment(top: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Git does not search above `top`, where it would answer for another repository.
    ceiling = {"GIT_CEILING_DIRECTORIES": os.path.dirname(top), "PATH": _search_path()}
    return {**kept, **_ENVIRONMENT, **ceiling}
