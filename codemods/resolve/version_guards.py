"""Finds version guards: code with the legacy API in one arm and the final API in another.

An arm is the body of an `if`, `elif`, `else` or `case`, of a `try` or an `except` that catches the
absence of a name, a side of a conditional expression or of `and` and `or`, an element of a table
that is read at once, or what `getattr` returns. An arm that ends the block (`return`, `raise`) has
what follows it as its other arm; a function or class that only one arm uses belongs to this arm. A
legacy arm is kept as a whole: rewriting a name inside it would break it on the TensorFlow that it
is for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..model import Target
from .legacy_symbols import Family, Legacy, Namespace, is_final, is_of_shim
from .program import Program, Reference, Unclear
from .reaching_values import loads_of
from .scopes import Binding, Scope
from .tree import children, walk
from .version_tests import features_tested, is_version_test, needs_old_version

__all__ = ["Guarded", "guarded_places", "keep_guards"]

Arm = tuple[cst.CSTNode, ...]
"""The parts of an arm: a body, or the statements that follow an `if`."""

_ABSENCE = ("ImportError", "ModuleNotFound", "AttributeError", "Exception")
"""The errors that the absence of a name raises, and their base."""

_MODULE = "*"
"""The name of a marker that is a module."""


class Guarded(NamedTuple):
    """A place in the legacy arm of a version guard.

    Attributes:
      node: the name, the attribute chain, or the import alias.
      symbol: the legacy symbol or module, as findings name it.
      name: the variable that means the legacy or the final API afterwards; empty: there is none.
      has_final: whether another arm reaches the final API; otherwise the arm runs on TensorFlow
        below 2.4 only, or where TensorFlow has the legacy API.
      guard: the guard with the final arm; None if there is none, or the place is outside of it.
    """

    node: cst.CSTNode
    symbol: str
    name: str
    has_final: bool
    guard: Optional[cst.CSTNode] = None


class _Marker(NamedTuple):
    """A place that shows which API an arm uses.

    The shim's legacy symbols run on every TensorFlow. Such a place is final beside TensorFlow's
    legacy symbols, and legacy beside final ones, so it has two markers.
    """

    node: cst.CSTNode
    family: Family
    name: str
    is_final: bool
    never_existed: bool = False
    is_on_shim: bool = False


class _Branch(NamedTuple):
    """One arm.

    Attributes:
      arm: its parts.
      tests: the conditions that lead to it, each with whether it is negated.
      by: what else decides between the arms, such as the subject of `match`.
    """

    arm: Arm
    tests: tuple[tuple[cst.BaseExpression, bool], ...] = ()
    by: tuple[cst.BaseExpression, ...] = ()


def keep_guards(program: Program) -> None:
    """Moves the references in legacy arms to `program.guarded`, so that no rule edits them."""
    places = program.cached(guarded_places)
    kept = {place.node for place in places}
    behind = [one for one in program.references if one.node in kept]
    left = list(behind)
    while left:
        for one in _behind(program, left.pop()):
            if one not in behind:
                behind.append(one)
                left.append(one)
    stays = set(behind)
    for scope, name in program.guarded_names:
        for binding in scope.bindings[name]:
            meanings = program.origins.of_binding(binding)
            place = _place_of(binding)
            is_known = any(node in kept for node in walk(place))
            if not is_known and any(
                is_final(path, program.options.from_shim) is False for path in meanings
            ):
                words = ", ".join(sorted(program.origins.of_name(name, scope)))
                program.unclear.append(Unclear(place, scope, name, "several", words))
                # The uses of the name stay, so what it is bound to stays, too.
                stays.update(one for one in program.references if one.node in set(walk(place)))
    program.guarded += [one for one in program.references if one in stays]
    program.references = [one for one in program.references if one not in stays]
    program.by_node = {one.node: one for one in program.references}


def _behind(program: Program, reference: Reference) -> Iterator[Reference]:
    """The references that the first name of `reference` was assigned: `LSO = tf.keras...`."""
    root = reference.root
    for binding in reference.scope.bindings_of(root.value) if root is not None else ():
        found = program.by_node.get(binding.node if binding.value is None else binding.value)
        if found is not None:
            yield found


def guarded_places(program: Program) -> list[Guarded]:
    """Every place that means a legacy symbol or module in the legacy arm of a version guard."""
    guards = _Guards(program)
    bound = {
        _place_of(one): one for scope, name in program.guarded_names for one in scope.bindings[name]
    }
    found = []
    for marker in guards.markers:
        if marker.is_final:
            continue
        verdict = guards.verdict(marker)
        if verdict is not None:
            around = [marker.node, *program.ancestors(marker.node)]
            name = next((bound[node].name for node in around if node in bound), "")
            found.append(Guarded(marker.node, _shown(marker), name, *verdict))
    known = {place.node for place in found}
    left = [one for one in program.references if one.node in known]
    for one in left:
        for behind in _behind(program, one):
            if behind.node not in known:
                known.add(behind.node)
                left.append(behind)
                found.append(Guarded(behind.node, behind.legacy.name, "", True))
    return found


def _shown(marker: _Marker) -> str:
    if marker.name != _MODULE:
        return marker.name
    return "contrib" if marker.family is Family.CONTRIB else "experimental"


def _place_of(binding: Binding) -> cst.CSTNode:
    return binding.node if binding.value is None else binding.value


class _Verdict(NamedTuple):
    """Whether another arm of the guard around a legacy arm is final, and this guard."""

    has_final: bool
    guard: Optional[cst.CSTNode] = None


class _Guards:
    """The markers of a program, and what the arms around them mean."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.markers = list(_markers(program))
        self._branches: dict[cst.CSTNode, list[_Branch]] = {}
        self._by_version: dict[cst.CSTNode, bool] = {}
        self._of_uses: dict[tuple[cst.CSTNode, cst.CSTNode], Optional[_Verdict]] = {}
        self._above: dict[cst.CSTNode, list[_Marker]] = {}
        for marker in self.markers:
            self._register(marker, marker.node, set())

    def _register(self, marker: _Marker, node: cst.CSTNode, seen: set[cst.CSTNode]) -> None:
        """Adds a marker to everything around it, and around the uses of its function or class."""
        self._above.setdefault(node, []).append(marker)
        for above in self.program.ancestors(node):
            self._above.setdefault(above, []).append(marker)
            if isinstance(above, (cst.FunctionDef, cst.ClassDef)) and above not in seen:
                seen.add(above)
                for use in self._uses(above):
                    self._register(marker, use, seen)

    def _uses(self, definition: Union[cst.FunctionDef, cst.ClassDef]) -> Sequence[cst.CSTNode]:
        """The places outside a function or class that use it."""
        name = definition.name.value
        scope = self.program.cached(_scopes_of_definitions).get(definition)
        if scope is None:
            return ()
        uses: list[cst.CSTNode] = []
        if scope.kind == "class":
            uses += self.program.attributes(name)
        else:
            uses += loads_of(self.program, scope, name)
        return [use for use in uses if definition not in self.program.ancestors(use)]

    def verdict(self, marker: _Marker) -> Optional[_Verdict]:
        """What is known of the legacy arm around a marker; None if it is in none."""
        return self._verdict(marker, marker.node, frozenset())

    def _verdict(
        self, marker: _Marker, node: cst.CSTNode, seen: frozenset[cst.CSTNode]
    ) -> Optional[_Verdict]:
        is_old = False
        around = [node, *self.program.ancestors(node)]
        inside = set(around)
        for guard in around:
            if isinstance(guard, (cst.FunctionDef, cst.ClassDef)) and guard not in seen:
                # Each function is followed once: the number of paths to it grows exponentially.
                key = marker.node, guard
                if key not in self._of_uses:
                    self._of_uses[key] = None
                    uses = self._uses(guard)
                    found = [self._verdict(marker, use, seen | {guard}) for use in uses]
                    if found and None not in found:
                        has_final = all(one is not None and one.has_final for one in found)
                        self._of_uses[key] = _Verdict(has_final)
                verdict = self._of_uses[key]
                if verdict is not None:
                    return verdict
                continue
            for candidate in [guard, *self._tests_beside(guard)]:
                branches = self._branches_of(candidate)
                mine = next((one for one in branches if not inside.isdisjoint(one.arm)), None)
                if mine is None:
                    continue
                others = [one.arm for one in branches if one is not mine]
                # Conditions are looked at last, because that takes longest.
                if any(self._is_twin(mine.arm, other, marker) for other in others) and (
                    not (mine.tests or mine.by) or self._is_by_version(candidate)
                ):
                    return _Verdict(True, guard if candidate is guard else None)
                is_old = is_old or self._is_old(mine, marker)
        return _Verdict(False) if is_old else None

    def _tests_beside(self, statement: cst.CSTNode) -> list[cst.CSTNode]:
        """The `if` statements in the same block, of which `statement` can be the other arm."""
        block = self.program.parents.get(statement)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return []
        return [
            one
            for one in block.body
            if isinstance(one, cst.If) and one.orelse is None and one is not statement
        ]

    def _branches_of(self, guard: cst.CSTNode) -> list[_Branch]:
        """The arms of `guard`, which many places can share."""
        if guard not in self._branches:
            self._branches[guard] = _branches(self.program, guard, self._above)
        return self._branches[guard]

    def _is_by_version(self, guard: cst.CSTNode) -> bool:
        if guard not in self._by_version:
            self._by_version[guard] = any(
                is_version_test(self.program, test)
                for one in self._branches_of(guard)
                for test in [*(test for test, _ in one.tests), *one.by]
            )
        return self._by_version[guard]

    def _in(self, arm: Arm) -> list[_Marker]:
        return [marker for part in arm for marker in self._above.get(part, ())]

    def _is_twin(self, arm: Arm, other: Arm, marker: _Marker) -> bool:
        """Whether `arm`, with the legacy `marker`, has its final twin in `other`."""
        others = self._in(other)
        if any(not one.is_final and not one.never_existed for one in others):
            return False  # both arms are legacy, at least in part
        if marker.never_existed and any(one.never_existed for one in others):
            return False
        mine = [one for one in self._in(arm) if not one.is_final]
        return any(_same_use(one, final) for one in mine for final in others)

    def _is_old(self, branch: _Branch, marker: _Marker) -> bool:
        """Whether the arm runs only where the final API does not exist, or the legacy one does."""
        for test, negated in branch.tests:
            if not negated and marker.family is Family.EXPERIMENTAL:
                features = list(features_tested(test))
                if marker.name in features or "experimental" in features:
                    return True
            if (
                marker.family in (Family.EXPERIMENTAL, Family.V1)
                and self.program.options.target is Target.FINAL
                and needs_old_version(self.program, test, negated)
            ):
                return True
        return False


def _same_use(old: _Marker, new: _Marker) -> bool:
    if old.family is not new.family or (old.is_on_shim and new.is_on_shim):
        return False
    if old.never_existed and new.never_existed:
        return False
    if _MODULE in (old.name, new.name):
        return True
    return new.name == old.name or (old.name, new.name) == ("set_policy", "set_global_policy")


def _markers(program: Program) -> Iterator[_Marker]:
    for reference in program.references:
        if not isinstance(reference.node, cst.ImportAlias):
            yield _of_symbol(reference.node, reference.legacy)
            if reference.legacy.is_on_shim:
                yield from _final_on_shim(reference.node, reference.legacy.name)
    for binding in program.imports():
        marker = _of_path(program, binding.node, binding.path)
        if marker is not None:
            yield marker
    for use in program.namespaces:
        paths = program.origins.of_expression(use.node, use.scope)
        namespace = program.namespace_of(use.path) if len(paths) == 1 else None
        if namespace is not None and not _is_examined(program, use.node):
            yield _of_namespace(use.node, namespace, is_of_shim(use.path))
    for node, name in program.migrated:
        yield from _final_on_shim(node, name)
    for read in program.dynamic:
        marker = _of_path(program, read.node, read.path)
        if marker is not None:
            yield marker


def _is_examined(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is the object of `hasattr` or `getattr`."""
    argument = program.parents.get(node)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Name)
        and call.func.value in ("hasattr", "getattr")
        and call.args[0] is argument
    )


def _final_on_shim(node: cst.CSTNode, name: str) -> Iterator[_Marker]:
    for family in (Family.EXPERIMENTAL, Family.V1, Family.CROSS_SHARD, Family.CONTRIB):
        yield _Marker(node, family, name, True, is_on_shim=True)


def _of_path(program: Program, node: cst.CSTNode, path: str) -> Optional[_Marker]:
    legacy, namespace = program.legacy_of(path), program.namespace_of(path)
    if legacy is not None:
        return _of_symbol(node, legacy)
    return None if namespace is None else _of_namespace(node, namespace, is_of_shim(path))


def _of_symbol(node: cst.CSTNode, legacy: Legacy) -> _Marker:
    family = Family.EXPERIMENTAL if legacy.family is Family.FINAL else legacy.family
    is_final = legacy.family is Family.FINAL or legacy.is_in_compat_v1
    if legacy.is_on_shim:
        is_final = legacy.is_final_path
    return _Marker(node, family, legacy.name, is_final, legacy.never_existed, legacy.is_on_shim)


def _of_namespace(node: cst.CSTNode, namespace: Namespace, is_on_shim: bool) -> _Marker:
    family = Family.EXPERIMENTAL if namespace.family is Family.FINAL else namespace.family
    return _Marker(node, family, _MODULE, namespace.is_final, is_on_shim=is_on_shim)


def _branches(program: Program, node: cst.CSTNode, marked: Container[cst.CSTNode]) -> list[_Branch]:
    """The arms of `node`, if it is something that a version guard is written with.

    Of the statements beside it, only those around one of the nodes in `marked` count.
    """
    if isinstance(node, cst.IfExp):
        return [
            _Branch((node.body,), ((node.test, False),)),
            _Branch((node.orelse,), ((node.test, True),)),
        ]
    if isinstance(node, cst.If):
        above = program.parents.get(node)
        is_elif = isinstance(above, cst.If) and above.orelse is node
        return [] if is_elif else _branches_of_if(program, node, marked)
    if isinstance(node, (cst.Try, cst.TryStar)):
        handlers: Sequence[Union[cst.ExceptHandler, cst.ExceptStarHandler]] = node.handlers
        if not any(_catches_absence(program, handler) for handler in handlers):
            return []
        body: Arm = (node.body, node.orelse) if node.orelse is not None else (node.body,)
        return [_Branch(arm, ()) for arm in [body, *((one,) for one in handlers)]]
    if isinstance(node, cst.Match):
        return [_branch_of_case(node.subject, case) for case in node.cases]
    if isinstance(node, (cst.Dict, cst.List, cst.Tuple)):
        return _branches_of_table(program, node)
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
        left = node.left
        if isinstance(left, cst.BooleanOperation) and isinstance(left.operator, cst.And):
            tests = ((left.left, False),), ((left.left, True),)
            return [_Branch((left.right,), tests[0]), _Branch((node.right,), tests[1])]
        return []
    if isinstance(node, cst.With):
        return _branches_of_siblings(program, node, marked) if _suppresses(program, node) else []
    if isinstance(node, cst.Call) and len(node.args) == 3:
        is_getattr = any(read.node is node.args[1].value for read in program.dynamic)
        return [_Branch((node.args[i],), ()) for i in (1, 2)] if is_getattr else []
    return []


def _branches_of_if(
    program: Program, node: cst.If, marked: Container[cst.CSTNode]
) -> list[_Branch]:
    found = []
    negated: tuple[tuple[cst.BaseExpression, bool], ...] = ()
    one: Union[cst.If, cst.Else, None] = node
    ends = True
    while isinstance(one, cst.If):
        found.append(_Branch((one.body,), (*negated, (one.test, False))))
        negated = (*negated, (one.test, True))
        ends = ends and _ends(one.body)
        one = one.orelse
    if one is not None:
        found.append(_Branch((one.body,), negated))
        return found
    block = program.parents.get(node)
    statements = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    index = next((i for i, statement in enumerate(statements) if statement is node), 0)
    if ends:
        found.append(_Branch(tuple(statements[index + 1 :]), negated))
    else:
        bound = {name for branch in found for name in _names_bound(branch.arm[0])}
        before = [
            one
            for one in statements[:index]
            if isinstance(one, cst.SimpleStatementLine) and bound & _names_bound(one)
        ]
        found.append(_Branch(tuple(before), negated))
        found += _branches_of_siblings(program, node, marked)[1:]
    return found


def _branches_of_siblings(
    program: Program, node: Union[cst.If, cst.With], marked: Container[cst.CSTNode]
) -> list[_Branch]:
    """The arms of statements of the same kind beside each other, the one of `node` first.

    Examples are `if old: ...` and `if not old: ...`, and two `with suppress(AttributeError):`.
    """
    found = [_Branch((node.body,), ((node.test, False),) if isinstance(node, cst.If) else ())]
    block = program.parents.get(node)
    for one in block.body if isinstance(block, (cst.IndentedBlock, cst.Module)) else ():
        if one is node or one not in marked:
            continue
        if isinstance(node, cst.If) and isinstance(one, cst.If) and one.orelse is None:
            if is_version_test(program, node.test) and is_version_test(program, one.test):
                found.append(_Branch((one.body,), ((one.test, False),)))
        elif isinstance(node, cst.With) and isinstance(one, cst.With) and _suppresses(program, one):
            found.append(_Branch((one.body,)))
    return found


def _suppresses(program: Program, node: cst.With) -> bool:
    """Whether it is `with contextlib.suppress(AttributeError):`."""
    code = " ".join(program.code(item.item) for item in node.items)
    return "suppress(" in code and any(name in code for name in _ABSENCE)


def _branch_of_case(subject: cst.BaseExpression, case: cst.MatchCase) -> _Branch:
    value = case.pattern.value if isinstance(case.pattern, cst.MatchSingleton) else None
    by = (subject,) if case.guard is None else (subject, case.guard)
    if value is None or value.value == "None":
        return _Branch((case.body,), (), by)
    return _Branch((case.body,), ((subject, value.value == "False"),), by)


def _branches_of_table(
    program: Program, node: Union[cst.Dict, cst.List, cst.Tuple]
) -> list[_Branch]:
    """The elements of `{True: old, False: new}[condition]`, also if a variable holds the table."""
    target = program.parents.get(node)
    uses: Sequence[cst.CSTNode] = [node]
    if isinstance(target, cst.Assign) and isinstance(target.targets[0].target, cst.Name):
        uses = _loads_of_target(program, target.targets[0].target)
    keys: list[cst.BaseExpression] = []
    arms: list[cst.CSTNode] = []
    for use in uses:
        above = program.parents.get(use)
        if isinstance(above, cst.Subscript) and above.value is use:
            for element in above.slice:
                if isinstance(element.slice, cst.Index):
                    keys.append(element.slice.value)
        elif isinstance(above, cst.Attribute) and above.attr.value == "get":
            call = program.call_of(above)
            if call is not None and call.args:
                keys.append(call.args[0].value)
                arms += call.args[1:]
    if not keys:
        return []
    arms += node.elements
    return [_Branch((arm,), (), tuple(keys)) for arm in arms]


def _loads_of_target(program: Program, target: cst.Name) -> Sequence[cst.CSTNode]:
    for scope in program.all_scopes():
        if any(one.node is target for one in scope.bindings.get(target.value, ())):
            return loads_of(program, scope, target.value)
    return ()


def _scopes_of_definitions(program: Program) -> dict[cst.CSTNode, Scope]:
    """The scope in which each function and class is defined."""
    return {
        binding.node: scope
        for scope in program.all_scopes()
        for bindings in scope.bindings.values()
        for binding in bindings
        if binding.kind in ("function", "class")
    }


def _ends(body: cst.CSTNode) -> bool:
    """Whether a body ends with a statement that leaves the block."""
    last = children(body)[-1:]
    while last and isinstance(last[0], cst.SimpleStatementLine):
        last = children(last[0])[-1:]
    return bool(last) and isinstance(last[0], (cst.Return, cst.Raise, cst.Continue, cst.Break))


def _names_bound(statement: cst.CSTNode) -> set[str]:
    """The names that imports and assignments in a body or simple statement bind."""
    found = set()
    for node in walk(statement):
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Name):
            found.add(node.target.value)
        elif isinstance(node, cst.ImportAlias):
            name = node.asname.name if node.asname is not None else node.name
            if isinstance(name, cst.Name):
                found.add(name.value)
    return found


def _catches_absence(
    program: Program, handler: Union[cst.ExceptHandler, cst.ExceptStarHandler]
) -> bool:
    if handler.type is None:
        return True
    names = program.code(handler.type)
    return any(name in names for name in _ABSENCE)
