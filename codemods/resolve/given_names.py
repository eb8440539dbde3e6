"""Finds the names under which a file hands on what is made of the version of TensorFlow.

Such as `old` in `Config(old=tf.__version__ < "2")`, in `setattr(config, "old", ...)`, and in
`parser.add_argument("--old", default=...)`. Where another file reads `config.old`, nothing else
leads to the version: what an object has is not known there.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Optional

from .legacy_symbols import may_show_version, root_of, shows_version
from .python_nodes import PythonNodes

__all__ = ["CALLED", "KEY", "NAMED", "names_given"]

KEY = "["
"""Begins the name of a key, or a name in a text."""
NAMED = "="
"""Begins the name of an argument, or of a parameter."""
CALLED = "("
"""Begins the name of a function of which an argument without a name is given, or any parameter."""

_SHOWING = ("dir", "hasattr")
"""The functions that show what a version of TensorFlow has."""
_FUNCTIONS = (ast.AsyncFunctionDef, ast.FunctionDef)
_IN_EXPRESSIONS = (ast.expr, ast.keyword, ast.comprehension, ast.slice)


def names_given(nodes: PythonNodes, bound: Mapping[str, Set[str]]) -> frozenset[str]:
    """The names that a file gives what is made of the version.

    They are attributes, as `.old`; keys and texts, as `[old`; arguments, as `=old`; and functions
    with an argument without a name, as `(run`.

    Args:
      nodes: the nodes of the file.
      bound: the paths that each name can mean that the file imports.
    """
    made = _Made(nodes, bound)
    if not made.is_any:
        return frozenset()
    given = [_given_to_call(call, made) for call in nodes.of(ast.Call)]
    given += [_given_to_targets(assign, made) for assign in nodes.of(ast.Assign)]
    given += [_given_to_keys(mapping, made) for mapping in nodes.of(ast.Dict)]
    given += [_given_to_class(owner, made) for owner in nodes.of(ast.ClassDef)]
    return frozenset(itertools.chain.from_iterable(given))


class _Made:
    """What a file makes of the version.

    Attributes:
      is_any: whether there is something.
    """

    def __init__(self, nodes: PythonNodes, bound: Mapping[str, Set[str]]) -> None:
        """Finds what shows the version, and follows it through the names of the file."""
        self._nodes = nodes
        self._bound = {name: paths for name, paths in bound.items() if any(map(root_of, paths))}
        """Those of TensorFlow: most files have none, and nothing else is looked at."""
        named = self._bound.items()
        self._names = {name for name, paths in named if any(map(shows_version, paths))}
        shown = list(self._shown()) if self._bound else []
        self.is_any = bool(shown or self._names)
        self._including: set[int] = set()
        """The `id`s of the expressions that have a part that is made of the version, and of the
        functions that return one."""
        if self.is_any:
            self._follow(shown)

    def includes(self, node: Optional[ast.AST]) -> bool:
        """Whether an expression has a part that is made of the version."""
        return id(node) in self._including

    def names_bound(self, statement: Optional[ast.AST]) -> Iterator[str]:
        """The plain names that a statement binds to what is made of the version."""
        if isinstance(statement, _FUNCTIONS) and self.includes(statement):
            yield statement.name
        elif isinstance(statement, ast.AnnAssign) and self.includes(statement.value):
            yield from _plain_names([statement.target])
        elif isinstance(statement, ast.Assign) and self.includes(statement.value):
            yield from _plain_names(statement.targets)

    def _follow(self, shown: Iterable[ast.AST]) -> None:
        """Finds all that is made of these expressions; each part and each name is seen once."""
        reads: dict[str, list[ast.AST]] = {}
        for read in self._nodes.of(ast.Name):
            reads.setdefault(read.id, []).append(read)
        pending = [*shown, *(read for name in self._names for read in reads.get(name, ()))]
        while pending:
            for name in self.names_bound(self._statement_around(pending.pop())):
                if name not in self._names:
                    self._names.add(name)
                    pending += reads.get(name, ())

    def _statement_around(self, part: ast.AST) -> Optional[ast.AST]:
        """Adds the expressions around a part; returns their statement, of `return` the function.

        None if they are known already.
        """
        around: Optional[ast.AST] = part
        while isinstance(around, _IN_EXPRESSIONS):
            if id(around) in self._including:
                return None
            self._including.add(id(around))
            around = self._nodes.parents.get(id(around))
        if isinstance(around, ast.Return):
            while around is not None and not isinstance(around, _FUNCTIONS):
                around = self._nodes.parents.get(id(around))
            if around is not None:
                self._including.add(id(around))
        return around

    def _shown(self) -> Iterator[ast.AST]:
        """The expressions that show the version, or what it has."""
        for name, attributes in self._nodes.attributes.items():
            if may_show_version(name):
                yield from filter(self._is_version, attributes)
        yield from filter(self._shows, self._nodes.calls_of(_SHOWING))

    def _is_version(self, node: ast.Attribute) -> bool:
        names = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            names.append(value.attr)
            value = value.value
        rest = ".".join(reversed(names))
        paths = self._bound.get(value.id, ()) if isinstance(value, ast.Name) else ()
        return any(shows_version(f"{path}.{rest}") for path in paths)

    def _shows(self, call: ast.Call) -> bool:
        """Whether a call such as `hasattr(tf, "contrib")` shows what a version has."""
        is_showing = isinstance(call.func, ast.Name)
        first = call.args[0] if is_showing and call.args else None
        while isinstance(first, ast.Attribute):
            first = first.value
        paths = self._bound.get(first.id, set()) if isinstance(first, ast.Name) else set()
        return bool(paths) and all(root_of(path) is not None for path in paths)


def _plain_names(targets: Iterable[ast.expr]) -> Iterator[str]:
    """The names in the targets of an assignment, also in a tuple; no attributes or keys."""
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        yield from (part.id for part in parts if isinstance(part, ast.Name))


def _given_to_call(call: ast.Call, made: _Made) -> Iterator[str]:
    """The names that get what is made of the version in a call."""
    for keyword in call.keywords:
        if keyword.arg is not None and made.includes(keyword.value):
            # As in `run(old=...)`, `Config(old=...)` and `dict(old=...)`.
            yield from (f"{NAMED}{keyword.arg}", f".{keyword.arg}", f"{KEY}{keyword.arg}")
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(map(made.includes, values)):
        yield from (name for value in call.args for name in _texts(value))
    if any(map(made.includes, call.args)):
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else None
        yield f"{CALLED}{function.id if isinstance(function, ast.Name) else name}"


def _given_to_targets(assign: ast.Assign, made: _Made) -> Iterator[str]:
    """The attributes and keys that are assigned what is made of the version."""
    for target in assign.targets if made.includes(assign.value) else ():
        if isinstance(target, ast.Attribute):
            yield f".{target.attr}"
        elif isinstance(target, ast.Subscript):
            yield from _texts(target.slice)


def _given_to_keys(mapping: ast.Dict, made: _Made) -> Iterator[str]:
    """The keys of such values in a dictionary."""
    for key, value in zip(mapping.keys, mapping.values):
        if made.includes(value):
            yield from _texts(key)


def _given_to_class(owner: ast.ClassDef, made: _Made) -> Iterator[str]:
    """The attributes of a class, and what its methods return."""
    for statement in owner.body:
        yield from (f".{name}" for name in made.names_bound(statement))


def _texts(node: Optional[ast.expr]) -> Iterator[str]:
    """The names in a literal: of a key, of an attribute, and of an option such as `--old`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.lstrip("-").replace("-", "_")
        if name.isidentifier():
            yield f"{KEY}{name}"
            yield f".{name}"
