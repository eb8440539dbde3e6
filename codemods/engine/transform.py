"""Transforms sources: prefilter, parse, resolve names, run the rules, apply, check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

import libcst as cst

from ..model import FileError, FileResult, Options
from ..resolve.program import Program
from ..rules.registry import rules
from ..rules.rule import Rule
from .apply import applied
from .parse import parsed, round_trip_error
from .prefilter import may_concern
from .render import Rendered, rendered
from .suppressions import may_suppress

__all__ = ["transform", "transform_sources"]

_NO_NAME = "no legacy name in it"
_NOTHING = "no legacy symbol in it"
_DEEP = FileError("", 0, "is nested too deeply to be edited; split the deepest expression")

_Tree = Optional[cst.Module]


def transform(source: bytes, options: Options) -> FileResult:
    """Transforms one file. Never raises: errors are part of the result."""
    return transform_sources([source], options)[0]


def transform_sources(
    sources: Sequence[bytes], options: Options, only: Optional[Iterable[Rule]] = None
) -> list[FileResult]:
    """Transforms sources that share their global names, in order, such as notebook cells.

    Args:
      sources: the cells, or one file.
      options: how to rewrite them.
      only: the rules to run; by default all.
    """
    if not any(may_concern(source) for source in sources):
        return [FileResult(source, note=_NO_NAME) for source in sources]
    modules: list[_Tree] = []
    errors: list[Optional[FileError]] = []
    for source in sources:
        module = parsed(source)
        errors.append(module if isinstance(module, FileError) else None)
        modules.append(None if isinstance(module, FileError) else module)
    active = tuple(rules() if only is None else only)
    try:
        while True:
            results = _results(sources, modules, errors, options, active)
            if results is not None:
                return results
    except RecursionError:
        return [FileResult(source, error=_DEEP) for source in sources]


def _results(
    sources: Sequence[bytes],
    modules: list[_Tree],
    errors: list[Optional[FileError]],
    options: Options,
    active: Sequence[Rule],
) -> Optional[list[FileResult]]:
    """Returns the results, or None if a tree failed the round-trip check and was removed."""
    program = Program(modules, options)
    proposals = [
        proposal
        for rule in active
        for proposal in rule.proposals(program)
        if options.selects(proposal.code)
    ]
    if not proposals and not any(may_suppress(source) for source in sources):
        return [
            FileResult(source, error=error, note="" if error else _NOTHING)
            for source, error in zip(sources, errors)
        ]
    wanted = frozenset(proposal.node for proposal in proposals)
    texts: list[Optional[Rendered]] = []
    for index, (source, module) in enumerate(zip(sources, modules)):
        text = None if module is None else rendered(module, index, wanted)
        texts.append(text)
        if module is not None and text is not None:
            errors[index] = round_trip_error(module, text.text, source)
            if errors[index] is not None:
                modules[index] = None
                return None
    return applied(program, sources, errors, texts, proposals)
