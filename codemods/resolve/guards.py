"""Recognizes the branches of a file that only some versions of TensorFlow take.

A branch counts as one if its condition depends on the version, or on what a module of TensorFlow
has (`conditions`), or if it handles an import that fails. The uses of a function, class or table
with a legacy place are tested, too. Where the condition can be computed for the newest TensorFlow
(`releases`), a branch that this takes does not count. No branch is ever removed.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..facts import Constant
from ..model import Group
from .conditions import (
    decides_without,
    dependence_of,
    expressions_behind,
    tests_of_text,
    tried_as,
    tries_tensorflow,
)
from .legacy_symbols import Family, is_of_shim, legacy_of, namespace_of
from .mentions import Mention
from .places import NamespaceUse, Place, Unclear, Why
from .releases import Flags, value_on_newest
from .resolved_program import ResolvedProgram
from .tree import body_of, children, last_name, walk
from .vocabulary import CROSS_SHARD, MODULE

__all__ = ["Branch", "BranchKind", "Guards", "is_final", "moves"]

_MISSING = ("ImportError", "ModuleNotFound", "AttributeError", "Exception")
_EXITS = (cst.Return, cst.Continue, cst.Break, cst.Raise)
_RUNNING = (cst.Call, cst.ClassDef, cst.FunctionDef, cst.If)
_DECIDING: dict[type, str] = {
    **dict.fromkeys((cst.If, cst.IfExp, cst.While), "test"),
    **dict.fromkeys((cst.FunctionDef, cst.ClassDef), "decorators"),
    **dict.fromkeys((cst.DictComp, cst.GeneratorExp, cst.ListComp, cst.SetComp), "for_in"),
    cst.BooleanOperation: "left",
    cst.Call: "args",
    cst.For: "iter",
    cst.Match: "subject",
    cst.MatchCase: "guard",
    cst.Subscript: "slice",
}
"""What decides, in each kind of node, whether the rest of it runs, or which part is used."""
_HOLDERS = (
    cst.Arg, cst.Dict, cst.DictElement, cst.Element, cst.IfExp, cst.Lambda, cst.List, cst.Set,
    cst.Tuple,
)  # fmt: skip
_HOLDING = ("OrderedDict", "dict", "partial", "staticmethod")


_Guarded = Union[Place, Unclear]
"""A legacy place, or one that comes through another file."""


class BranchKind(enum.Enum):
    """How a version of TensorFlow decides about a branch."""

    TESTED = "the version is tested"
    IMPORTED = "an import is tried"
    USED = "such a branch uses the code"


class Branch(NamedTuple):
    """A branch that the newest TensorFlow does not take, or that it may not take.

    Attributes:
      node: the branch.
      others: the other branches of its statement.
      kind: how the version decides.
      is_never_taken: whether it is certain that the newest TensorFlow does not take it.
      is_scaled_elsewhere: whether another branch scales the loss, too.
      raises: whether the other branch raises an error.
      names: the names of other files that decide; empty if this file does.
      test: what decides; None for a `try`.
      tested_again: for a `try` that binds a class, what else decides how that class is used.
      places: the legacy places in it, in the order of the source.
    """

    node: cst.CSTNode
    others: Sequence[cst.CSTNode] = ()
    kind: BranchKind = BranchKind.TESTED
    is_never_taken: bool = False
    is_scaled_elsewhere: bool = False
    raises: bool = False
    names: frozenset[str] = frozenset()
    test: Optional[cst.CSTNode] = None
    tested_again: Optional[cst.CSTNode] = None
    places: tuple[_Guarded, ...] = ()

    @property
    def is_tried_import(self) -> bool:
        """Whether it runs if an import succeeds."""
        return self.kind is BranchKind.IMPORTED

    @property
    def is_of_uses(self) -> bool:
        """Whether it only uses the code that has the places."""
        return self.kind is BranchKind.USED


class Guards:
    """The branches of a file that only some versions of TensorFlow take."""

    def __init__(self, program: ResolvedProgram) -> None:
        self._program = program

    def branches(self, flags: Flags, known: frozenset[str]) -> list[Branch]:
        """The innermost branch around each legacy place, or around what uses it.

        Args:
          flags: the names of other files that depend on the version. With the flags of an
            unfinished search, those branches that names of other files may decide are not included.
          known: the paths through other files that lead to legacy symbols.
        """
        sorted_flags = tuple(sorted(flags.items(), key=lambda item: item[0]))
        return self._program.cached(_branches, sorted_flags, known)

    def guarded_places(self) -> Iterator[tuple[_Guarded, frozenset[str]]]:
        """The legacy places in branches that only some versions take, with the names that decide.

        The names are those of other files, any of which may depend on the version: if one does, the
        place is in such a branch. They are empty if this file alone shows that it is.
        """
        program = self._program
        search = _Search(program, None)
        places: list[_Guarded] = [place for place in program.places() if moves(place)]
        for place in [*places, *_through_others(program)]:
            names: set[str] = set()
            for guard in search.of(place):
                if not guard.names:
                    yield place, frozenset()
                    break
                names |= guard.names
            else:
                if names:
                    yield place, frozenset(names)

    def conditions(self) -> frozenset[str]:
        """The names of other files that may decide whether legacy places of this one run.

        The names of classes that come through other files are included: a `try` may bind them.
        """
        found: set[str] = set()
        for place, names in self.guarded_places():
            found |= names
            if isinstance(place, Unclear):
                found.add(place.path)
        return frozenset(found)

    def depends_on_version(self, node: cst.CSTNode) -> bool:
        """Whether the version of TensorFlow decides if a place runs, as this file alone shows."""
        return any(True for _ in _Search(self._program, {}).around(node))

    def compared_as_text(self, texts: Mapping[str, str]) -> dict[cst.CSTNode, str]:
        """The tests of the version that decide about places, and do not compare numbers.

        Each has the first release that it takes for an older one. For a test in another file, that
        is the condition that reads its name.

        Args:
          texts: the names of other files that such tests make, with that release.
        """
        program = self._program
        conditions = program.cached(_all_conditions)
        certain = [part for part in conditions if dependence_of(program, part).is_certain]
        found: dict[cst.CSTNode, str] = {}
        for expression in expressions_behind(program, certain):
            found.update(tests_of_text(program, expression))
        for condition in conditions:
            names = dependence_of(program, condition).names & texts.keys()
            if names:
                found[condition] = min(texts[name] for name in names)
        return found


def _through_others(program: ResolvedProgram) -> list[Unclear]:
    """The places that may be legacy symbols of other files, and what reads their imports."""
    found = [
        unclear for unclear in program.unclear if unclear.why is Why.RE_EXPORT or unclear.origin
    ]
    found += program.common
    imports = [unclear for unclear in found if isinstance(unclear.node, cst.ImportAlias)]
    reads = [
        imported._replace(node=read)
        for imported in imports
        for read in program.values.reads_of(imported.node)
    ]
    return found + reads


def _branches(
    program: ResolvedProgram,
    sorted_flags: tuple[tuple[str, Optional[tuple[Constant]]], ...],
    known: frozenset[str],
) -> list[Branch]:
    """The result of `Guards.branches`, cached by its arguments, so the flags come as a tuple.

    Each branch is listed once, with all the places of which it is the innermost one.
    """
    guards = _Search(program, dict(sorted_flags))
    found: dict[cst.CSTNode, Branch] = {}
    places: list[_Guarded] = [place for place in program.places() if moves(place)]
    places += [place for place in _through_others(program) if place.path in known]
    for place in sorted(places, key=lambda place: program.order[place.node]):
        branch = _innermost(program, guards, place)
        if branch is not None:
            same = found.get(branch.node, branch)
            tested_again = same.tested_again or branch.tested_again
            places_in = (*same.places, place)
            found[branch.node] = same._replace(places=places_in, tested_again=tested_again)
    return list(found.values())


def _innermost(program: ResolvedProgram, guards: _Search, place: _Guarded) -> Optional[Branch]:
    """The innermost branch that decides about a place; None if there is none.

    A branch that only uses the code of the place does not decide if another one scales the loss.

    None also for `if version: legacy()` with `else: raise`, where the version is not known: the
    newest TensorFlow runs the place or raises the error, and leaves out nothing silently. Where it
    certainly raises the error, the branch is returned, since the program cannot run.
    """
    for guard in guards.of(place):
        is_scaled_elsewhere = _is_scaled_elsewhere(program, guard, place)
        if guard.kind is BranchKind.USED and is_scaled_elsewhere:
            continue
        raises = any(map(_raises, guard.others))
        is_run_or_error = raises and not guard.is_never_taken
        if is_run_or_error and guard.kind is BranchKind.TESTED:
            return None
        return guard._replace(
            is_scaled_elsewhere=is_scaled_elsewhere,
            raises=raises,
            tested_again=_tested_again(program, guards, guard, place),
        )
    return None


def _tested_again(
    program: ResolvedProgram, guards: _Search, guard: Branch, place: _Guarded
) -> Optional[cst.CSTNode]:
    """The test of the version that decides how a class is used that a `try` binds; or None.

    With the shim, what is tried first succeeds on every TensorFlow, so the class no longer fits the
    test. A flag that the `try` sets still fits.
    """
    if isinstance(place, Unclear) and guards.is_flag(place.path):
        return guard.test if _is_used_in_two_ways(program, guard, place) else None
    statement = program.parents.get(guard.node)
    if not isinstance(statement, cst.Try):
        return None
    reads = _reads_of_tried(program, statement, place)
    for other in _guards_of_uses(program, guards, reads):
        is_error = any(map(_raises, other.others))
        if other.test is None or is_error:
            continue
        if other.names or decides_without(program, other.test, statement):
            return other.test
    return None


def _is_used_in_two_ways(program: ResolvedProgram, guard: Branch, place: Unclear) -> bool:
    """Whether both branches use a class of a different file, but not in the same way."""
    if not isinstance(place.node, cst.Name) or not place.symbol[:1].isupper():
        return False
    owner = place.scope.owner(place.node.value)
    reads = program.loads_of(owner, place.node.value) if owner is not None else []
    is_in_both = any(_is_within(program, read, guard.others) for read in reads)
    return is_in_both and not _is_used_alike(program, guard, reads)


def _guards_of_uses(
    program: ResolvedProgram, guards: _Search, reads: Collection[cst.CSTNode]
) -> Iterator[Branch]:
    """The guards around the uses of a class and of its arguments, unless both branches are alike.

    They are alike in `LossScaleOptimizer(old, 8) if is_old else LossScaleOptimizer(new, 8)`.
    """
    uses = _followed(program, reads)
    for guard in itertools.chain.from_iterable(map(guards.around, uses)):
        if not _is_used_alike(program, guard, uses):
            yield guard
    for read in reads:
        around = {guard.node for guard in guards.around(read)}
        for guard in itertools.chain.from_iterable(
            map(guards.around, _arguments_of(program, read))
        ):
            if guard.node not in around:
                yield guard


def _reads_of_tried(
    program: ResolvedProgram, statement: cst.Try, place: _Guarded
) -> list[cst.CSTNode]:
    """The reads of a name that a `try` binds to a legacy class or module, or to a different one.

    Functions such as `set_policy` and `set_global_policy` are called alike.
    """
    if not isinstance(place, NamespaceUse) and not place.symbol[:1].isupper():
        return []
    found: list[cst.CSTNode] = []
    for name, bindings in place.scope.bindings.items():
        if not any(place.node in (binding.node, binding.value) for binding in bindings):
            continue
        if len(tried_as(program, statement, bindings)) > 1:
            found += program.loads_of(place.scope, name)
    return [read for read in found if not _is_tested_for(program, read)]


def _is_tested_for(program: ResolvedProgram, read: cst.CSTNode) -> bool:
    """Whether a class is only tested for, as in `isinstance(opt, (Scaled, LossScaleOptimizer))`."""
    chain, _ = program.outside(read, (cst.Attribute,))
    return program.mentions.tested_object(chain) is not None


def _is_used_alike(program: ResolvedProgram, guard: Branch, uses: Collection[cst.CSTNode]) -> bool:
    """Whether both branches of a test use the same in the same way."""
    inside, outside = (
        {_form(program, use) for use in uses if _is_within(program, use, parts)}
        for parts in ([guard.node], guard.others)
    )
    return bool(outside) and len(inside | outside) == 1


def _form(program: ResolvedProgram, use: cst.CSTNode) -> tuple[str, ...]:
    """How a class or function is used: what is read from it, and all arguments but the first."""
    chain, _ = program.outside(use, (cst.Attribute,))
    call = program.call_of(chain)
    arguments = call.args[1:] if call is not None else ()
    texts = (program.code(argument).strip(" ,\n") for argument in arguments)
    return (program.code(chain), str(call is not None), *texts)


def _arguments_of(program: ResolvedProgram, read: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What the arguments of a class come from, but for the optimizer, and what changes them."""
    chain, _ = program.outside(read, (cst.Attribute,))
    call = program.call_of(chain)
    for argument in call.args[1:] if call is not None else ():
        for source in program.values.sources_of(argument.value):
            yield source
            for name in program.values.reads_of(source):
                parent = program.parents.get(name)
                if isinstance(parent, (cst.Attribute, cst.Subscript)):
                    yield name


class _Search:
    """Finds guards.

    Args:
      program: the file.
      flags: the names of other files that depend on the version; None if they all count.
    """

    def __init__(self, program: ResolvedProgram, flags: Optional[Flags]) -> None:
        self._program = program
        self._flags = flags

    def of(self, place: _Guarded) -> Iterator[Branch]:
        """The guards around a place, then those around the uses of what contains it.

        What reads an import from another file is a place of its own.
        """
        yield from self.around(place.node, place)
        if not isinstance(place, Unclear) or not isinstance(place.node, cst.ImportAlias):
            yield from self.of_uses(place)

    def is_flag(self, name: str) -> bool:
        """Whether a name of a different file is known to depend on the version."""
        return self._flags is not None and name in self._flags

    def around(self, node: cst.CSTNode, tried: Optional[_Guarded] = None) -> Iterator[Branch]:
        """The guards around a node, the innermost first; of a `tried` place, those too."""
        program, below = self._program, node
        for above in program.ancestors(node):
            deciding = _deciding(program, above)
            if below not in deciding:
                yield from self._decided(above, below, deciding)
            if isinstance(above, cst.Try) and tried is not None:
                yield from self._tried(tried, above, below)
            yield from self._after_exit(below)
            below = above

    def of_uses(self, place: _Guarded) -> Iterator[Branch]:
        """The guards around the uses of the functions, classes and tables that contain a place.

        Each use is followed once: a file of 3,400 lines of zihangdai/xlnet has too many paths
        through functions that call each other.
        """
        program = self._program
        pending = [place.node]
        seen = {place.root or place.node for place in program.places()}
        for uses in itertools.chain.from_iterable(_uses(program, node) for node in pending):
            new = [use for use in uses if use not in seen]
            seen.update(new)
            pending.extend(new)
            yield from self._of_new_uses(new, uses)

    def _of_new_uses(
        self, new: Sequence[cst.CSTNode], uses: Sequence[cst.CSTNode]
    ) -> Iterator[Branch]:
        """The guards around uses, without guards that have another branch with a use."""
        names = [use for use in uses if isinstance(use, cst.Name)]  # attributes: of any object
        for guard in itertools.chain.from_iterable(map(self.around, new)):
            if not any(_is_within(self._program, name, guard.others) for name in names):
                yield guard._replace(kind=BranchKind.USED)

    def _decided(
        self, above: cst.CSTNode, below: cst.CSTNode, deciding: Sequence[cst.CSTNode]
    ) -> Iterator[Branch]:
        """The guard that the tests of a statement or expression are for one of its branches.

        There is none if no version decides, or if the newest TensorFlow certainly takes the branch.
        What it runs in place of the branch is in the other branches, or else after or beside them.

        Args:
          above: the statement or expression.
          below: the branch.
          deciding: the tests, of which the first that depends on the version counts.
        """
        program = self._program
        for test in deciding:
            depends, names = self._depends(test)
            if not depends:
                continue
            is_taken = self._is_taken(above, below, test)
            if is_taken:
                return
            others = self._other_parts(above, below, deciding)
            yield Branch(
                below,
                others or _following(program, above) or self._beside(above, below),
                is_never_taken=is_taken is False,  # not if it is unknown
                names=frozenset(names),
                test=test,
            )
            return

    def _other_parts(
        self, above: cst.CSTNode, below: cst.CSTNode, deciding: Sequence[cst.CSTNode]
    ) -> list[cst.CSTNode]:
        """The parts of a statement or expression that can run in the place of another one."""
        if not isinstance(above, cst.BooleanOperation):
            parts = [part for part in children(above) if part not in deciding]
            return [part for part in parts if part is not below]
        others: list[cst.CSTNode] = [above.left]
        around = self._program.parents[above]
        if isinstance(around, cst.BooleanOperation):  # of `old and legacy or current`
            others.append(around.right)
        return others

    def _beside(self, statement: cst.CSTNode, branch: cst.CSTNode) -> list[cst.CSTNode]:
        """What the newest TensorFlow runs beside `if old:`, if this has no `else`.

        That is the branch of `if new:` in the same block, or the default that the branch replaces.
        """
        program = self._program
        bound = _assigned(branch)
        found: list[cst.CSTNode] = []
        for sibling in body_of(statement, program.parents) or ():
            if sibling is statement:
                continue
            if isinstance(sibling, cst.If):
                if self._may_be_for_newest(sibling):
                    found.append(sibling.body)
                continue
            is_before = program.order[sibling] < program.order[statement]
            if is_before and bound & _assigned(sibling):
                found.append(sibling)
        return found

    def _may_be_for_newest(self, statement: cst.If) -> bool:
        """Whether an `if` tests the version, and the newest TensorFlow may take it."""
        depends, _ = self._depends(statement.test)
        is_taken = self._is_taken(statement, statement.body, statement.test)
        return depends and is_taken is not False

    def _depends(self, node: cst.CSTNode) -> tuple[bool, frozenset[str]]:
        """Whether an expression depends on the version, and by which names of other files."""
        dependence = dependence_of(self._program, node)
        if dependence.is_certain:
            return True, frozenset()
        names = dependence.names
        if self._flags is not None:
            names &= self._flags.keys()
        return bool(names), names

    def _is_taken(
        self, above: cst.CSTNode, below: cst.CSTNode, test: cst.CSTNode
    ) -> Optional[bool]:
        """Whether the newest TensorFlow takes a branch; None if that is not known."""
        if not isinstance(test, cst.BaseExpression):
            return None
        value = value_on_newest(self._program, test, self._flags or {})
        if value is None:
            return None
        if isinstance(above, (cst.If, cst.IfExp)):
            return bool(value[0]) is (below is above.body)
        if isinstance(above, cst.BooleanOperation):
            return bool(value[0]) is isinstance(above.operator, cst.And)
        return None

    def _tried(self, place: _Guarded, statement: cst.Try, below: cst.CSTNode) -> Iterator[Branch]:
        """The guard that a `try` around an import or the read of a module is."""
        program = self._program
        handlers = [handler for handler in statement.handlers if _handles_missing(program, handler)]
        if not handlers:
            return
        if below is statement.body:
            if _have_final(program, handlers, place) or _is_import(program, place, statement.body):
                yield Branch(below, handlers, BranchKind.IMPORTED)
        elif tries_tensorflow(program, statement):
            yield Branch(below, [statement.body] if below in handlers else handlers)

    def _after_exit(self, statement: cst.CSTNode) -> Iterator[Branch]:
        """The guards of what follows `if version: return`."""
        program = self._program
        if body_of(statement, program.parents) is None:
            return
        for exit_ in program.cached(_exits_in, program.parents[statement]):
            if program.order[exit_] >= program.order[statement]:
                continue
            depends, names = self._depends(exit_.test)
            if not depends:
                continue
            value = value_on_newest(program, exit_.test, self._flags or {})
            if value is None and _raises(exit_.body):
                continue  # an error, such as one for a program without eager execution
            if value is None or value[0]:  # the newest TensorFlow leaves before
                never = value is not None
                yield Branch(
                    exit_, [exit_.body], is_never_taken=never, names=names, test=exit_.test
                )


def _assigned(node: cst.CSTNode) -> set[str]:
    """The names that statements below a node assign."""
    targets = (part.target for part in walk(node) if isinstance(part, cst.AssignTarget))
    return {target.value for target in targets if isinstance(target, cst.Name)}


def _all_conditions(program: ResolvedProgram) -> list[cst.CSTNode]:
    """The conditions that decide about places, in the order in which they are found."""
    nodes = _deciding_for(program)
    return list(dict.fromkeys(part for node in nodes for part in _conditions(program, node)))


def _deciding_for(program: ResolvedProgram) -> list[cst.CSTNode]:
    """The places of the file, and what uses their functions, classes and tables."""
    places = [*program.places(), *program.mixed]
    found = {place.node: None for place in places}
    found.update(dict.fromkeys(node for node, _ in program.migrated))
    return _followed(program, found)


def _followed(program: ResolvedProgram, nodes: Collection[cst.CSTNode]) -> list[cst.CSTNode]:
    """Nodes, and what uses the functions, classes and tables around them."""
    found = dict.fromkeys(nodes)
    pending = list(found)
    for node in pending:
        uses = itertools.chain.from_iterable(_uses(program, node))
        new = dict.fromkeys(use for use in uses if use not in found)
        found.update(new)
        pending += new
    return list(found)


def _conditions(program: ResolvedProgram, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The conditions around a node, and the conditions of exits before it."""
    below = node
    for above in program.ancestors(node):
        deciding = _deciding(program, above)
        if below not in deciding:
            yield from deciding
        if body_of(below, program.parents) is not None:
            yield from (exit_.test for exit_ in program.cached(_exits_in, above))
        below = above


def _deciding(program: ResolvedProgram, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """What decides whether the rest of a node runs, or which part of it is used."""
    if isinstance(node, cst.Call) and last_name(node.func) != "get":
        return ()  # not of a table
    found = getattr(node, _DECIDING.get(type(node), ""), None)
    if not isinstance(found, Sequence):
        return [found] if found is not None else ()
    return [test for test in found if "skip" not in program.code(test)]  # a test for some versions


def _uses(program: ResolvedProgram, node: cst.CSTNode) -> list[list[cst.CSTNode]]:
    """The reads of the functions and classes around a node, and of the tables that hold it."""
    above = list(program.ancestors(node))
    holders = itertools.takewhile(_is_holder, above)
    definitions = (
        definition
        for definition in above
        if isinstance(definition, (cst.FunctionDef, cst.ClassDef))
    )
    values = (node, *holders, *definitions)
    return [program.values.reads_of(value) for value in values]


def _is_holder(node: cst.CSTNode) -> bool:
    is_call = isinstance(node, cst.Call) and last_name(node.func) in _HOLDING
    return is_call or isinstance(node, _HOLDERS)


def _is_import(program: ResolvedProgram, place: _Guarded, body: cst.CSTNode) -> bool:
    """Whether the place imports or reads a symbol or module directly in the body of a `try`."""
    between = itertools.takewhile(lambda one: one is not body, program.ancestors(place.node))
    return not any(isinstance(node, _RUNNING) for node in between)


def _exits_in(program: ResolvedProgram, block: cst.CSTNode) -> list[cst.If]:
    """The statements of a block such as `if version: return`."""
    ifs = [
        statement
        for statement in children(block)
        if isinstance(statement, cst.If) and statement.orelse is None
    ]
    return [test for test in ifs if _exits(test.body)]


def _following(program: ResolvedProgram, statement: cst.CSTNode) -> list[cst.CSTNode]:
    """What follows `if version: return legacy`: its other branch."""
    if not isinstance(statement, cst.If) or not _exits(statement.body):
        return []
    body = body_of(statement, program.parents) or ()
    return list(itertools.dropwhile(lambda one: one is not statement, body))[1:]


def _exits(body: cst.BaseSuite) -> bool:
    return isinstance(_last_of(body), _EXITS)


def _raises(branch: cst.CSTNode) -> bool:
    """Whether the last statement of a branch raises an error."""
    if isinstance(branch, (cst.Else, cst.ExceptHandler)):
        branch = branch.body
    if isinstance(branch, cst.SimpleStatementLine):
        return isinstance(branch.body[-1], cst.Raise)
    return isinstance(branch, cst.BaseSuite) and isinstance(_last_of(branch), cst.Raise)


def _last_of(body: cst.BaseSuite) -> Optional[cst.CSTNode]:
    """The last small statement of a block, or its last statement with a block of its own."""
    last = body.body[-1] if body.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last


def _is_within(program: ResolvedProgram, node: cst.CSTNode, parts: Collection[cst.CSTNode]) -> bool:
    return any(above in parts for above in (node, *program.ancestors(node)))


# What is legacy, and what is current.


def moves(place: Place) -> bool:
    """Whether a place names a legacy symbol, a module of such, or the twin of one of these."""
    if isinstance(place, NamespaceUse):
        module = namespace_of(place.path)
        return module is not None and not module.is_current and MODULE in module.name
    return bool(place.legacy.rule) and not place.legacy.is_current


_NOT_SCALING = (Mention.TEST, Mention.ANNOTATION)
"""What a place can do with a class without making an optimizer of it."""


def _is_scaled_elsewhere(program: ResolvedProgram, branch: Branch, place: _Guarded) -> bool:
    """Whether another branch scales the loss after the upgrade.

    It uses the current API, or a legacy name, which becomes the shim's: prouast/prpy has a branch
    for TensorFlow 2.9 and one for 2.12, with the same private class. A legacy import that is tried
    first hides its handlers once it is the shim's, so there only the current API counts.
    """
    if _have_final(program, branch.others, place):
        return True
    if branch.kind is BranchKind.IMPORTED:
        return False
    around = program.cached(_around_scaling, _only_sums(place))
    return not around.isdisjoint(branch.others)


def _only_sums(place: _Guarded) -> bool:
    """Whether a place has to do with sums over shards only, and not with a loss scale."""
    return all(group is Group.CROSS_SHARD for group in place.groups)


def _used(program: ResolvedProgram) -> list[Place]:
    """The legacy places that move, but for tests and annotations."""
    places = [place for place in program.places() if moves(place)]
    return [
        place
        for place in [*places, *program.mixed]
        if isinstance(place, NamespaceUse) or program.mentions.of(place) not in _NOT_SCALING
    ]


def _around_scaling(program: ResolvedProgram, sums: bool) -> set[cst.CSTNode]:
    """What uses a legacy name to scale the loss, and what is around these; with `sums`, any."""
    found = [*_used(program), *_through_others(program)]
    scaling = [place.node for place in found if sums or not _only_sums(place)]
    for node in tuple(scaling):
        for uses in _uses(program, node):
            scaling += [use for use in uses if isinstance(use, cst.Name)]
    return {above for node in scaling for above in (node, *program.ancestors(node))}


def _have_final(program: ResolvedProgram, parts: Collection[cst.CSTNode], place: _Guarded) -> bool:
    """Whether a branch uses the current API, or the shim, which runs on every TensorFlow."""
    around = program.cached(_around_finals, _is_on_shim(place), _only_sums(place))
    return not around.isdisjoint(parts)


def _around_finals(program: ResolvedProgram, is_on_shim: bool, sums: bool) -> set[cst.CSTNode]:
    """What uses the current API, or the shim if a place is not on it, and what is around these.

    Without `sums`, not what sums over shards.
    """
    others = set() if sums else set(filter(_only_sums, program.places()))
    finals = [
        place.node
        for place in program.places()
        if place not in others
        if (not is_on_shim if _is_on_shim(place) else is_final(place))
    ]
    finals += [node for node, name in program.migrated if sums or name not in CROSS_SHARD]
    finals += [imported.node for imported in program.imports() if _is_final_import(imported.path)]
    used = itertools.chain.from_iterable(itertools.chain(*_uses(program, node)) for node in finals)
    found = {*finals, *used} - {place.root for place in others}
    return found.union(*map(program.ancestors, found))


def _handles_missing(program: ResolvedProgram, handler: cst.ExceptHandler) -> bool:
    """Whether a handler catches that a module or an attribute is missing."""
    if handler.type is None:
        return True
    types = program.code(handler.type)
    return any(name in types for name in _MISSING)


def _is_on_shim(place: _Guarded) -> bool:
    if isinstance(place, Unclear):
        return False
    return is_of_shim(place.path) if isinstance(place, NamespaceUse) else place.legacy.is_on_shim


def is_final(place: Place) -> bool:
    """Whether a place names what legacy symbols are migrated to, or a module of that."""
    if isinstance(place, NamespaceUse):
        module = namespace_of(place.path)
        return module is not None and module.is_final
    return place.legacy.is_final_path and place.legacy.family is not Family.CROSS_SHARD


def _is_final_import(path: str) -> bool:
    if not is_of_shim(path) or path.count(".") == 1:
        return False
    module = namespace_of(path)
    return legacy_of(path) is None and (module is None or module.is_final)
