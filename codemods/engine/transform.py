"""Transforms sources: prefilter, parse, resolve names, run the rules, apply, check.

A source is parsed and resolved once. The rules then run for the final API; if a place needs the
shim, they run again with its group of symbols there. Other files can decide that further groups go
to the shim, so the result for these is made from the same tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Callable, Optional

import libcst as cst

from ..model import (
    ALONE,
    FileError,
    FileFacts,
    FileResult,
    Group,
    Options,
    SourceError,
    Surroundings,
    with_followers,
)
from ..resolve.classes import may_compile
from ..resolve.guards import keep_guards
from ..resolve.mentions import classes_named
from ..resolve.program import Program
from ..rewrite.proposal import Proposal
from ..rules.codes import rules
from ..rules.rule import Rule
from ..rules.to_shim import notes
from .apply import NOTHING, applied, needs_of, without_edits
from .comments import Suppressions, may_suppress
from .parse import parsed, round_trip_error
from .prefilter import may_concern
from .render import Place, Rendered, rendered

__all__ = ["Transformation", "transform", "transform_sources"]

_NO_NAME = "no legacy name in it"
_NOT_SELECTED = "the selected rules find nothing in it; others do"
_DEEP = SourceError(0, "is nested too deeply to be edited; split the deepest expression")
_UNNAMED = "<source>"
_MOST_VARIANTS = 3
"""Groups of one file that other files can send to the shim one by one; more go together."""


def transform(
    source: bytes,
    options: Options,
    path: str = _UNNAMED,
    surroundings: Surroundings = ALONE,
    with_variants: bool = False,
) -> FileResult:
    """Transforms one file that the prefilter has let through.

    Never raises: errors are part of the result.

    Args:
      source: the bytes of the file.
      options: how to rewrite them.
      path: the path of the file, as reports show it.
      surroundings: what the search has seen in the other files of the run.
      with_variants: whether other files can decide that more groups of symbols go to the shim.
    """
    work = Transformation([source], options, None, path, surroundings)
    return work.joined(lambda results: results[0], with_variants)


def transform_sources(
    sources: Sequence[bytes],
    options: Options,
    only: Optional[Iterable[Rule]] = None,
    path: str = _UNNAMED,
) -> list[FileResult]:
    """Transforms sources that share their global names, in order, such as notebook cells.

    Args:
      sources: the cells, or one file. They are parsed only if one contains a legacy name.
      options: how to rewrite them.
      only: the rules to run; by default all.
      path: the file that they are from, as reports show it.
    """
    if not any(may_concern(source) for source in sources):
        return [FileResult(source, note=_NO_NAME) for source in sources]
    return Transformation(sources, options, only, path).results()


class Transformation:
    """Sources that share their global names, parsed and resolved; the arguments are those above."""

    def __init__(
        self,
        sources: Sequence[bytes],
        options: Options,
        only: Optional[Iterable[Rule]] = None,
        path: str = _UNNAMED,
        surroundings: Surroundings = ALONE,
    ) -> None:
        self._sources = sources
        self._path = path
        self._rules = tuple(rules() if only is None else only)
        self._modules: list[Optional[cst.Module]] = []
        self._errors: list[Optional[FileError]] = []
        self._texts: list[Optional[Rendered]] = []
        self._rendered: frozenset[cst.CSTNode] = frozenset()
        for source in sources:
            module = parsed(source)
            error = FileError(path, *module) if isinstance(module, SourceError) else None
            self._errors.append(error)
            self._modules.append(None if isinstance(module, SourceError) else module)
        self._program: Optional[Program] = None
        try:
            self._program = self._resolved(options, surroundings)
        except RecursionError:
            self._errors = [FileError(path, *_DEEP) for _ in sources]

    def _resolved(self, options: Options, surroundings: Surroundings) -> Program:
        """The program; a source that the parser does not reproduce is left out of it."""
        while True:
            program = Program(self._modules, options, surroundings)
            keep_guards(program)
            decided = self._decided(program)
            if decided is not None:
                return decided

    def _decided(self, program: Program) -> Optional[Program]:
        """The program with the groups on the shim that need it; None if a source was left out."""
        while True:
            proposals = self._proposals(program)
            if not proposals:
                return program
            if not self._render(proposals):
                return None
            suppressions = Suppressions(self._texts)
            needs = needs_of(program, proposals, self._places(), suppressions)
            if not needs.groups:
                return program
            groups = with_followers(needs.groups, may_compile(program))
            program = program.with_on_shim(groups, needs.notes)

    def _proposals(self, program: Program) -> list[Proposal]:
        found = [proposal for rule in self._rules for proposal in rule.proposals(program)]
        found += notes(program, found)
        left_out = [one for one in found if not program.options.selects(one.code)]
        selected = [one for one in found if program.options.selects(one.code)]
        return without_edits(selected, left_out)

    def _render(self, proposals: Sequence[Proposal]) -> bool:
        """Finds the places of the proposals; False if a source cannot be reproduced."""
        wanted = frozenset(proposal.node for proposal in proposals)
        if self._texts and wanted <= self._rendered:
            return True
        self._rendered |= wanted
        self._texts = []
        for index, (source, module) in enumerate(zip(self._sources, self._modules)):
            text = None if module is None else rendered(module, index, self._rendered)
            self._texts.append(text)
            if module is not None and text is not None:
                problem = round_trip_error(module, text.text, source)
                if problem is not None:
                    self._errors[index] = FileError(self._path, *problem)
                    self._modules[index] = None
                    return False
        return True

    def _places(self) -> dict[cst.CSTNode, Place]:
        return {node: at for text in self._texts if text for node, at in text.places.items()}

    def results(self, on_shim: Collection[Group] = ()) -> list[FileResult]:
        """The result for each source, with further groups of symbols on the shim."""
        if self._program is None:
            pairs = zip(self._sources, self._errors)
            return [FileResult(source, error=error) for source, error in pairs]
        try:
            return self._results(self._program.with_on_shim(on_shim))
        except RecursionError:
            error = FileError(self._path, *_DEEP)
            return [FileResult(source, error=error) for source in self._sources]

    def _results(self, program: Program) -> list[FileResult]:
        proposals = self._proposals(program)
        if not proposals and not any(may_suppress(source) for source in self._sources):
            is_empty = not any(True for rule in self._rules for _ in rule.proposals(program))
            note = NOTHING if is_empty else _NOT_SELECTED
            return [
                FileResult(source, error=error, note="" if error else note)
                for source, error in zip(self._sources, self._errors)
            ]
        self._render(proposals)
        return applied(program, self._sources, self._errors, self._texts, proposals, self._path)

    def joined(
        self, join: Callable[[list[FileResult]], FileResult], with_variants: bool
    ) -> FileResult:
        """The result for the file that `join` puts together, with its variants if requested."""
        result = join(self.results())
        if not with_variants or result.error is not None:
            return result
        variants = {groups: join(self.results(groups)) for groups in self._choices()}
        return result._replace(facts=self.facts, variants=variants)

    @property
    def facts(self) -> FileFacts:
        """What the other files of the program must know."""
        program = self._program
        if program is None:
            return FileFacts()
        groups = frozenset(one.legacy.group for one in program.references if one.legacy.rule)
        scope = program.scopes.module_scope
        bound = {name: program.origins.of_name(name, scope) for name in scope.bindings}
        if scope.stars:
            bound["*"] = frozenset(path for _, path in scope.stars)
        return FileFacts(
            groups=groups - program.on_shim,
            on_shim=program.on_shim,
            classes=classes_named(program),
            bound=bound,
        )

    def _choices(self) -> list[frozenset[Group]]:
        """The sets of groups that other files can send to the shim."""
        groups = sorted(self.facts.groups, key=lambda group: group.value)
        if len(groups) > _MOST_VARIANTS:
            return [frozenset(groups)]
        sizes = range(1, len(groups) + 1)
        return [
            frozenset(chosen) for size in sizes for chosen in itertools.combinations(groups, size)
        ]
