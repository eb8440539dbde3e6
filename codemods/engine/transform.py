"""The work on one file: parse it once, collect its facts, and edit it after the decision.

Both steps work with the same trees. Which symbols go where is decided between them, for whole
programs, outside of this package.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Optional, Union

import libcst as cst

from ..decision.decide import Connections, decide
from ..decision.exports import ReExports
from ..decision.modules import Modules
from ..facts import NO_FACTS, Decision, Export, FileFacts, Links, Made
from ..files.excludes import NOTEBOOK
from ..model import FileResult, Finding, Options, Safety
from ..resolve.conditions import made_of
from ..resolve.import_lines import may_give
from ..resolve.links import UNKNOWN, links_of, links_of_nodes
from ..resolve.program import Program
from ..resolve.tree import Edit, rebuilt
from ..rewrite.proposal import Proposal
from ..rules.codes import rules
from ..rules.rule import Rule
from ..rules.to_shim import RENAMED, reports_of_written
from .apply import Outcome
from .comments import may_suppress
from .file_facts import exports_of, facts_of, kept_places, need_at, obstacles_of
from .notebook import Notebook, code_of
from .notes import NO_NAME, NOTHING, note_of, reasons_of_file, why_on_shim
from .prefilter import is_in_code, may_concern
from .python_tree import PythonSource, SourceError, error_of
from .render import Place, Source
from .screen import facts_without_place, is_without_place
from .tree_size import PYTHON, TREES, check_sizes

__all__ = ["UNKNOWN", "FileWork", "links_of_sources", "sources_in", "transform"]

_IMPORT = "import tf_lossscale as tfls"
_LINE_OF_SHIM = "write tfls."
"""What a message says to write, and not what has been written."""
_READING = re.compile(rb"^[ \t]*(?:>>>|\.\.\.)[ \t].*|#[ \t]*type:.*", re.MULTILINE)
"""Matches lines of doctests, and comments with types."""
_ONLY_FINDINGS = "no edit is possible; see the findings"


def transform(
    source: bytes,
    options: Options,
    path: str = "<source>",
    only: Optional[Sequence[Rule]] = None,
) -> FileResult:
    """Transforms one file as a program of its own. An error in it is part of the result.

    Args:
      source: the bytes of the file.
      options: how to rewrite them.
      path: the path of the file, as reports show it; the suffix `.ipynb` means a notebook.
      only: the rules to run; by default all.
    """
    try:
        work = FileWork(source, options, path, path, only)
        facts = {path: work.facts()}
        alone = Connections([frozenset([path])], is_alone=True)
        decisions = decide(facts, alone, ReExports(facts, Modules([])), options)
        return work.result(decisions[path])
    except (SourceError, RecursionError) as error:
        return FileResult(source, error=error_of(path, error))


def sources_in(data: bytes, path: str) -> list[bytes]:
    """The Python sources of a file.

    Raises:
      SourceError: if it cannot be read, or is too large to be parsed by Python.
    """
    sources = code_of(data) if path.endswith(NOTEBOOK) else [data]
    check_sizes(sources, PYTHON)
    return sources


def links_of_sources(sources: Iterable[bytes]) -> Links:
    """What connects a file with others; of one that cannot be parsed, nothing is known."""
    known = list(sources)
    return _links_of(list(map(PythonSource, known)), any(map(may_give, known)))


def _links_of(sources: Sequence[PythonSource], may_give: bool = True) -> Links:
    """What connects the file of some sources with others."""
    if len(sources) == 1 and sources[0].nodes is not None:  # nearly all files
        return links_of_nodes(sources[0].nodes, may_give)
    trees = (source.tree for source in sources)
    return links_of((tree if isinstance(tree, ast.Module) else None for tree in trees), may_give)


class _PythonFile:
    """A file that is one source, with the methods of `Notebook`."""

    note = ""
    texts: Sequence[str] = ()

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


class FileWork:
    """A file: parsed and resolved when something is asked of it, and then only once.

    Args:
      source: its bytes.
      options: how to rewrite it.
      path: its path, as reports show it.
      real: its path, as decisions name it.
      only: the rules to run; by default all.

    Raises:
      SourceError: it is a notebook that cannot be read. The methods raise it for code that cannot
        be parsed.
    """

    def __init__(
        self,
        source: bytes,
        options: Options,
        path: str,
        real: str,
        only: Optional[Sequence[Rule]] = None,
    ) -> None:
        """Finds the cells of a notebook that has a legacy word. No code is parsed yet."""
        self._source = source
        self._options = options
        self._path = path
        self._real = real
        self._rules = rules() if only is None else only
        self._parsed: Optional[tuple[Program, list[Source]]] = None
        self._python_sources: list[PythonSource] = []
        self._document: Union[Notebook, _PythonFile, None] = None
        if may_concern(source):
            self._document = Notebook(source) if path.endswith(NOTEBOOK) else _PythonFile(source)

    def facts(self) -> FileFacts:
        """What the other files of its program must know."""
        if not self._has_names:
            return NO_FACTS
        links = _links_of(self._read())
        if self._is_without_place:
            return facts_without_place(links)
        program, sources = self._program()
        return facts_of(program, sources, links, self._locate, self._options, self._rules)

    def exports(self) -> dict[str, Export]:
        """What the top-level names of a file without a place mean."""
        return exports_of(self._program()[0])

    def made(self, names: Iterable[str]) -> dict[str, Made]:
        """What top-level names and attributes of the file are made of."""
        program, _ = self._program()
        return {name: made_of(program, name) for name in names}

    def result(self, decision: Decision) -> FileResult:
        """The file after the decision."""
        document = self._document
        if document is None:
            return FileResult(self._source, note=NO_NAME)
        if not self._has_names:
            found = list(document.findings(self._path, self._options))
            findings = [document.placed(*item) for item in found]
            return FileResult(self._source, tuple(findings), note=document.note or NO_NAME)
        if self._is_without_place:
            return FileResult(self._source, note=NOTHING)
        program, sources = self._program()
        self._python_sources = []  # only facts need them, and the edits are parsed, too
        outcome = self._outcome(program, sources, decision)
        edits = outcome.edits()
        data = [self._edited(source, edits, program) for source in sources]
        found = [*document.findings(self._path, self._options), *outcome.findings(self._path)]
        findings = [document.placed(*item) for item in sorted(found, key=lambda item: item[0])]
        if not any(_IMPORT.encode() in code for code in data):
            findings = [_with_import(finding) for finding in findings]
        if edits:
            note = ""
        elif findings:
            note = _ONLY_FINDINGS
        else:
            note = outcome.note or self._why_on_shim(program) or NOTHING
        return FileResult(document.with_sources(data), tuple(findings), note=note)

    def _edited(
        self, source: Source, edits: Mapping[cst.CSTNode, Sequence[Edit]], program: Program
    ) -> bytes:
        """The bytes of a source after the edits."""
        module = rebuilt(source.module, edits, program.parents)
        if module is None:
            return source.data
        with self._in(source.index):
            return source.edited(module)

    def free(self) -> None:
        """Frees the trees, also where other objects refer to them; no method works after it."""
        if self._parsed is not None:
            self._parsed[0].free()

    def _why_on_shim(self, program: Program) -> str:
        """Why the names that the file takes from the shim stay there; empty if it has none."""
        legacies = [reference.legacy for reference in program.references]
        groups = {legacy.group for legacy in legacies if legacy.is_on_shim}
        has_shim = b"tf_lossscale" in self._source
        return why_on_shim(groups, self._options) if has_shim else ""

    @functools.cached_property
    def _has_names(self) -> bool:
        """Whether a source of the file has in its code a word that a rule looks for."""
        sources = () if self._document is None else self._document.sources
        if not any(map(may_concern, sources)):
            return False
        return any(may_concern(source.data) and is_in_code(source) for source in self._read())

    @functools.cached_property
    def _is_without_place(self) -> bool:
        """Whether no rule can find anything in the file, whatever is decided about its program."""
        if not isinstance(self._document, _PythonFile):
            return False
        return is_without_place(self._read()[0], self._options)

    def _read(self) -> list[PythonSource]:
        """The sources as Python's own parser reads them."""
        if not self._python_sources and self._document is not None:
            check_sizes(self._document.sources, TREES)
            self._python_sources = list(map(PythonSource, self._document.sources))
        return self._python_sources

    def _program(self) -> tuple[Program, list[Source]]:
        """The program and its sources, which are parsed when they are first needed."""
        if self._parsed is None:
            if self._document is None:
                is_notebook = self._path.endswith(NOTEBOOK)
                self._document = (
                    Notebook(self._source) if is_notebook else _PythonFile(self._source)
                )
            sources = []
            for index, source in enumerate(self._read()):
                with self._in(index):
                    sources.append(Source(source.data, index, source.tree))
            texts = [*_texts_that_read(sources), *self._document.texts]
            self._parsed = Program([source.module for source in sources], texts), sources
        return self._parsed

    @contextlib.contextmanager
    def _in(self, index: int) -> Iterator[None]:
        """Gives errors in a source their place in the file."""
        try:
            yield
        except SourceError as error:
            assert self._document is not None
            raise self._document.error(index, error) from None

    def _locate(self, nodes: Set[cst.CSTNode]) -> dict[cst.CSTNode, Place]:
        """Finds the places of nodes, if there are any."""
        program, sources = self._program()
        wanted: dict[cst.CSTNode, set[cst.CSTNode]] = {}
        for node in nodes:
            wanted.setdefault(_root(program, node), set()).add(node)
        if any(may_suppress(source.data) for source in sources):  # its comments are needed, too
            wanted = {source.module: wanted.get(source.module, set()) for source in sources}
        found: dict[cst.CSTNode, Place] = {}
        for index, source in enumerate(sources):
            if source.module in wanted:
                with self._in(index):
                    source.locate(wanted[source.module])
                found.update(source.places)
        return found

    def _outcome(self, program: Program, sources: list[Source], decision: Decision) -> Outcome:
        """The proposals of the rules, and what becomes of them."""
        options = self._options
        kept = kept_places(program, sources, self._locate, options)
        proposals = [
            proposal
            for rule in self._rules
            for proposal in rule.proposals(program, options, decision)
        ]
        proposals += reports_of_written(program, options, decision)
        proposals = self._with_reasons(program, proposals, decision)
        self._locate(frozenset(proposal.node for proposal in proposals))
        return Outcome(program, proposals, kept, sources, options, decision)

    def _with_reasons(
        self, program: Program, proposals: list[Proposal], decision: Decision
    ) -> list[Proposal]:
        """Adds why groups go to the shim, at the first place of a program that decides it."""
        reasons_here = list(reasons_of_file(self._real, decision))
        if not reasons_here:
            return proposals
        obstacles = list(obstacles_of(program, self._options, self._rules))
        located = self._locate(frozenset(obstacle.node for obstacle in obstacles))
        nodes = {need_at(obstacle, located[obstacle.node]): obstacle.node for obstacle in obstacles}
        notes: dict[cst.CSTNode, Proposal] = {}
        for groups, reasons in reasons_here:
            need = reasons[0].need
            if need not in nodes:
                continue
            message = note_of(self._real, groups, reasons)
            node = nodes[need]
            if node in notes:
                message = f"{notes[node].message}; {message}"
            notes[node] = Proposal.note(node, need.code, need.symbol, message)
        return [*_explained(proposals, notes), *notes.values()]


def _texts_that_read(sources: Iterable[Source]) -> Iterator[str]:
    """The lines of sources that read names, and are no code."""
    for source in sources:
        for line in _READING.findall(source.data):
            yield line.decode("utf-8", "replace")


def _with_import(finding: Finding) -> Finding:
    """A finding in a file that does not import the shim by the name that its message uses."""
    if _LINE_OF_SHIM not in finding.message:
        return finding
    return finding._replace(message=f"{finding.message} (with {_IMPORT})")


def _root(program: Program, node: cst.CSTNode) -> cst.CSTNode:
    """The module that contains a node."""
    root = node
    for above in program.ancestors(node):
        root = above
    return root


def _explained(
    proposals: Sequence[Proposal], notes: dict[cst.CSTNode, Proposal]
) -> Iterator[Proposal]:
    """The proposals; the notes become parts of the messages of those at the same places."""
    for proposal in proposals:
        note = notes.get(proposal.node)
        is_rename = bool(proposal.moves) or (proposal.stays and proposal.code in RENAMED)
        is_report = proposal.outcome is Safety.MANUAL
        if note is None or not (is_rename or (is_report and proposal.code == note.code)):
            yield proposal
            continue
        what = proposal.message if is_report else proposal.message.partition(";")[0]
        del notes[proposal.node]
        yield proposal._replace(message=f"{what}; {note.message}")
