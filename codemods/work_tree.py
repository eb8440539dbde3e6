"""Whether git could give back what a run is about to overwrite."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from typing import Optional

from .discover import SUFFIXES

__all__ = ["why_dirty"]


def why_dirty(paths: Iterable[str]) -> Optional[str]:
    """Why the files below `paths` must not be written; None where nothing stands against it.

    A work tree is dirty when a tracked file has changes that are not committed, or when a file of a
    kind that we rewrite is not tracked at all: of neither could git bring the old state back.
    """
    asked: set[str] = set()
    for path in paths:
        top = _top(path)
        if top is not None and top not in asked:
            asked.add(top)
            why = _why(top)
            if why is not None:
                return why
    return None


def _top(path: str) -> Optional[str]:
    above = os.path.realpath(path)
    while not os.path.exists(os.path.join(above, ".git")):
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent
    return above


def _why(top: str) -> Optional[str]:
    command = [
        "git",
        "--no-optional-locks",
        "-C",
        top,
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
    ]
    try:
        ran = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        return f"{top} is a git work tree, but git cannot be run ({error.strerror})"
    if ran.returncode != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"{top} is a git work tree, but git does not tell its state ({' '.join(said[:1])})"
    changed = [
        entry for entry in ran.stdout.decode("utf-8", "replace").split("\0") if _counts(entry)
    ]
    if not changed:
        return None
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"{top} has changes that are not committed: {changed[0][3:]}{more}"


def _counts(entry: str) -> bool:
    return bool(entry) and (not entry.startswith("??") or entry.endswith(SUFFIXES))
