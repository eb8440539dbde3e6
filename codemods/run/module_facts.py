"""Extracts the facts about the top-level names of one file, with Python's own parser.

That parser takes a twentieth of the time of LibCST, and the facts need no formatting. A file that
it cannot parse has no facts: every name that is imported from it is unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple, Optional, Union

from ..resolve.legacy_symbols import root_of

__all__ = ["LOCAL", "UNKNOWN", "ModuleFacts", "facts_of", "words_of"]

LOCAL = "<local>"
"""A value that the module defines or computes itself, such as a class or a function."""
UNKNOWN = "<unknown>"
"""A value that cannot be determined."""

_DEPTH = 20
_CHAIN = 6
"""How many attributes of a chain such as `a.b.c` are read."""
_PATTERNS = ("MatchAs", "MatchStar", "MatchMapping")
_BINDERS = ("exec", "globals", "setattr", "vars", "__import__")
"""Functions with which a module can bind names of its own at run time."""
_WORDS = re.compile(
    rb"LossScaleOptimizer|get_scaled_loss|get_unscaled_gradients|tf_lossscale|tensorflow|tf_keras"
    rb"|enable_mixed_precision_graph_rewrite|from_loss_scale"
    rb"|isinstance|issubclass|IsInstance|__class__|\btype\(|\bcase\b"
)
"""Without these words, a file has no class test and no training loop to examine; see `words_of`."""


class ModuleFacts(NamedTuple):
    """The facts about one module, in a form that is cheap to send between processes.

    Attributes:
      imports: every path that the file imports, as it is written (`.amp.wrap`, `pkg.amp`).
      names: the possible meanings of each top-level name that comes from an import.
      defined: the other top-level names.
      stars: the modules of top-level star imports.
      exported: `__all__`, if it is a plain list.
      is_dynamic: whether the module may bind names at run time that its source does not show.
      reads: the paths of attributes of imported modules that the file reads, such as `.amp.wrap`;
        TensorFlow and Keras are left out.
      stores: the paths of attributes of imported modules to which the file assigns.
      words: see `words_of`.
    """

    imports: frozenset[str] = frozenset()
    names: dict[str, frozenset[str]] = {}
    defined: frozenset[str] = frozenset()
    stars: tuple[str, ...] = ()
    exported: Optional[frozenset[str]] = None
    is_dynamic: bool = False
    reads: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


class _Bound(NamedTuple):
    """What one statement binds a name to: an imported path, or an expression."""

    path: str = ""
    value: Optional[ast.expr] = None


def facts_of(source: bytes) -> Optional[ModuleFacts]:
    """The facts about a module; None if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _Reader(tree).facts()._replace(words=words_of(source))


def words_of(source: bytes) -> frozenset[str]:
    """The words in a source that show whether it may test classes or train with an optimizer."""
    return frozenset(word.decode() for word in set(_WORDS.findall(source)))


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[str, list[_Bound]] = {}
        self.stars: list[str] = []
        self.imports: set[str] = set()
        self.is_dynamic = False
        self.known: dict[str, frozenset[str]] = {}
        self.imported: dict[str, set[str]] = {}
        self.attributes: list[ast.Attribute] = []
        for statement in _own_statements(tree):
            self._statement(statement)
        for node in ast.walk(tree):  # only once, because it takes longer than the parser
            self._anywhere(node)

    def facts(self) -> ModuleFacts:
        names, defined = {}, set()
        for name in self.bound:
            meanings = self._meanings(name, _DEPTH)
            if meanings <= {LOCAL}:
                defined.add(name)
            else:
                names[name] = meanings
        return ModuleFacts(
            imports=frozenset(self.imports),
            names=names,
            defined=frozenset(defined),
            stars=tuple(self.stars),
            exported=self._exported(),
            is_dynamic=self.is_dynamic or "__getattr__" in self.bound,
            reads=frozenset(self._reads()),
            stores=frozenset(self._stores()),
        )

    def _bind(self, name: str, path: str = "", value: Optional[ast.expr] = None) -> None:
        self.bound.setdefault(name, []).append(_Bound(path, value))

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, path in _imported(node):
                if name == "*":
                    self.stars.append(path)
                else:
                    self._bind(name, path)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._bind(node.name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._target(node.target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
            self._target(node.target, None)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._target(item.optional_vars, None)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._unknown(target.id)

    def _target(self, target: ast.expr, value: Optional[ast.expr]) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value=value)
        elif isinstance(target, ast.Starred):
            self._target(target.value, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._target(element, None)

    def _unknown(self, name: str) -> None:
        self._bind(name, UNKNOWN)

    def _may_bind(self, name: Optional[str]) -> None:
        if name in self.bound:
            self._unknown(name)

    def _anywhere(self, node: ast.AST) -> None:
        """Records the facts about a node at any depth."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import_anywhere(node)
        elif isinstance(node, ast.Global):
            for name in node.names:
                self._unknown(name)
        elif isinstance(node, ast.NamedExpr):
            self._may_bind(node.target.id)
        elif isinstance(node, ast.ExceptHandler) or type(node).__name__ in _PATTERNS:
            self._may_bind(getattr(node, "name", None) or getattr(node, "rest", None))
        elif isinstance(node, ast.Attribute):
            self.attributes.append(node)
            is_of_sys = isinstance(node.value, ast.Name) and node.value.id == "sys"
            self.is_dynamic |= node.attr == "__dict__" or (node.attr == "modules" and is_of_sys)
        elif isinstance(node, ast.Name):
            self.is_dynamic |= node.id in _BINDERS

    def _import_anywhere(self, node: Union[ast.Import, ast.ImportFrom]) -> None:
        for name, path in _imported(node):
            if root_of(path) is None:
                self.imported.setdefault(name, set()).add(path)
            if isinstance(node, ast.ImportFrom):
                self.imports.add(path)
        for alias in node.names if isinstance(node, ast.Import) else ():
            parts = alias.name.split(".")
            self.imports.update(".".join(parts[: end + 1]) for end in range(len(parts)))

    def _meanings(self, name: str, depth: int) -> frozenset[str]:
        if name in self.known:
            return self.known[name]
        if depth == 0:
            return frozenset([UNKNOWN])
        self.known[name] = frozenset([UNKNOWN])  # until the end, in case the name depends on itself
        found: set[str] = set()
        for one in self.bound[name]:
            if one.path:
                found.add(one.path)
            elif one.value is None:
                found.add(LOCAL)
            else:
                found |= self._of(one.value, depth - 1)
        self.known[name] = frozenset(found)
        return self.known[name]

    def _of(self, node: ast.expr, depth: int) -> frozenset[str]:
        """The possible meanings of an expression; empty for None."""
        if depth <= 0:
            return frozenset([UNKNOWN])
        if isinstance(node, ast.Constant) and node.value is None:
            return frozenset()
        if isinstance(node, ast.Name):
            if node.id in self.bound:
                return self._meanings(node.id, depth)
            return frozenset([UNKNOWN if self.stars else LOCAL])
        if isinstance(node, ast.Attribute):
            below = self._of(node.value, depth - 1)
            return frozenset(one if one.startswith("<") else f"{one}.{node.attr}" for one in below)
        if isinstance(node, ast.IfExp):
            return self._of(node.body, depth - 1) | self._of(node.orelse, depth - 1)
        if isinstance(node, (ast.Call, ast.Subscript, ast.Await, ast.BoolOp)):
            return frozenset([UNKNOWN])
        return frozenset([LOCAL])

    def _exported(self) -> Optional[frozenset[str]]:
        bound = self.bound.get("__all__", [])
        value = bound[0].value if len(bound) == 1 else None
        if isinstance(value, (ast.List, ast.Tuple)):
            names = [one.value for one in value.elts if isinstance(one, ast.Constant)]
            if len(names) == len(value.elts):
                return frozenset(name for name in names if isinstance(name, str))
        if bound:
            self.is_dynamic = True
        return None

    def _reads(self) -> Iterator[str]:
        """The paths of chains such as `amp.wrap`, wherever `amp` is imported in the file."""
        for node in self.attributes:
            names: list[str] = []
            below: ast.expr = node
            while isinstance(below, ast.Attribute) and len(names) < _CHAIN:
                names.append(below.attr)
                below = below.value
            if names and isinstance(below, ast.Name):
                for path in self.imported.get(below.id, ()):
                    yield ".".join([path, *reversed(names)])

    def _stores(self) -> Iterator[str]:
        """The paths of attributes that are assigned: `amp.wrap = other`."""
        for node in self.attributes:
            if not isinstance(node.ctx, ast.Load):
                for path in self._of(node, _DEPTH):
                    if not path.startswith("<"):
                        yield path


def _own_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of the module's scope, also those in branches, loops and handlers."""
    stack: list[ast.AST] = list(reversed(tree.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, (ast.stmt, ast.ExceptHandler)) or type(node).__name__ == "match_case":
            stack.extend(
                below
                for below in reversed(list(ast.iter_child_nodes(node)))
                if not isinstance(below, ast.expr)
            )


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The name that each alias binds, and its path; `*` for a star import."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                yield "*", module
            else:
                joint = "" if module.endswith(".") else "."
                yield alias.asname or alias.name, f"{module}{joint}{alias.name}"
