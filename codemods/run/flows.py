"""Follows optimizers from one file of a run to another: through calls, parameters and names.

A class test in one file can look at an optimizer that another file constructs. Each file is parsed
only for what another file needs from it: the values of its names, the results of its functions, or
the arguments with which it calls functions of other files. A value that no file determines is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..engine.parse import parsed
from ..model import Options, SourceError
from ..resolve.legacy_symbols import root_of
from ..resolve.neighbors import Flow, Neighbors, is_in_run
from ..resolve.program import Program
from ..resolve.qualified_names import STAR, is_path
from ..resolve.version_guards import keep_guards
from ..rules.contrib._family import all_have_twins
from ..rules.keras._class_tests import atoms_of_test
from ..rules.keras._keras3_loops import plain_loops
from ..rules.keras._loss_scale_receivers import atoms_of_calls
from ..rules.keras._optimizer_sources import Source, atoms, returned

__all__ = ["Answer", "Question", "answer", "reached", "solved", "word_of"]

_UNKNOWN = Source.UNKNOWN.name
_INIT = ".__init__"

Atom = Union[str, Flow]
"""The name of a `Source`, or a value from another file."""


class Question(NamedTuple):
    """What to find out in a file.

    Attributes:
      about_tests: whether to find the values that its class tests look at, and those whose loss
        scale it calls.
      about_loops: whether to find out if its training loops can use Keras 3's own class.
      about_contrib: whether to find out if each contrib class in it has a similar one in TensorFlow
        2.
      about_result: whether to rewrite the file on trial, and report the facts about the result. All
        other fields are then ignored.
      defined: the names and functions of this file whose values and results are needed.
      passed: the parameters of functions of other files, for which this file may pass arguments.
    """

    about_tests: bool = False
    about_loops: bool = False
    about_contrib: bool = False
    about_result: bool = False
    defined: tuple[Flow, ...] = ()
    passed: tuple[Flow, ...] = ()


class Answer(NamedTuple):
    """What was found in a file.

    Attributes:
      tested: the values from other files that its class tests look at.
      called: the values from other files whose `loss_scale()` it calls.
      is_plain: whether its training loops can use Keras 3's own class; true if not asked.
      has_twins: whether its contrib classes have similar ones in TensorFlow 2; true if not asked.
      found: what each flow of the question can come from.
    """

    tested: frozenset[Flow] = frozenset()
    called: frozenset[Flow] = frozenset()
    is_plain: bool = True
    has_twins: bool = True
    found: Mapping[Flow, frozenset[Atom]] = {}


def answer(
    source: bytes, options: Options, neighbors: Neighbors, question: Question
) -> Optional[Answer]:
    """Answers a question about one file; None if the file cannot be parsed."""
    module = parsed(source)
    if isinstance(module, SourceError):
        return None
    program = Program([module], options, neighbors)
    keep_guards(program)
    tested: set[Flow] = set()
    called: set[Flow] = set()
    if question.about_tests:
        called.update(atom for atom in atoms_of_calls(program) if isinstance(atom, Flow))
        for reference in program.references:
            if reference.legacy.is_keras_optimizer:
                found = atoms_of_test(program, reference.node)
                tested.update(atom for atom in found if isinstance(atom, Flow))
    known: dict[Flow, frozenset[Atom]] = {}
    for flow in question.defined:
        known[flow] = _named(_defined(program, flow))
    for flow in question.passed:
        known[flow] = frozenset().union(*map(_named, _passed(program, flow)))
    is_plain = not question.about_loops or plain_loops(program) is not None
    has_twins = not question.about_contrib or all_have_twins(program)
    return Answer(frozenset(tested), frozenset(called), is_plain, has_twins, known)


def word_of(flow: Flow) -> str:
    """The name of a parameter's function, which every file that calls it contains."""
    path = flow.path[: -len(_INIT)] if flow.path.endswith(_INIT) else flow.path
    return path.rpartition(".")[2]


def solved(
    asked: Iterable[Flow], answers: Mapping[Flow, frozenset[Atom]]
) -> dict[Flow, frozenset[str]]:
    """The sources of each flow; a flow without an answer is unknown."""
    return {
        flow: frozenset(
            Source.WRAPPED.name if isinstance(atom, Flow) else atom
            for atom in reached(flow, answers)
        )
        for flow in asked
    }


def reached(flow: Flow, answers: Mapping[Flow, frozenset[Atom]]) -> set[Atom]:
    """Everything that a flow comes from in the end: sources, and files that construct it."""
    ends: set[Atom] = set()
    seen, pending = {flow}, [flow]
    while pending:
        one = pending.pop()
        found = answers.get(one, frozenset([_UNKNOWN]))
        if not found and not one.is_called:
            ends.add(_UNKNOWN)  # a function that nothing in the run calls
        for atom in found:
            if isinstance(atom, str) or atom.kind == "constructed":
                ends.add(atom)
            elif atom not in seen:
                seen.add(atom)
                pending.append(atom)
    return ends


def _named(found: Iterable[Union[Source, Flow]]) -> frozenset[Atom]:
    return frozenset(atom.name if isinstance(atom, Source) else atom for atom in found)


def _defined(program: Program, flow: Flow) -> frozenset[Union[Source, Flow]]:
    """What the value of a name of this file, or the result of calling it, can come from."""
    unknown = frozenset([Source.UNKNOWN])
    scope = program.scopes.module_scope
    name = flow.path[len(program.neighbors.path) + 1 :]
    owner, _, member = name.partition(".")
    bindings = scope.bindings.get(owner, [])
    if member:
        classes = [
            inner
            for inner in program.all_scopes()
            if any(inner.node is binding.node for binding in bindings) and inner.kind == "class"
        ]
        if flow.kind == "value" or len(classes) != 1 or len(bindings) != 1 or "." in member:
            return unknown
        bindings = classes[0].bindings.get(member, [])
    found: set[Union[Source, Flow]] = set()
    for binding in bindings:
        if flow.kind == "value":
            found |= atoms(program, binding.value) if binding.value is not None else unknown
        elif isinstance(binding.node, (cst.FunctionDef, cst.ClassDef)):
            found |= returned(program, binding.node)
        else:
            found |= unknown
    return frozenset(found) or unknown


def _passed(program: Program, flow: Flow) -> Iterator[Iterable[Union[Source, Flow]]]:
    """What each call in this file passes for a parameter of another file's function."""
    unknown = [Source.UNKNOWN]
    for use in _uses(program, flow):
        call = program.call_of(use) if use is not None else None
        if call is None or any(argument.star for argument in call.args):
            yield unknown
            continue
        given = [argument.value for argument in call.args if argument.keyword is None]
        named = {
            argument.keyword.value: argument.value
            for argument in call.args
            if argument.keyword is not None
        }
        index = flow.positions.index(flow.parameter) if flow.parameter in flow.positions else -1
        if flow.parameter in named:
            yield atoms(program, named[flow.parameter])
        elif 0 <= index < len(given):
            yield atoms(program, given[index])
        elif flow.has_default:
            continue  # the default is known where the function is defined
        else:
            yield unknown


def _uses(program: Program, flow: Flow) -> Iterator[Optional[cst.CSTNode]]:
    """Every place that reads a flow's function; None for a place that may read it."""
    is_init = flow.path.endswith(_INIT)
    target = flow.path[: -len(_INIT)] if is_init else flow.path
    name = target.rpartition(".")[2]
    module = re.match(r"\./.*?\.py(?=\.)", target)
    is_method = not is_init and module is not None and "." in target[module.end() + 1 :]
    for binding in program.imports():
        if binding.path == target and binding.name != name:
            yield None  # other files may import it from here, under another name
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        is_read = isinstance(call, cst.Call) and program.code(call.func) == "getattr"
        if is_read and string.raw_value == name:
            yield None
    places: list[cst.CSTNode] = [node for node in program.scopes.loads if node.value == name]
    places += program.attributes(name)
    for node in places:
        meanings = _meanings(program, node)
        if target in meanings:
            yield node if meanings == {target} and not is_method else None
        elif is_method and isinstance(node, cst.Attribute):
            if not meanings or any(one.startswith(("<", "./")) for one in meanings):
                yield node
        elif any(one == STAR or _may_be(one, name) for one in meanings):
            yield None  # imported from a module that cannot be resolved


def _may_be(path: str, name: str) -> bool:
    """Whether the path of an import that was not resolved can be that of a function `name`."""
    is_elsewhere = is_in_run(path) or root_of(path) is not None
    return is_path(path) and path.rpartition(".")[2] == name and not is_elsewhere


def _meanings(program: Program, node: cst.CSTNode) -> frozenset[str]:
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    return program.origins.of_expression(node, scope) if scope is not None else frozenset()
