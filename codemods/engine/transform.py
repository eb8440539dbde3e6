"""Transforms sources: prefilter, parse, resolve names, run the rules, apply, check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

import libcst as cst

from ..model import FileError, FileResult, Options, SourceError
from ..resolve.guard_removal import resolved_program
from ..resolve.neighbors import NOBODY, Neighbors
from ..rules.registry import rules
from ..rules.rule import Rule
from .apply import applied
from .names_seen import why_nothing
from .parse import parsed, round_trip_error
from .prefilter import may_concern
from .render import Rendered, rendered
from .suppressions import may_suppress

__all__ = ["transform", "transform_sources"]

_NO_NAME = "no legacy name in it"
_NOT_SELECTED = "the selected rules find nothing in it; others do"
_DEEP = SourceError(0, "is nested too deeply to be edited; split the deepest expression")
_UNNAMED = "<source>"

_Tree = Optional[cst.Module]


def transform(
    source: bytes, options: Options, path: str = _UNNAMED, neighbors: Neighbors = NOBODY
) -> FileResult:
    """Transforms one file that the prefilter has let through.

    Never raises: errors are part of the result.
    """
    return _transformed([source], options, rules(), path, neighbors)[0]


def transform_sources(
    sources: Sequence[bytes],
    options: Options,
    only: Optional[Iterable[Rule]] = None,
    path: str = _UNNAMED,
    neighbors: Neighbors = NOBODY,
) -> list[FileResult]:
    """Transforms sources that share their global names, in order, such as notebook cells.

    Args:
      sources: the cells, or one file. They are parsed only if one contains a legacy name.
      options: how to rewrite them.
      only: the rules to run; by default all.
      path: the file that they are from, as reports show it.
      neighbors: what the other files of the run tell about them.
    """
    if not any(may_concern(source) for source in sources):
        return [FileResult(source, note=_NO_NAME) for source in sources]
    active = tuple(rules() if only is None else only)
    return _transformed(sources, options, active, path, neighbors)


def _transformed(
    sources: Sequence[bytes],
    options: Options,
    active: Sequence[Rule],
    path: str,
    neighbors: Neighbors = NOBODY,
) -> list[FileResult]:
    modules: list[_Tree] = []
    errors: list[Optional[FileError]] = []
    for source in sources:
        module = parsed(source)
        errors.append(FileError(path, *module) if isinstance(module, SourceError) else None)
        modules.append(None if isinstance(module, SourceError) else module)
    try:
        while True:
            results = _results(sources, modules, errors, options, active, path, neighbors)
            if results is not None:
                return results
    except RecursionError:
        return [FileResult(source, error=FileError(path, *_DEEP)) for source in sources]


def _results(
    sources: Sequence[bytes],
    modules: list[_Tree],
    errors: list[Optional[FileError]],
    options: Options,
    active: Sequence[Rule],
    path: str,
    neighbors: Neighbors,
) -> Optional[list[FileResult]]:
    """Returns the results, or None if a tree failed the round-trip check and was removed."""
    program = resolved_program(modules, options, neighbors)
    found = [proposal for rule in active for proposal in rule.proposals(program)]
    proposals = [proposal for proposal in found if options.selects(proposal.code)]
    if not proposals and not any(may_suppress(source) for source in sources):
        note = _NOT_SELECTED if found else why_nothing(program, sources)
        return [
            FileResult(source, error=error, note="" if error else note)
            for source, error in zip(sources, errors)
        ]
    wanted = frozenset(proposal.node for proposal in proposals)
    texts: list[Optional[Rendered]] = []
    for index, (source, module) in enumerate(zip(sources, modules)):
        text = None if module is None else rendered(module, index, wanted)
        texts.append(text)
        if module is not None and text is not None:
            problem = round_trip_error(module, text.text, source)
            if problem is not None:
                errors[index] = FileError(path, *problem)
                modules[index] = None
                return None
    return applied(program, sources, errors, texts, proposals, path)
