"""Finds out what each file of a run must know about the others, before any is rewritten.

A file without a legacy name can use one that another file imports: `amp.mp.set_policy(...)`. Such
files are found here and rewritten as well. A name that other files may still read after that keeps
its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Callable, Optional

from ..files import atomic_write
from ..files.discover import NOTEBOOK
from ..model import Target
from ..resolve.neighbors import Flow, Neighbors
from ..run.flows import Answer, Atom, Question, reached, solved, word_of
from ..run.import_words import ImportWords, imports_of
from ..run.kept_names import KeptNames
from ..run.module_facts import CLASSES, TESTS, words_of
from ..run.modules import Modules
from ..run.names import WHOLE, Export, Names
from ..run.programs import Programs
from .limits import Limits
from .linked_files import LinkedFiles
from .pool import process_all
from .results import FileOutcome, Plan
from .worker import Task

__all__ = ["Survey"]

_ROUNDS = 40
"""How many times more files are read: reading a file can show that names lead to further files."""
_FLOW_ROUNDS = 8
"""How many times optimizers are followed one file further."""
_MOST_CALLERS = 64
"""How many files with calls of a function are examined; with more, its arguments are unknown."""
_MOST_CHANGES = 40
"""How many times files are rewritten on trial because of what became of others."""

_CLASS = "LossScaleOptimizer"
_LOOPS = frozenset([_CLASS, "get_scaled_loss", "get_unscaled_gradients"])
_SHIM = "tf_lossscale"
_MAKES = frozenset([_CLASS, "enable_mixed_precision_graph_rewrite", "from_loss_scale"])
_LIBRARIES = frozenset(["tensorflow", "tf_keras", _SHIM])
_PARTS = _MAKES | {*CLASSES, "global_policy", "layer_policy"}
"""What makes optimizers, and what they are made of; `_MAKES` is what makes those of Keras."""
_CONTRIB = (_CLASS, "LossScaleManager")
_CALL = ".loss_scale("
# An annotation has a limit: without one, a line of many colons takes quadratic time.
_STORE = re.compile(rb"\.(\w+)\s*(?::[^=\n]{1,200})?=(?!=)")
_STORE_ELSEWHERE = re.compile(rb"\.(?<!\bself\.)(\w+)\b\s*=(?!=)")
_SETATTR = re.compile(rb"setattr\([^()]*?,\s*[\"'](\w+)[\"']")
_COMPILES = re.compile(rb"(?<!\bre)(?<!\bregex)\.compile\s*\(")
_COMPILE = b"compile"
_UNKNOWN: frozenset[Atom] = frozenset(["UNKNOWN"])


class Survey:
    """What is known from the other files of a run about each file that a rule could apply to.

    Attributes:
      more: files that are not among the candidates, but use legacy names through them.

    Args:
      candidates: the absolute paths of these files.
      files: the absolute paths of all files of the run.
      imports: the words of the import statements of these files.
      may_rewrite: whether a file may be rewritten, given by its absolute path.
      shown: converts an absolute path to the one in reports.
      plan: what will be done with each file; nothing is written here.
      jobs: the number of worker processes.
      limits: the limits on one file.
    """

    def __init__(
        self,
        candidates: Sequence[str],
        files: Iterable[str],
        imports: ImportWords,
        may_rewrite: Callable[[str], bool],
        shown: Callable[[str], str],
        plan: Plan,
        jobs: int,
        limits: Limits,
    ) -> None:
        self._files = sorted(set(files))
        self._shown = shown
        self._plan = plan._replace(write=False, diff=False, excerpts=False, replacements=False)
        self._jobs = jobs
        self._limits = limits
        self._imports = imports
        self._may_rewrite = may_rewrite
        self._modules = modules = Modules(self._files)
        self._names = Names(modules, shown, plan.options.from_shim)
        self._answers: dict[Flow, frozenset[Atom]] = {}
        self._tested: dict[str, frozenset[Flow]] = {}
        self._called: dict[str, frozenset[Flow]] = {}
        self._kept = KeptNames(
            self._names, imports, may_rewrite, shown, lambda file: _read(file, limits)
        )
        self._changed: dict[str, frozenset[str]] = {}
        self._linked: Optional[LinkedFiles] = None
        self._programs = Programs(self._files, imports, modules, lambda file: _read(file, limits))
        self._needs_shim = False
        self._needs_contrib: set[str] = set()
        self._has_optimizers = False
        self.more: list[str] = []
        python = sorted(file for file in candidates if not file.endswith(NOTEBOOK))
        notebooks = sorted(file for file in candidates if file.endswith(NOTEBOOK))
        if not python or len(modules) + len(notebooks) < 2:
            return
        for file in notebooks:
            self._names.add(file, None)
        self._read_names(python)
        importers = self._importers(python)
        self._read_names(self.more)
        python = sorted([*python, *self.more])
        self._has_optimizers = any(
            found & _MAKES and found & _LIBRARIES for found in map(self._words, python)
        )
        self._follow_tests(python)
        self._look_at_changes()
        self._look_at_loops(python)
        self._look_at_contrib(python)
        self._kept.keep_what_may_be_read(importers)
        links = self._links()
        self._linked = LinkedFiles(plan.options, links, shown, self._words, self._programs)
        self._settle([*python, *notebooks], self._kept.readers(importers), links)

    def __call__(self, file: str) -> Neighbors:
        """What is known about the names and optimizers of `file`, an absolute path."""
        known = self._names.of(file)
        asked = (*self._tested.get(file, ()), *self._called.get(file, ()))
        flows = solved(asked, self._answers)
        return known._replace(
            flows=flows,
            blocked_by=self._linked.of(file) if self._linked is not None else {},
            needs_shim=self._needs_shim,
            needs_contrib=file in self._needs_contrib,
            has_optimizers=self._has_optimizers,
            kept=self._kept.of(file),
            changed_elsewhere=self._changed.get(file, frozenset()),
        )

    def _run(self, tasks: Sequence[Task]) -> Iterable[FileOutcome]:
        if not tasks:
            return ()
        return process_all(tasks, self._plan, min(self._jobs, len(tasks)), self._limits)

    def _words(self, file: str) -> frozenset[str]:
        """The words of a file, read again only if Python's parser rejects it."""
        known = self._names.words_of(file)
        return words_of(_read(file, self._limits)) if known is None else known

    def _read_facts(self, files: Iterable[str]) -> None:
        tasks = [Task(file, file, question=Question()) for file in files]
        for outcome in self._run(tasks):
            self._names.add(outcome.path, outcome.facts)

    def _read_names(self, files: Iterable[str]) -> None:
        """Reads the facts about the files, and about those that they import names from."""
        incomplete = list(files)
        wanted = [file for file in incomplete if not self._names.knows(file)]
        for _ in range(_ROUNDS):
            self._read_facts(wanted)
            incomplete = [file for file in incomplete if not self._names.is_complete(file)]
            wanted = sorted(self._names.wanted)
            if not wanted:
                break

    def _follow_tests(self, candidates: Sequence[str]) -> None:
        """Finds out where the optimizers come from whose class is tested or loss scale called."""
        words = {file: self._words(file) for file in candidates}
        files = [
            file
            for file, found in words.items()
            if (found & TESTS and (_CLASS in found or self._names.of(file).means(_CLASS)))
            or (_CALL in found and self._has_optimizers)
        ]
        questions = {file: Question(about_tests=True) for file in files}
        for _ in range(_FLOW_ROUNDS):
            if not questions:
                return
            self._ask(questions)
            known = [*self._tested.values(), *self._called.values(), *self._answers.values()]
            flows = {atom for atoms in known for atom in atoms if isinstance(atom, Flow)}
            asked = sorted(
                flow for flow in flows if flow.kind != "constructed" and flow not in self._answers
            )
            questions = self._questions(asked)

    def _ask(self, questions: dict[str, Question]) -> dict[str, Optional[Answer]]:
        self._read_names(questions)
        tasks = [Task(file, file, None, self(file), one) for file, one in sorted(questions.items())]
        answers = {outcome.path: outcome.answer for outcome in self._run(tasks)}
        for file, question in questions.items():
            answer = answers.get(file)
            for flow in (*question.defined, *question.passed):
                found = answer.found.get(flow, _UNKNOWN) if answer is not None else _UNKNOWN
                self._answers[flow] = self._answers.get(flow, frozenset()) | found
            if question.about_tests and answer is not None:
                self._tested[file] = answer.tested
                self._called[file] = answer.called
        return answers

    def _questions(self, flows: Sequence[Flow]) -> dict[str, Question]:
        """Assigns each flow to the files that can show where it comes from."""
        questions: dict[str, Question] = {}
        words: dict[str, list[Flow]] = {}
        for flow in flows:
            file = self._names.file_at(flow.path)
            if file is None:
                self._answers[flow] = _UNKNOWN
            elif flow.kind == "parameter":
                self._answers[flow] = frozenset()
                words.setdefault(word_of(flow), []).append(flow)
            else:
                one = questions.get(file, Question())
                questions[file] = one._replace(defined=(*one.defined, flow))
        if not words:
            return questions
        callers: dict[Flow, list[str]] = {}
        for file in self._files:
            for word in _found(file, words, self._limits):
                for flow in words.get(word, ()):
                    if self._names.file_at(flow.path) != file:
                        callers.setdefault(flow, []).append(file)
        for flow, found in callers.items():
            if len(found) > _MOST_CALLERS or not all(file.endswith(".py") for file in found):
                self._answers[flow] = _UNKNOWN
                continue
            for file in found:
                one = questions.get(file, Question())
                questions[file] = one._replace(passed=(*one.passed, flow))
        return questions

    def _look_at_changes(self) -> None:
        """Finds the attributes of the followed objects that importing files may assign to."""
        options = self._plan.options
        known: dict[str, frozenset[bytes]] = {}
        for file in self._tested:
            if options.for_keras_2 and options.target is not Target.SHIM and not self._called[file]:
                continue  # no class test depends on it
            own = {*_STORE.findall(_read(file, self._limits)), _COMPILE}
            found: set[bytes] = set()
            seen, pending = {file}, [file]
            while pending:
                importers = sorted(set(self._imports.importers(pending.pop())) - seen)
                seen.update(importers)
                pending += importers
                for one in importers:
                    if one not in known:
                        known[one] = _changes_in(_read(one, self._limits))
                    found |= known[one] & own
            self._changed[file] = frozenset(name.decode() for name in found)

    def _look_at_loops(self, candidates: Sequence[str]) -> None:
        """Finds out whether any file needs what Keras 3's own class lacks."""
        options = self._plan.options
        if options.for_keras_2 or not options.unsafe or options.target is Target.SHIM:
            return
        files = [
            file
            for file in candidates
            if self._words(file) & _LOOPS or self._names.of(file).means(_CLASS)
        ]
        if len(files) > 1:
            answers = self._ask({file: Question(about_loops=True) for file in files})
            self._needs_shim = any(one is None or not one.is_plain for one in answers.values())

    def _look_at_contrib(self, candidates: Sequence[str]) -> None:
        """Finds the files whose programs need what TensorFlow 2 has of no contrib class."""
        options = self._plan.options
        if not options.unsafe or options.target is Target.SHIM:
            return
        files = [file for file in candidates if self._has(file, _CONTRIB)]
        if len(files) > 1:
            answers = self._ask({file: Question(about_contrib=True) for file in files})
            for file, one in answers.items():
                if one is None or not one.has_twins:
                    self._needs_contrib.update(self._programs.connected(file, files))

    def _importers(self, candidates: Sequence[str]) -> list[str]:
        """The files that may import legacy names from others; adds to `more`."""
        looked: dict[str, frozenset[str]] = {}
        found: set[str] = set()
        while True:
            exports = self._names.exports()
            known = {module: frozenset(names) for module, names in exports.items()}
            new = sorted(module for module in known if known[module] != looked.get(module))
            if not new:
                break
            looked = known
            importers = {file for module in new for file in self._importers_of(module)}
            found |= importers
            self._read_facts(
                sorted(
                    file
                    for file in importers
                    if not file.endswith(NOTEBOOK) and not self._names.knows(file)
                )
            )
        self.more = [
            file
            for file in sorted(found.difference(candidates))
            if self._names.reads_legacy(file, exports) and self._may_rewrite(file)
        ]
        return sorted(found)

    def _importers_of(self, module: str) -> list[str]:
        """The files that may import legacy names from a module."""
        importers = [
            file for file in self._imports.importers(module) if self._may_import(file, module)
        ]
        names = self._names.only_modules(module)
        if not names:
            return importers
        return [file for file in importers if _found(file, names, self._limits)]

    def _may_import(self, file: str, module: str) -> bool:
        """Whether `file` may import an export of `module`, or the module itself."""
        if file.endswith(NOTEBOOK):
            return True
        imported = imports_of(module, _read(file, self._limits))
        exports = {"", "*", *self._names.exports().get(module, ())}
        return imported is None or any(
            name in exports and self._modules.find(path, file) in (None, module)
            for path, name in imported
        )

    def _settle(
        self,
        candidates: Sequence[str],
        readers: Mapping[str, frozenset[Export]],
        links: Collection[tuple[str, str]],
    ) -> None:
        """Rewrites linked files on trial until what they keep and how they are blocked agree."""
        assert self._linked is not None
        makers = [file for file in candidates if self._has(file, _PARTS)]
        tests = [
            file
            for file in makers
            if self._has(file, CLASSES)
            and self._names.reads_class(file, CLASSES)
            and self._programs.connected(file, makers)
        ]
        files = sorted({*readers, *tests, *(file for link in links for file in link)})
        outcomes: dict[str, FileOutcome] = {}
        stale = files
        for _ in range(_MOST_CHANGES):
            if not stale:
                return
            before = {file: self(file) for file in files}
            question = Question(about_result=True)
            tasks = [Task(file, file, None, before[file], question) for file in stale]
            outcomes.update((outcome.path, outcome) for outcome in self._run(tasks))
            for file in files:
                if file in readers:
                    found = self._kept.still_read(file, outcomes[file].facts)
                    self._kept.keep(file, [one for one in found if one.name != WHOLE], True)
            self._linked.hold(outcomes, makers)
            stale = [file for file in files if self(file) != before[file]]
        for file, reads in readers.items():
            self._kept.keep(file, reads, is_certain=True)

    def _has(self, file: str, names: Iterable[str]) -> bool:
        """Whether a file contains one of these names, or imports a symbol of that name."""
        known = self._names.of(file)
        return not self._words(file).isdisjoint(names) or any(map(known.means, names))

    def _links(self) -> list[tuple[str, str]]:
        """The files with class tests, each with a file that constructs what is tested."""
        links = set()
        for file, flows in self._tested.items():
            for atom in (end for flow in flows for end in self._ends(flow)):
                constructor = self._names.file_at(atom.path)
                if constructor is not None and constructor != file:
                    links.add((file, constructor))
        return sorted(links)

    def _ends(self, flow: Flow) -> Iterable[Flow]:
        found = [flow] if flow.kind == "constructed" else reached(flow, self._answers)
        return [atom for atom in found if isinstance(atom, Flow)]


def _changes_in(source: bytes) -> frozenset[bytes]:
    """The attributes of other objects that a source assigns to; `compile` if it calls that.

    Loading a model sets its optimizer, as `compile` does.
    """
    names = set(_STORE_ELSEWHERE.findall(source))
    if b"setattr" in source:
        names.update(_SETATTR.findall(source))
    if b"load_model" in source or (b".compile" in source and _COMPILES.search(source)):
        names.add(_COMPILE)
    return frozenset(names)


def _found(file: str, words: Iterable[str], limits: Limits) -> list[str]:
    """Those of the words that a file contains; none if it cannot be read or is too large."""
    source = _read(file, limits)
    return [word for word in sorted(words) if _contains(source, word.encode())]


def _contains(source: bytes, word: bytes) -> bool:
    """Whether a source contains a word, and not only as a part of a longer one."""
    # A pattern that begins with plain bytes is searched for many times faster than with `\b`.
    text = re.escape(word)
    return word in source and bool(re.search(rb"%s(?!\w)(?<!\w%s)" % (text, text), source))


def _read(file: str, limits: Limits) -> bytes:
    try:
        source = atomic_write.read(file)
    except OSError:
        return b""
    return source if len(source) <= limits.size else b""
