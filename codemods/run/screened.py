"""The files of a run that needs no LibCST: no file with a legacy word has a place to migrate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from ..files.discover import Candidate
from ..model import FileResult
from .limits import Limits
from .pool import Workers
from .results import Job, JobKind, Plan, Spool

__all__ = ["results_without_places"]


def results_without_places(
    candidates: Sequence[Candidate], plan: Plan, limits: Limits
) -> Optional[Spool[FileResult]]:
    """The results for files that nothing happens to; None if one of them can have a place.

    If one can, the caller processes all of them from the start, because a place can depend on what
    other files bind. The search ends at the first such file.

    Args:
      candidates: the files with legacy words.
      plan: what to do with each file.
      limits: the limits on one file.
    """
    if any(candidate.is_data for candidate in candidates):
        return None
    results = Spool[FileResult]()
    jobs = [Job(JobKind.SCREEN, candidate.path, candidate.real) for candidate in candidates]
    with Workers(plan, limits, 1) as workers:
        for number, result in workers.do(jobs):
            if not isinstance(result, FileResult):
                return None
            results[number] = result
    return results
