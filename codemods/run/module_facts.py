"""Extracts the facts about the top-level names of one file, with Python's own parser.

That parser takes a twentieth of the time of LibCST, and the facts need no formatting. A file that
it cannot parse has no facts: every name that is imported from it is unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Callable, NamedTuple, Optional, Union

from ..resolve.legacy_symbols import legacy_of, root_of
from .class_reads import NODES, class_reads

__all__ = ["CLASSES", "LOCAL", "TESTS", "UNKNOWN", "ModuleFacts", "facts_of", "joined", "words_of"]

LOCAL = "<local>"
"""A value that the module defines or computes itself, such as a class or a function."""
UNKNOWN = "<unknown>"
"""A value that cannot be determined."""

_DEPTH = 20
_BINDERS = frozenset(["exec", "globals", "setattr", "vars", "__import__"])
"""Functions with which a module can bind names of its own at run time."""
_IMPORTERS = re.compile(r"import|patch|lazy|load|locate|resolve|find_spec", re.IGNORECASE)
"""Functions that may import the module that a string names."""
_PATH = re.compile(r"\.*[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")
_NOT_SYNTAX = frozenset(
    {"arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level"}
    | {"module", "name", "names", "op", "ops", "rest", "simple", "type_comment", "type_ignores"}
)
"""The fields of syntax trees that hold no expression and no statement."""
_WORDS = re.compile(
    rb"LossScaleOptimizer|get_scaled_loss|get_unscaled_gradients|tf_lossscale|tensorflow|tf_keras"
    rb"|enable_mixed_precision_graph_rewrite|from_loss_scale"
    rb"|CrossShardOptimizer|LossScaleManager|LossScale\b|\bPolicy\b|global_policy|layer_policy"
    rb"|isinstance|issubclass|IsInstance|__class__|\btype\(|\bcase\b|\.loss_scale\("
)
"""Without these words, a file has no class test, no training loop and no call of a loss scale."""

CLASSES = (
    "LossScaleOptimizer",
    "CrossShardOptimizer",
    "LossScaleManager",
    "LossScale",
    "Policy",
)
"""How the names of the classes end that are migrated."""
TESTS = frozenset(["isinstance", "issubclass", "IsInstance", "__class__", "type(", "case"])
"""Words without one of which a file has no class test."""


class ModuleFacts(NamedTuple):
    """The facts about one module, in a form that is cheap to send between processes.

    Attributes:
      imports: every path that the file imports, as it is written (`.amp.wrap`, `pkg.amp`).
      names: the possible meanings of each top-level name that comes from an import.
      defined: the other top-level names.
      stars: the modules of top-level star imports.
      exported: `__all__`, if it is a plain list.
      is_dynamic: whether the module may bind names at run time that its source does not show.
      reads: what the file reads of imported modules, such as `.amp.wrap`, or `.amp` if it uses the
        module as a value; TensorFlow and Keras are left out.
      stores: the paths of attributes of imported modules to which the file assigns.
      words: see `words_of`.
      class_reads: see `class_reads`.
      movable: the names from TensorFlow that this file reads for legacy symbols only, so that its
        rewrite may remove their imports or give them other modules.
      free: the names that only a star import can bind, if there is one.
      strings: the paths of modules that the file may import by their text.
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
    class_reads: frozenset[str] = frozenset()
    movable: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    strings: frozenset[str] = frozenset()


class _Bound(NamedTuple):
    """What one statement binds a name to: an imported path, or an expression."""

    path: str = ""
    value: Optional[ast.expr] = None


def facts_of(source: bytes, from_shim: bool = False) -> Optional[ModuleFacts]:
    """The facts about a module; None if it cannot be parsed.

    With `from_shim`, names of the shim are migrated, too.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    words = words_of(source)
    reader = _Reader(tree, from_shim)
    reads: frozenset[str] = frozenset()
    if not words.isdisjoint(TESTS.union(CLASSES)):
        reads = class_reads([*reader.reading, *reader.stored])
    return reader.facts()._replace(words=words, class_reads=reads)


def words_of(source: bytes) -> frozenset[str]:
    """The words in a source that show whether it may test classes or train with an optimizer."""
    return frozenset(word.decode() for word in set(_WORDS.findall(source)))


class _Reader:
    def __init__(self, tree: ast.Module, from_shim: bool) -> None:
        self.from_shim = from_shim
        self.bound: dict[str, list[_Bound]] = {}
        self.stars: list[str] = []
        self.imports: set[str] = set()
        self.is_dynamic = False
        self.known: dict[str, frozenset[str]] = {}
        self.imported: dict[str, set[str]] = {}
        self.chains: dict[str, set[str]] = {}
        self.stored: list[ast.Attribute] = []
        self.reading: list[ast.AST] = []
        self.strings: set[str] = set()
        for statement in _own_statements(tree):
            self._statement(statement)
        _walk(tree, self)

    def facts(self) -> ModuleFacts:
        names, defined = {}, set()
        for name in self.bound:
            meanings = self._meanings(name, _DEPTH)
            if meanings <= {LOCAL}:
                defined.add(name)
            else:
                names[name] = meanings
        known = self.bound.keys() | self.imported.keys()
        free = self.chains.keys() - known if self.stars else ()
        return ModuleFacts(
            imports=frozenset(self.imports),
            names=names,
            defined=frozenset(defined),
            stars=tuple(self.stars),
            exported=self._exported(),
            is_dynamic=self.is_dynamic or "__getattr__" in self.bound,
            reads=frozenset(self._reads(free)),
            stores=frozenset(self._stores()),
            movable=frozenset(name for name in names if self._is_movable(name)),
            free=frozenset(free),
            strings=frozenset(self.strings),
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

    def import_anywhere(self, node: Union[ast.Import, ast.ImportFrom]) -> None:
        for name, path in _imported(node):
            if root_of(path) is None:
                self.imported.setdefault(name, set()).add(path)
            if isinstance(node, ast.ImportFrom):
                self.imports.add(path)
        for alias in node.names if isinstance(node, ast.Import) else ():
            parts = alias.name.split(".")
            self.imports.update(".".join(parts[: end + 1]) for end in range(len(parts)))

    def global_names(self, node: ast.Global) -> None:
        for name in node.names:
            self._unknown(name)

    def walrus(self, node: ast.NamedExpr) -> None:
        self._may_bind(node.target.id)

    def capture(self, node: ast.AST) -> None:
        self._may_bind(getattr(node, "name", None) or getattr(node, "rest", None))

    def name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.chains.setdefault(node.id, set()).add("")
        if node.id in _BINDERS:
            self.is_dynamic = True

    def attribute(self, node: ast.Attribute) -> Optional[ast.expr]:
        """Records a chain such as `amp.mp.Policy`; returns the expression that it begins with."""
        if not isinstance(node.ctx, ast.Load):
            self.stored.append(node)
        names: list[str] = []
        below: ast.expr = node
        while isinstance(below, ast.Attribute):
            names.append(below.attr)
            below = below.value
        if "__dict__" in names:
            self.is_dynamic = True
        if not isinstance(below, ast.Name):
            return below
        if below.id in _BINDERS or (below.id == "sys" and names[-1] == "modules"):
            self.is_dynamic = True
        names.reverse()
        read = names if isinstance(node.ctx, ast.Load) else names[:-1]
        if read:
            self.chains.setdefault(below.id, set()).add(".".join(read))
        return None

    def call(self, node: ast.Call) -> None:
        """Records the strings that a call such as `import_module("amp")` is given."""
        function = node.func
        if isinstance(function, ast.Attribute):
            name = ast.unparse(function) if function.attr in ("object", "dict") else function.attr
        else:
            name = function.id if isinstance(function, ast.Name) else ""
        if not _IMPORTERS.search(name):
            return
        for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
            text = value.value if isinstance(value, ast.Constant) else None
            if isinstance(text, str) and _PATH.match(text):
                self.strings.add(text)

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

    def _reads(self, free: Collection[str]) -> Iterator[str]:
        """The paths of chains such as `amp.wrap`, wherever `amp` is imported in the file."""
        for name, chains in self.chains.items():
            paths: Iterable[str] = self.imported.get(name, ())
            if not paths and name in self.bound:
                paths = [path for path in self._meanings(name, _DEPTH) if _is_of_project(path)]
            if name in free and len(self.stars) == 1:
                paths = [joined(self.stars[0], name)]
            for path in paths:
                for chain in chains:
                    yield f"{path}.{chain}" if chain else path

    def _stores(self) -> Iterator[str]:
        """The paths of attributes that are assigned: `amp.wrap = other`."""
        for node in self.stored:
            for path in self._of(node, _DEPTH):
                if not path.startswith("<"):
                    yield path

    def _is_movable(self, name: str) -> bool:
        chains = self.chains.get(name, ())
        return bool(chains) and all(
            (root_of(path) is not None or self.from_shim)
            and all(_is_legacy(path, chain, self.from_shim) for chain in chains)
            for path in self.known[name]
        )


def _walk(tree: ast.AST, reader: _Reader) -> None:
    """Visits each node once; this takes as long as the parser, so it avoids calls where it can.

    It compares classes for the same reason, which tells a type checker nothing about the node.
    """
    fields, reading = _fields, reader.reading
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is ast.Name:
            reader.name(node)  # type: ignore[arg-type]
            continue
        if kind is ast.Constant:
            continue
        if kind is ast.Attribute:
            root = reader.attribute(node)  # type: ignore[arg-type]
            if root is not None:
                stack.append(root)
            continue
        if kind in _READING:
            reading.append(node)
        visit = _VISITORS.get(kind)
        if visit is not None:
            visit(reader, node)
        for field in fields[kind]:
            value = getattr(node, field, None)
            if value.__class__ is list:
                stack.extend(value)
            elif isinstance(value, ast.AST):
                stack.append(value)


class _Fields(dict[type, tuple[str, ...]]):
    """The fields of each class of nodes that can hold other nodes."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        names: tuple[str, ...] = getattr(kind, "_fields", ())
        self[kind] = tuple(name for name in names if name not in _NOT_SYNTAX)
        return self[kind]


_READING = frozenset(NODES)
_fields = _Fields()
_VISITORS: dict[type, Callable[[_Reader, Any], None]] = {
    ast.Import: _Reader.import_anywhere,
    ast.ImportFrom: _Reader.import_anywhere,
    ast.Global: _Reader.global_names,
    ast.NamedExpr: _Reader.walrus,
    ast.ExceptHandler: _Reader.capture,
    ast.Call: _Reader.call,
}
for _name in ("MatchAs", "MatchStar", "MatchMapping"):
    if hasattr(ast, _name):
        _VISITORS[getattr(ast, _name)] = _Reader.capture


def _is_of_project(path: str) -> bool:
    return not path.startswith("<") and root_of(path) is None


def _is_legacy(path: str, chain: str, from_shim: bool) -> bool:
    """Whether a rule migrates the attribute `chain` of `path`, or what it leads through."""
    names = chain.split(".") if chain else []
    for end in range(len(names) + 1):
        found = legacy_of(".".join([path, *names[:end]]), from_shim)
        if found is not None and found.rule:
            return True
    return False


def joined(module: str, name: str) -> str:
    """The path of a name that is imported from `module`, as it is written."""
    return f"{module}{'' if module.endswith('.') else '.'}{name}"


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
                yield alias.asname or alias.name, joined(module, alias.name)
