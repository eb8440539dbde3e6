"""Reads the facts about the files of a run before any of them is rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Callable

from ..run.modules import Modules
from ..run.names import Names
from .limits import Limits
from .pool import process_all
from .results import Plan
from .worker import Task

__all__ = ["survey"]

_ROUNDS = 40
"""How far names are followed through files, each of which is known only when it is asked for."""


def survey(
    candidates: Sequence[str],
    files: Iterable[str],
    shown: Callable[[str], str],
    plan: Plan,
    jobs: int,
    limits: Limits,
) -> Names:
    """What the names of the run mean, as far as files that a rule could apply to need them.

    Args:
      candidates: the absolute paths of these files.
      files: the absolute paths of all files of the run.
      shown: converts an absolute path to the one in reports.
      plan: what will be done with each file; nothing is written here.
      jobs: the number of worker processes.
      limits: the limits on one file.
    """
    modules = Modules(files)
    names = Names(modules, shown)
    python = [file for file in candidates if not file.endswith(".ipynb")]
    if not python or len(modules) < 2:
        return names
    wanted = python
    for _ in range(_ROUNDS):
        tasks = [Task(file, file, is_question=True) for file in wanted]
        for outcome in process_all(tasks, plan, min(jobs, len(tasks)), limits):
            names.add(outcome.path, outcome.facts)
        python = [file for file in python if not names.is_complete(file)]
        wanted = sorted(names.wanted)
        if not wanted:
            break
    return names
