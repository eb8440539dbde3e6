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
)
from ..resolve.guards import keep_guards
from ..resolve.mentions import classes_named
from ..resolve.program import Program
from ..resolve.tree import rebuilt
from ..rules.codes import rules
from ..rules.rule import Rule
from ..rules.to_shim import notes
from .apply import Decision
from .comments import may_suppress
from .notebook import Notebook
from .parse import SourceError
from .prefilter import may_concern
from .render import Source

__all__ = ["transform"]

_NO_NAME = "no legacy name in it"
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
        decision = self._decision(self.program.with_on_shim(on_shim))
        while decision.reasons:
            decision = self._decision(decision.next_program())
        program = decision.program
        if not on_shim:
            self.program = program
        edits = decision.edits()
        data = list(self._document.sources)
        for index, source in enumerate(self._sources):
            module = rebuilt(source.module, edits, program.parents)
            if module is not None:
                with self._in(index):
                    data[index] = source.edited(module)
        found = [
            *self._document.findings(self._path, program.options),
            *decision.findings(self._path),
        ]
        findings = [self._document.placed(*one) for one in sorted(found, key=lambda one: one[0])]
        note = "" if edits else _ONLY_FINDINGS if findings else decision.note
        return FileResult(self._document.with_sources(data), tuple(findings), note=note)

    def _decision(self, program: Program) -> Decision:
        found = [one for rule in self._rules for one in rule.proposals(program)]
        found += notes(program, found)
        selected = [one for one in found if program.options.selects(one.code)]
        left_out = [one for one in found if not program.options.selects(one.code)]
        nodes = frozenset(one.node for one in selected)
        if nodes or any(may_suppress(source.data) for source in self._sources):
            for index, source in enumerate(self._sources):
                with self._in(index):
                    source.locate(nodes)
        return Decision(program, selected, left_out, self._sources)

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
