"""Rules files out by Python's own parser: those in which nothing can refer to a legacy symbol.

LibCST takes longer to import than a thousand files take to search. In nearly all repositories, the
few files with a legacy word define a function of that name, or import from a module that is called
like one, or have the word as a key. What is not certain here is resolved with LibCST.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Optional

from ..facts import FileFacts, Links
from ..files.excludes import NOTEBOOK
from ..model import Options
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.python_nodes import PythonNodes
from ..resolve.vocabulary import (
    HYPERPARAMETERS,
    LOOK_ALIKES,
    LOSS_SCALE,
    MODULE,
    NAMES,
    PRIVATE,
    SCALING,
    TPU,
)
from .notes import NO_NAME, NOTHING
from .prefilter import is_in_code, may_concern
from .python_tree import PythonSource
from .tree_size import PYTHON, check_sizes

__all__ = [
    "facts_without_place",
    "is_without_place",
    "may_have_place",
    "names_made",
    "note_without_place",
]

_SHIM = b"tf_lossscale"
_SUPPRESSION = b"lossscale:"
_STAR = re.compile(rb"import[\s\\]*\*")
_SCALE = "loss_scale"
_WITH_KEY = ("get", "pop", "setdefault")
"""Methods of dictionaries of which the first argument is a key."""
_EXPERIMENTAL = "experimental"
_NAMED = frozenset([*NAMES, *SCALING, MODULE, _SCALE])
"""The attributes that can be legacy ones."""
_MODULES = (MODULE, TPU)
_MIXED = b"mixed_float16"
_SETTING = "set_dtype_policy"
_FINAL = "keras.mixed_precision"
_POLICY_NAMES = re.compile("mixed_b?float16")
_PATH = re.compile(
    rf"(?<![\w./])(?:tensorflow|tensorflow_core|tf|keras|tf_keras|contrib|{MODULE})\.\w"
)


def note_without_place(source: bytes, path: str, options: Options) -> Optional[str]:
    """Why a file with a legacy word is left unchanged; None if it can have a place to migrate.

    Raises:
      SourceError: if it is too large to be parsed.
    """
    if path.endswith(NOTEBOOK) or _is_special(source):
        return None
    check_sizes([source], PYTHON)
    python_source = PythonSource(source)
    nodes = python_source.nodes
    if nodes is None:
        return None
    if not is_in_code(python_source):
        return NO_NAME
    return None if may_have_place(nodes, options) else NOTHING


def is_without_place(source: PythonSource, options: Options) -> bool:
    """Whether a source has no place, and but for its links nothing that decides about its program.

    In a program in which another file has a place, an import of a module of the final API counts,
    too: another file may read what only that imports.
    """
    nodes = source.nodes
    if nodes is None or _is_special(source.data) or _MIXED in source.data:
        return False
    return not (may_have_need(nodes) or may_have_place(nodes, options, in_program=True))


def facts_without_place(links: Links) -> FileFacts:
    """What other files must know about a source without a place, which has these links."""
    return FileFacts(traits=links.traits, exports=None, links=links)


def _is_special(source: bytes) -> bool:
    """Whether a source uses the shim, or has a comment that silences a rule."""
    return _SHIM in source or _SUPPRESSION in source.lower()


def names_made(source: bytes, names: Iterable[str]) -> frozenset[str]:
    """Those of some names that a source may give a value.

    The name of an attribute begins with a dot; of `module.name`, only the first part counts.
    Python's parser spells some names in another way than the source, but none in ASCII.

    Raises:
      SourceError: if it is too large to be parsed.
    """
    has_star = bool(_STAR.search(source))
    uncertain = frozenset(
        name for name in names if not name.isascii() or (has_star and not name.startswith("."))
    )
    possible = frozenset(name for name in names if _word(name).encode() in source) - uncertain
    if not possible:
        return uncertain
    check_sizes([source], PYTHON)
    nodes = PythonSource(source).nodes
    if nodes is None:
        return uncertain | possible
    made = {name for node in nodes.all() if not _is_read(node) for name in _names_bound(node)}
    made |= {alias.asname or alias.name.partition(".")[0] for alias in nodes.of(ast.alias)}
    made |= set(_attributes_made(nodes))
    return uncertain | {name for name in possible if _word(name) in made}


def _word(name: str) -> str:
    """The name without the dot of an attribute, or without what is below a module."""
    return name.lstrip(".").partition(".")[0]


def _is_read(node: ast.AST) -> bool:
    """Whether a node is a name that is read, or a parameter, which is no name of a module."""
    return isinstance(getattr(node, "ctx", None), ast.Load) or isinstance(node, ast.arg)


def _attributes_made(nodes: PythonNodes) -> Iterator[str]:
    """The attributes that are assigned, or of which an item is."""
    for attribute in nodes.of(ast.Attribute):
        if not _is_read(attribute):
            yield attribute.attr
    for item in nodes.of(ast.Subscript):
        if isinstance(item.value, ast.Attribute) and not _is_read(item):
            yield item.value.attr


def may_have_place(nodes: PythonNodes, options: Options, in_program: bool = False) -> bool:
    """Whether a source with these nodes can have a place that a rule migrates or reports.

    Args:
      nodes: the nodes.
      options: how the source is rewritten.
      in_program: whether other files of its program may have places.
    """
    imports = _Imports(nodes.all())
    return (
        imports.may_be_legacy(options, in_program)
        or any(function.name in SCALING for function in nodes.of(ast.FunctionDef))
        or any(_may_be_legacy(attribute, imports) for attribute in nodes.of(ast.Attribute))
        or any(map(_may_name, _strings(nodes)))
    )


def may_have_need(nodes: PythonNodes) -> bool:
    """Whether a source without a place may do with an optimizer what not every class has.

    If another file of its program makes the optimizer, that can decide which class it makes.
    """
    attributes = nodes.attributes
    hyperparameters = (node for name in HYPERPARAMETERS for node in attributes.get(name, ()))
    bound = {name for node in nodes.all() for name in _names_bound(node)}
    bound.update(alias.asname or alias.name for alias in nodes.of(ast.alias))
    texts = {node.value for node in nodes.of(ast.Constant) if isinstance(node.value, str)}
    sets_by_name = any(name.id == "setattr" for name in nodes.of(ast.Name))
    return (
        any(name in attributes for name in (*PRIVATE, _SETTING))
        or not all(map(_is_read, hyperparameters))
        or not bound.isdisjoint(SCALING)
        or not texts.isdisjoint(PRIVATE)
        or (sets_by_name and not texts.isdisjoint(HYPERPARAMETERS))
    )


class _Imports:
    """What the imports of a source bind.

    Args:
      nodes: its nodes.
    """

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self._bound: dict[str, set[str]] = {}
        self._paths: set[str] = set()
        self._stars: set[str] = set()
        self._read: set[str] = set()
        self._others: set[str] = set()
        """The names that something else than an import binds, in any scope."""
        for node in nodes:
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._read.add(node.id)
            else:
                self._others.update(_names_bound(node))

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self._add(alias.asname or first, alias.name if alias.asname else first)
            self._paths.add(alias.name)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        joint = "" if module.endswith(".") else "."
        for alias in node.names:
            if alias.name == "*":
                self._stars.add(module)
                continue
            path = f"{module}{joint}{alias.name}"
            self._add(alias.asname or alias.name, path)
            self._paths.add(path)

    def _add(self, name: str, path: str) -> None:
        self._bound.setdefault(name, set()).add(path)

    def may_be_legacy(self, options: Options, in_program: bool) -> bool:
        """Whether an import can be one of a legacy symbol; a star import, of any that is read."""
        if self._stars and not self._read.isdisjoint(NAMES):
            return True
        if any(namespace_of(module) is not None for module in self._stars):
            return True
        unread = set() if options.to_shim or in_program else self._unread_finals()
        return any(map(_may_be_imported, self._paths - unread))

    def _unread_finals(self) -> set[str]:
        """The modules of the final API that are imported for others, as packages do."""
        paths = {
            path for name, bound in self._bound.items() if name not in self._read for path in bound
        }
        spaces = {path: namespace_of(path) for path in paths}
        return {path for path, space in spaces.items() if space is not None and space.is_final}

    def paths_of(self, name: str) -> frozenset[str]:
        """What a name can mean; nothing if it can be something else than an import."""
        return frozenset() if name in self._others else frozenset(self._bound.get(name, ()))


def _names_bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds, other than by an import."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif not isinstance(
        node, ast.alias
    ):  # of an `except`, or of a pattern, of which the classes are not in each Python
        for field in ("name", "rest"):
            name = getattr(node, field, None)
            yield from (name,) if isinstance(name, str) else ()


def _may_be_imported(path: str) -> bool:
    """Whether an import can be one of a symbol, or of a name of a module that is gone."""
    module = namespace_of(path.rpartition(".")[0])
    is_gone = module is not None and not (
        module.is_current or module.has_others or module.name == _FINAL
    )
    return is_gone or _may_lead_to_symbol(path)


def _may_lead_to_symbol(path: str) -> bool:
    """Whether a path can be one of a symbol or of a module of symbols.

    What is read through another file of the project can be.
    """
    if root_of(path) is not None or is_of_shim(path):
        return legacy_of(path) is not None or namespace_of(path) is not None
    first, last = path.partition(".")[0], path.rpartition(".")[2]
    return first not in LOOK_ALIKES and last in NAMES


def _may_be_legacy(node: ast.Attribute, imports: _Imports) -> bool:
    """Whether an attribute can be a legacy symbol, a module of them, or a method that is gone."""
    if node.attr == _EXPERIMENTAL:
        return _last_name(node.value) in _MODULES
    if node.attr not in _NAMED:
        return False
    names: list[str] = []
    owner: ast.expr = node
    while isinstance(owner, ast.Attribute):
        names.append(owner.attr)
        owner = owner.value
    paths = imports.paths_of(owner.id) if isinstance(owner, ast.Name) else frozenset()
    if not paths or node.attr in (*SCALING, _SCALE):
        return True
    return any(_may_lead_to_symbol(".".join([path, *reversed(names)])) for path in paths)


def _last_name(node: ast.expr) -> str:
    """The last name of what an attribute is read from."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _strings(nodes: PythonNodes) -> Iterator[str]:
    """The strings of a source that are not statements of their own, such as docstrings.

    Neither are those of `params["mixed_precision"]` and `params.get("mixed_precision")`, which many
    configurations have: no object of TensorFlow is read so.
    """
    others = {id(node.value) for node in nodes.of(ast.Expr)}
    others.update(id(node) for node in _keys(nodes) if _is_module(node))
    for node in nodes.of(ast.Constant):
        if id(node) not in others:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("latin-1")


def _keys(nodes: PythonNodes) -> Iterator[Optional[ast.expr]]:
    """The expressions that stand for keys of dictionaries."""
    for item in nodes.of(ast.Subscript):
        yield item.slice
    for display in nodes.of(ast.Dict):
        yield from display.keys
    for call in nodes.calls_of(_WITH_KEY):
        if isinstance(call.func, ast.Attribute):
            yield from call.args[:1]


def _is_module(node: Optional[ast.expr]) -> bool:
    """Whether an expression is the name of the module of the legacy symbols, as a string."""
    return isinstance(node, ast.Constant) and node.value == MODULE


def _may_name(text: str) -> bool:
    """Whether a string can name a symbol, a method, or a tensor."""
    text = _POLICY_NAMES.sub("", text).lstrip(".")  # of a relative name
    if not may_concern(text.encode("utf-8", "surrogatepass")) and _SCALE not in text:
        return False
    is_sentence = " " in text.strip()
    is_name = LOSS_SCALE in text or text.strip() in _NAMED
    return bool(_PATH.search(text)) or (is_name and not is_sentence)
