"""Transforms a file: prefilter, parse, resolve names, run the rules, edit, check.

A file is parsed and resolved once. The rules then run for the final API; if a place needs the shim,
they run again with its group of symbols there. Other files can decide that further groups go to the
shim, so the results for these are made from the same trees.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Optional, Union

from ..files.excludes import NOTEBOOK
from ..model import (
    ALONE,
    FileError,
    FileFacts,
    FileResult,
    Finding,
    Group,
    Options,
    Surroundings,
    with_followers,
)
from ..resolve.classes import may_compile
from ..resolve.guards import keep_guards
from ..resolve.mentions import classes_named
from ..resolve.program import Program
from ..resolve.tree import rebuilt
from ..rewrite.proposal import Proposal
from ..rules.registry import rules
from ..rules.rule import Rule
from ..rules.to_shim import notes
from .apply import edits_of, is_done, reasons_for_shim, without_edits
from .comments import Suppressions, may_suppress
from .notebook import Notebook
from .parse import SourceError
from .prefilter import may_concern
from .render import Source

__all__ = ["transform"]

_NO_NAME = "no legacy name in it"
_NOT_SELECTED = "the selected rules find nothing in it; others do"
_NOTHING = "no symbol to migrate in it: its names are not TensorFlow's, or migrated already"
_SILENCED = "comments silence all findings in it"
_ONLY_FINDINGS = "no edit is possible; see the findings"
_DEEP = "is nested too deeply to be edited; split the deepest expression"
_MOST_VARIANTS = 3
"""Groups of one file that other files can send to the shim one by one; more go together."""


def transform(
    source: bytes,
    options: Options,
    path: str = "<source>",
    surroundings: Surroundings = ALONE,
    only: Optional[Sequence[Rule]] = None,
) -> FileResult:
    """Transforms one file. An error in it is part of the result.

    Args:
      source: the bytes of the file.
      options: how to rewrite them.
      path: the path of the file, as reports show it; the suffix `.ipynb` means a notebook.
      surroundings: what the search has seen in the other files of the run.
      only: the rules to run; by default all.
    """
    if not may_concern(source):
        return FileResult(source, note=_NO_NAME)
    try:
        document = Notebook(source) if path.endswith(NOTEBOOK) else _PythonFile(source)
        if not any(map(may_concern, document.sources)):
            found = [document.placed(*one) for one in document.findings(path, options)]
            return FileResult(source, tuple(found), note=document.note or _NO_NAME)
        work = _Transformation(document, options, path, surroundings, only)
        result = work.result()
        if surroundings.shares:
            facts = work.facts()
            variants = {groups: work.result(groups) for groups in _choices(facts.groups)}
            result = result._replace(facts=facts, variants=variants)
        return result
    except SourceError as error:
        found_error = FileError(path, error.line, error.message, error.is_syntax)
    except RecursionError:
        found_error = FileError(path, 0, _DEEP)
    return FileResult(source, error=found_error)


class _PythonFile:
    """A file that is one source, with the methods of `Notebook`."""

    note = ""

    def __init__(self, data: bytes) -> None:
        self.sources = [data]

    def with_sources(self, sources: Sequence[bytes]) -> bytes:
        return sources[0]

    def findings(self, path: str, options: Options) -> Collection[tuple[int, Finding]]:
        return ()

    def placed(self, index: int, finding: Finding) -> Finding:
        return finding

    def error(self, index: int, error: SourceError) -> SourceError:
        return error


class _Transformation:
    """A file, parsed and resolved.

    Attributes:
      program: its sources, with the groups on the shim that need it once there is a result.

    Raises:
      SourceError: if a source cannot be parsed; `result` raises it if one cannot be edited.
    """

    def __init__(
        self,
        document: Union[Notebook, _PythonFile],
        options: Options,
        path: str,
        surroundings: Surroundings,
        only: Optional[Sequence[Rule]],
    ) -> None:
        self._document = document
        self._path = path
        self._rules = rules() if only is None else only
        self._sources: list[Source] = []
        for index, data in enumerate(document.sources):
            with self._in(index):
                self._sources.append(Source(data, index))
        self.program = Program([one.module for one in self._sources], options, surroundings)
        keep_guards(self.program)

    @contextlib.contextmanager
    def _in(self, index: int) -> Iterator[None]:
        """Gives errors in a source their place in the file."""
        try:
            yield
        except SourceError as error:
            raise self._document.error(index, error) from None

    def result(self, on_shim: Collection[Group] = ()) -> FileResult:
        """The result with further groups of symbols on the shim."""
        program = self.program.with_on_shim(on_shim)
        while True:
            found = [one for rule in self._rules for one in rule.proposals(program)]
            found += notes(program, found)
            selected = [one for one in found if program.options.selects(one.code)]
            suppressions = self._located(selected)
            silenced = [
                one for one in selected if suppressions.silence(one.code, self._places[one.node])
            ]
            reasons = reasons_for_shim(program, selected, silenced)
            if not reasons:
                break
            groups = frozenset(one.group for one in reasons if one.group is not None)
            by_node = {one.node: one for one in reversed(reasons)}  # the first counts
            program = program.with_on_shim(with_followers(groups, may_compile(program)), by_node)
        if not on_shim:
            self.program = program
        return self._edited(program, found, selected, silenced, suppressions)

    def _located(self, proposals: Sequence[Proposal]) -> Suppressions:
        """Finds the places of the proposals, and the comments."""
        nodes = frozenset(one.node for one in proposals)
        if nodes or any(may_suppress(source.data) for source in self._sources):
            for index, source in enumerate(self._sources):
                with self._in(index):
                    source.locate(nodes)
        self._places = {node: at for one in self._sources for node, at in one.places.items()}
        return Suppressions(self._sources)

    def _edited(
        self,
        program: Program,
        found: Sequence[Proposal],
        selected: Sequence[Proposal],
        silenced: Sequence[Proposal],
        suppressions: Suppressions,
    ) -> FileResult:
        left_out = [one for one in found if not program.options.selects(one.code)]
        ids = set(map(id, silenced))
        shown = [one for one in selected if id(one) not in ids]
        shown = without_edits(shown, [*left_out, *silenced])
        edits = edits_of(program, shown, {one.node for one in silenced})
        data = list(self._document.sources)
        for index, source in enumerate(self._sources):
            module = rebuilt(source.module, edits, program.parents)
            if module is not None:
                with self._in(index):
                    data[index] = source.edited(module)
        findings = self._findings(program, shown, suppressions)
        if edits:
            note = ""
        elif findings:
            note = _ONLY_FINDINGS
        elif silenced:
            note = _SILENCED
        else:
            note = _NOT_SELECTED if left_out else _NOTHING
        return FileResult(self._document.with_sources(data), tuple(findings), note=note)

    def _findings(
        self, program: Program, proposals: Sequence[Proposal], suppressions: Suppressions
    ) -> list[Finding]:
        found: list[tuple[int, Finding]] = []
        for one in proposals:
            place = self._places[one.node]
            done = is_done(program, one)
            finding = place.finding(
                self._path, one.code, one.symbol, one.message, one.outcome, done, one.through
            )
            found.append((place.source, finding))
        found += suppressions.unused(program.options, self._path)
        ordered = sorted(dict.fromkeys(found), key=_order)
        ordered = [*self._document.findings(self._path, program.options), *ordered]
        ordered.sort(key=lambda item: item[0])
        return [self._document.placed(*one) for one in ordered]

    def facts(self) -> FileFacts:
        """What the other files of the program must know."""
        program = self.program
        groups = {one.legacy.group for one in program.references if one.legacy.rule}
        scope = program.scopes.module_scope
        bound = {name: program.origins.of_name(name, scope) for name in scope.bindings}
        if scope.stars:
            bound["*"] = frozenset(path for _, path in scope.stars)
        return FileFacts(
            groups=frozenset(one for one in groups if not program.goes_to_shim(one)),
            on_shim=program.on_shim,
            classes=classes_named(program),
            bound=bound,
        )


def _choices(groups: Collection[Group]) -> list[frozenset[Group]]:
    """The sets of groups that other files can send to the shim."""
    if len(groups) > _MOST_VARIANTS:
        return [frozenset(groups)]
    return [
        frozenset(chosen)
        for size in range(1, len(groups) + 1)
        for chosen in itertools.combinations(groups, size)
    ]


def _order(item: tuple[int, Finding]) -> tuple[int, int, str, str, str]:
    _, one = item
    return one.line, one.column, one.code, one.symbol, one.message
