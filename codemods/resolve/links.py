"""Reads what connects a file with others: its imports, and what it reads from what it imports.

This is the only reader of imports between files. It needs Python's own parser, which takes a fifth
of the time of LibCST's, and it is used for every file that can matter, with a legacy name or not.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Optional

from ..facts import Links, Trait
from ..project.entry_points import objects_named
from .given_names import names_given
from .legacy_symbols import is_of_tensorflow
from .module_paths import below
from .python_nodes import PythonNodes, function_of
from .vocabulary import APPLYING, RESTORING, STEP_AND_STATE

__all__ = ["IMPORTING", "LOADERS", "NAMES_IN_TEXT", "UNKNOWN", "links_of", "links_of_nodes"]

UNKNOWN = Links(is_known=False)
"""The links of a file that Python cannot parse."""

_ANY = "*"
_NONE = "None"
_OTHER = "<other>"
"""Stands for what is not a chain of attributes, in the sources of a name."""
IMPORTING = ("import_module", "__import__", "import_string", "find_spec", "run_module", "locate")
"""Functions that take the path of a module."""
_PATCHING = ("patch",)
"""Functions that take the path of a name in a module."""
_PLUGINS = "pytest_plugins"
"""The variable with the modules that pytest loads."""
_LOADING = (
    "SourceFileLoader", "entry_points", "exec", "execfile", "exec_module", "iter_entry_points",
    "iter_modules", "load_module", "load_source", "run_path", "spec_from_file_location",
    "walk_packages",
)  # fmt: skip
"""Functions that run files which their arguments hardly name."""
_NAMED_OTHERWISE = frozenset((*IMPORTING, *_PATCHING, *_LOADING))
"""Functions that are not recognized under another name."""
_EXECUTING = ("exec", "execfile", "run_module", "run_path")
"""Functions that give the top-level names of a file to the caller, or to a dictionary."""
_EVALUATING = (
    "ForwardRef", "Timer", "eval", "exec", "run_cell_magic", "run_line_magic", "timeit",
)  # fmt: skip
"""Functions that evaluate texts."""
LOADERS = re.compile(rf"\b(?:{'|'.join((*IMPORTING, *_LOADING))}|sys\.modules)\b".encode())
"""One of these words is in each file that loads others by name; `execute` is none of them."""
NAMES_IN_TEXT = re.compile(rf"(?:{'|'.join((*_PATCHING, _PLUGINS, 'modules'))})\b".encode())
"""One of these words is in each file that, besides, has the whole name of a module as text.

`modules` is that of `sys`, also where it is imported by its name."""
_REGULAR_EXPRESSIONS = ("re", "regex")
_LOOKING = ("hasattr", "isinstance", "print", "type")
"""Functions that do nothing with an optimizer that they are given."""
_READING = {
    "getattr": slice(1, 2), "getattr_static": slice(1, 2), "__getattribute__": slice(-1, None),
    "attrgetter": slice(None), "methodcaller": slice(1),
}  # fmt: skip
"""Functions that read attributes, with those of their arguments that are names."""
_DICTIONARIES = ("vars", "getmembers")
"""Functions that return the attributes of an object by their names."""
_PATTERN: Any = getattr(ast, "MatchClass", None)
"""A class in a pattern, which Python 3.9 does not have."""
_LITERALS = (ast.Constant, ast.List, ast.Set, ast.Tuple)


def links_of(trees: Iterable[Optional[ast.Module]], may_give: bool = True) -> Links:
    """What a file imports, reads from there, and has itself, from its tree or those of its cells.

    What it reads from the files that it loads by computed names counts only if it loads such. If
    one tree is missing, because it cannot be parsed, nothing is known about the file.

    Args:
      trees: the trees.
      may_give: whether the file may hand on what is made of the version of TensorFlow.
    """
    known = list(trees)
    if any(tree is None for tree in known):
        return UNKNOWN
    return links_of_nodes(PythonNodes(tree for tree in known if tree is not None), may_give)


def links_of_nodes(nodes: PythonNodes, may_give: bool = True) -> Links:
    """Like `links_of`, for the nodes of all trees."""
    reader = _Reader(nodes)
    calls = nodes.calls_of((*IMPORTING, *_LOADING))
    is_not_called = _renames_loader(reader.bound) or _hands_on_loader(nodes, reader.bound)
    loads = is_not_called or any(map(_loads_files, calls))
    return Links(
        imports=frozenset(reader.imports),
        reads={module: frozenset(names) for module, names in reader.reads().items()},
        stars=frozenset(reader.stars),
        renamed=reader.renamed(),
        given=names_given(nodes, reader.bound) if may_give else frozenset(),
        loads=loads,
        reads_of_loaded=(
            reader.names_of_attributes if loads or reader.reads_any_module else frozenset()
        ),
        traits=frozenset(_traits(nodes, reader)),
    )


class _Reader:
    """Collects what the nodes of one file import and read."""

    def __init__(self, nodes: PythonNodes) -> None:
        """Reads the imports, on which it depends what the names in the rest of the file mean."""
        self.imports: set[str] = set()
        self.stars: set[str] = set()
        self._nodes = nodes
        self._reads: dict[str, set[str]] = {}
        self.bound: dict[str, set[str]] = {}
        """The paths that each imported name can mean, in any scope."""
        self.reads_any_module = False
        """Whether the file reads `sys.modules[name]`, with a name that is computed."""
        for statement in nodes.of(ast.Import):
            self._import(statement)
        for from_import in nodes.of(ast.ImportFrom):
            self._import_from(from_import)
        for call in nodes.calls_of((*IMPORTING, *_PATCHING)):
            self._import_by_name(list(_named_modules(call)))
        for read in self._reads_of_modules():
            self._read_loaded(read)
        for keyword in nodes.of(ast.keyword):
            for module, name in _entry_points(keyword):
                self._import_object(module, name)
        for assign in nodes.of(ast.Assign):
            self.imports.update(_plugins(assign.targets, assign.value))
        for annotated in nodes.of(ast.AnnAssign):
            self.imports.update(_plugins([annotated.target], annotated.value))

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imports.add(alias.name)
            first = alias.name.partition(".")[0]
            path = alias.name if alias.asname else first
            self.bound.setdefault(alias.asname or first, set()).add(path)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        self.imports.add(module)
        for alias in node.names:
            if alias.name == _ANY:
                self.stars.add(module)
                continue
            path = below(module, alias.name)
            self.imports.add(path)
            self._read(module, alias.name)
            self.bound.setdefault(alias.asname or alias.name, set()).add(path)

    def _import_by_name(self, paths: list[str]) -> None:
        """Adds what `import_module("pkg.amp")` loads, of which any attribute may be read."""
        self.imports.update(paths)
        for above, path in zip(paths, paths[1:]):
            self._read(above, path[len(above) + 1 :])
        for path in paths:
            self._reads.setdefault(path, set()).update(self.names_of_attributes)

    def _reads_of_modules(self) -> Iterator[ast.expr]:
        """Each read of `sys.modules`, as an item or by a method, but for that of the file."""
        for item in self._nodes.of(ast.Subscript):
            is_read = isinstance(item.ctx, ast.Load) and _root(item.slice) != "__name__"
            if is_read and self._is_modules(item.value):
                yield item
        for call in self._nodes.calls_of(["copy", "get", "items", "values"]):
            is_own = bool(call.args) and _root(call.args[0]) == "__name__"
            is_method = isinstance(call.func, ast.Attribute) and self._is_modules(call.func.value)
            if is_method and not is_own:
                yield call

    def _is_modules(self, node: ast.expr) -> bool:
        """Whether an expression is `sys.modules`."""
        first, others = _chain(node)
        paths = self.bound.get(first, ())
        return any(".".join([path, *others]) == "sys.modules" for path in paths)

    def _read_loaded(self, read: ast.expr) -> None:
        """Adds `sys.modules["pkg.amp"]`, of which any attribute may be read."""
        path = _key_of(read)
        if path:
            self.imports.add(path)
            self._read(path, _ANY)
        else:
            self.reads_any_module = True

    def _import_object(self, module: str, name: str) -> None:
        """Adds what loads a name of a module, such as an entry point."""
        self.imports.add(module)
        if name:
            self._read(module, name)

    @functools.cached_property
    def names_of_attributes(self) -> frozenset[str]:
        """The attributes that the file may read of a module that it loads by name.

        They are those of anything but TensorFlow and the shim, since no file of the program is one
        of these, and the paths in them change when the file is migrated. `*` stands for a name that
        is computed.
        """
        names: set[str] = set()
        for attribute in self._chains:
            root, attributes = _chain(attribute)
            if root not in self.names_of_tensorflow:
                names.update(attributes)
        for call in self._nodes.calls_of(["getattr"]):
            has_name = len(call.args) > 1
            if has_name and _root(call.args[0]) not in self.names_of_tensorflow:
                names.add(_literal(call.args[1]) or _ANY)
        if any(self._nodes.calls_of(_EXECUTING)):
            names |= self._names_of_executed()
        return frozenset(names)

    def _names_of_executed(self) -> set[str]:
        """The names that the file may read of one that it executes: variables, and keys."""
        loads = {name.id for name in self._nodes.of(ast.Name) if isinstance(name.ctx, ast.Load)}
        keys = {_key_of(item) for item in self._nodes.of(ast.Subscript)}
        keys.update(map(_first_text, self._nodes.calls_of(["get", "pop"])))
        return (loads - self.bound.keys()) | (keys - {""})

    @functools.cached_property
    def _chains(self) -> list[ast.Attribute]:
        """The ends of chains of attributes; a chain reads all that its beginnings read."""
        attributes = self._nodes.of(ast.Attribute)
        return [attribute for attribute in attributes if id(attribute) not in self._inner]

    @functools.cached_property
    def _inner(self) -> set[int]:
        """The `id`s of the expressions of which an attribute is read."""
        return {id(attribute.value) for attribute in self._nodes.of(ast.Attribute)}

    @functools.cached_property
    def names_of_tensorflow(self) -> frozenset[str]:
        """The names that the file binds to TensorFlow, the shim, or what is in these, only.

        Neither `None`, as where an import fails, nor a parameter of the same name counts.
        """
        sources = {
            name: set() if all(map(is_of_tensorflow, paths)) else {_OTHER}
            for name, paths in self.bound.items()
        }
        for name, first_names in self._first_names_assigned().items():
            known = first_names - {name, _NONE}
            sources[name] = sources.get(name, set() if known else {_OTHER}) | known
        return _settled(sources)

    def _first_names_assigned(self) -> dict[str, set[str]]:
        """The first names of the chains that each name is assigned."""
        values = {
            id(target): assign.value
            for assign in self._nodes.of(ast.Assign)
            for target in assign.targets
        }
        found: dict[str, set[str]] = {}
        for name in self._nodes.of(ast.Name):
            if isinstance(name.ctx, ast.Store):
                value = values.get(id(name))
                found.setdefault(name.id, set()).add(_first_name(value))
        return found

    def _read(self, module: str, name: str) -> None:
        self._reads.setdefault(module, set()).add(name)

    def renamed(self) -> dict[str, frozenset[str]]:
        """The paths that names of the file can mean whose last part is another name."""
        paths = {
            name: frozenset(path for path in paths if path.rpartition(".")[2] != name)
            for name, paths in self.bound.items()
            if not all(map(is_of_tensorflow, paths))
        }
        return {name: found for name, found in paths.items() if found}

    def reads(self) -> dict[str, set[str]]:
        """The names that are read from each path that may be a module."""
        for attribute in self._chains:
            paths = self.bound.get(_root(attribute))
            if paths:  # few chains
                self._read_chain(attribute, paths)
        names = (name for name in self._nodes.of(ast.Name) if id(name) not in self._inner)
        for name in [*(name.id for name in names), *self._names_in_texts()]:
            for path in self.bound.get(name, ()):
                self._read(path, _ANY)
        if self.stars:
            read = self._names_of_stars()
            for module in self.stars:
                self._reads.setdefault(module, set()).update(read)
        return self._reads

    def _read_chain(self, node: ast.Attribute, paths: Iterable[str]) -> None:
        names = _chain(node)[1]
        for path in paths:
            module = path
            for name in names:
                self._read(module, _ANY if name == "__dict__" else name)
                module = below(module, name)

    def _names_in_texts(self) -> set[str]:
        """The words in the strings of a file that evaluates texts: `eval("amp.tf.float16")`."""
        if not self._nodes.calls_of(_EVALUATING):
            return set()
        constants = (node.value for node in self._nodes.of(ast.Constant))
        texts = [value for value in constants if isinstance(value, str)]
        return set(re.findall(r"\w+", " ".join(texts)))

    def _names_of_stars(self) -> set[str]:
        """The names that the file reads, but does not bind by a statement."""
        bound = set(self.bound)
        read: set[str] = set()
        for name in self._nodes.of(ast.Name):
            (read if isinstance(name.ctx, ast.Load) else bound).add(name.id)
        bound.update(function.name for function in self._nodes.of(ast.FunctionDef))
        bound.update(defined.name for defined in self._nodes.of(ast.ClassDef))
        return read - bound


def _first_name(value: Optional[ast.expr]) -> str:
    """The first name of a chain that is assigned, or the word `None`, or else `_OTHER`."""
    if isinstance(value, ast.Constant) and value.value is None:
        return _NONE
    return (_root(value) if value is not None else "") or _OTHER


def _settled(sources: Mapping[str, Set[str]]) -> frozenset[str]:
    """The names of which all sources are among these names, beginning with those without any."""
    left = {name: len(needed) for name, needed in sources.items()}
    readers: dict[str, list[str]] = {}
    for name, needed in sources.items():
        for source in needed:
            readers.setdefault(source, []).append(name)
    found = [name for name, number in left.items() if not number]
    for name in found:
        for reader in readers.get(name, ()):
            left[reader] -= 1
            if not left[reader]:
                found.append(reader)
    return frozenset(found)


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    """The first name of a chain of attributes, and the others; empty if it has no first name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), names[::-1]


def _root(node: ast.expr) -> str:
    """The first name of a chain of attributes; empty if it has none."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _names(node: ast.expr) -> tuple[str, ...]:
    """All names of a chain of attributes; the first is empty if it begins with something else."""
    first, others = _chain(node)
    return (first, *others)


def _first_text(call: ast.Call) -> str:
    """The first argument of a call, if it is a string."""
    return _literal(call.args[0]) if call.args else ""


def _literal(value: ast.expr) -> str:
    """The text of a string literal; "" for any other expression."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return ""


def _named_modules(call: ast.Call) -> Iterator[str]:
    """The modules that a call such as `import_module("pkg.amp")` names."""
    text = _first_text(call)
    parts = text.partition(":")[0].split(".")
    if text and all(part.isidentifier() or not part for part in parts):
        # `locate("pkg.amp.Wrap")` and `patch("pkg.amp.Wrap")` import pkg.amp.
        yield from (path for path in itertools.accumulate(parts, "{}.{}".format) if path)


def _key_of(read: ast.expr) -> str:
    """The literal key of `x["key"]` or `x.get("key")`; empty for any other."""
    if isinstance(read, ast.Call):
        return _first_text(read)
    return _literal(read.slice) if isinstance(read, ast.Subscript) else ""


def _entry_points(keyword: ast.keyword) -> Iterator[tuple[str, str]]:
    """The modules, and their names, in the entry points of `setup(entry_points={...})`.

    One program loads the entry points of a group, such as the plugins of a trainer.
    """
    if keyword.arg == "entry_points":
        for text in _texts_in(keyword.value):
            for line in text.splitlines():
                yield from objects_named(line.partition("=")[2])


def _plugins(targets: Sequence[ast.expr], value: Optional[ast.expr]) -> Iterator[str]:
    """The modules that pytest loads for `pytest_plugins = ["pkg.amp"]`."""
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if _PLUGINS in names and value is not None:
        for text in _texts_in(value):
            for plugin in text.split(","):
                yield from (module for module, _ in objects_named(plugin))


def _texts_in(node: ast.expr) -> Iterator[str]:
    """The strings in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _loads_files(call: ast.Call) -> bool:
    """Whether a call loads modules or files that it does not name."""
    function = function_of(call)
    if function in IMPORTING:
        return bool(call.args) and not _first_text(call)
    return function in _LOADING and not (function == "exec" and _first_text(call))


def _renames_loader(bound: Mapping[str, Set[str]]) -> bool:
    """Whether an import such as `from importlib import import_module as load` is among these."""
    imported = ((name, {path.rpartition(".")[2] for path in bound[name]}) for name in bound)
    return any(name not in last and last & _NAMED_OTHERWISE for name, last in imported)


def _hands_on_loader(nodes: PythonNodes, bound: Collection[str]) -> bool:
    """Whether a function that loads others is a value, as in `map(import_module, names)`.

    What such a value is called with is not looked for.
    """
    values: list[ast.expr] = []
    for name in IMPORTING:
        values += nodes.attributes.get(name, ())
        if name in bound:
            values += (node for node in nodes.of(ast.Name) if node.id == name)
    called = {id(call.func) for call in nodes.of(ast.Call)} if values else set()
    return any(id(value) not in called for value in values)


def _traits(nodes: PythonNodes, reader: _Reader) -> Iterator[Trait]:
    """What a file has, as far as attributes and imports show."""
    attributes = nodes.attributes
    got = _attributes_got(nodes, reader) | _attributes_matched(nodes)
    if "load_model" in attributes or "load_model" in got or _has_name(nodes, "load_model"):
        yield Trait.LOAD
    owners = (_root(node.value) for node in attributes.get("compile", ()))
    if "compile" in got or any(owner not in _REGULAR_EXPRESSIONS for owner in owners):
        yield Trait.COMPILE
    if any(name in attributes for name in RESTORING) or _restores_checkpoint(attributes):
        yield Trait.RESTORE
    yield from _step_traits(nodes, got)
    if any(name in attributes for name in STEP_AND_STATE):
        yield Trait.STEP
    if any(map(_compares_type, nodes.of(ast.Compare))):
        yield Trait.TYPE_TEST
    if any(module.partition(".")[0] == "tf_keras" for module in reader.imports):
        yield Trait.TF_KERAS


def _has_name(nodes: PythonNodes, name: str) -> bool:
    """Whether a file has a variable of a name, or imports it."""
    has_variable = any(node.id == name for node in nodes.of(ast.Name))
    return has_variable or any(alias.name == name for alias in nodes.of(ast.alias))


def _restores_checkpoint(attributes: Mapping[str, Sequence[ast.Attribute]]) -> bool:
    """Whether a method restores a checkpoint that the file makes or has by its name."""
    owners = (_names(node.value)[-1] for node in attributes.get("restore", ()))
    return any("Checkpoint" in attributes or owner.endswith("ckpt") for owner in owners)


def _compares_type(node: ast.Compare) -> bool:
    """Whether a side of a comparison is `type(x)` or `x.__class__`."""
    return any(
        (isinstance(side, ast.Call) and function_of(side) == "type")
        or (isinstance(side, ast.Attribute) and side.attr == "__class__")
        for side in (node.left, *node.comparators)
    )


def _step_traits(nodes: PythonNodes, got: Set[str]) -> Iterator[Trait]:
    """What a file has of a training step with the optimizer that a Keras model has compiled.

    That can have any name in the step, as after `self.opt = model.optimizer`, also in another file.
    A file that scales with `scale_loss` is written for Keras 3, and has nothing of this.

    Args:
      nodes: the nodes of the file.
      got: the names of attributes that calls and patterns read.
    """
    if "scale_loss" in nodes.attributes:
        return
    applying = [node for name in APPLYING for node in nodes.attributes.get(name, ())]
    if applying or not got.isdisjoint(APPLYING):
        yield Trait.APPLIES
    of_models = _optimizers_of_models(nodes)
    if any(id(node.value) in of_models for node in applying):
        yield Trait.LOOP
    is_named = "optimizer" in got or _reads_dictionary(nodes)
    if is_named or (of_models and of_models - _looked_at(nodes)):
        yield Trait.HANDED_ON


def _looked_at(nodes: PythonNodes) -> set[int]:
    """The `id`s of expressions that are only compared or shown, or asked for an attribute."""
    looked_at = {id(node.value) for node in nodes.of(ast.Attribute)}
    for comparison in nodes.of(ast.Compare):
        looked_at.update(map(id, [comparison.left, *comparison.comparators]))
    for call in nodes.of(ast.Call):
        if _only_looks(call):
            looked_at.update(map(id, call.args))
    return looked_at


def _optimizers_of_models(nodes: PythonNodes) -> set[int]:
    """The `id` of each read of `x.optimizer`, unless its class assigns an optimizer to that.

    What is outside of classes counts as one more class, and a class in another one as its part.
    """
    optimizers = nodes.attributes.get("optimizer", [])
    found = {id(node) for node in optimizers if isinstance(node.ctx, ast.Load)}
    if len(found) == len(optimizers):
        return found  # nearly all files, without a search through their classes
    seen: set[int] = set()
    for scope in sorted(nodes.of(ast.ClassDef), key=lambda node: node.col_offset):
        if id(scope) in seen:
            continue  # a class in another one, which is further left and so came first
        inside = PythonNodes([scope])
        seen.update(map(id, inside.of(ast.ClassDef)))
        own = inside.attributes.get("optimizer", [])
        seen.update(map(id, own))
        found -= _assigned(own)
    return found - _assigned([node for node in optimizers if id(node) not in seen])


def _assigned(attributes: Collection[ast.Attribute]) -> set[int]:
    """The `id`s of the attributes that are assigned, or read by the same names."""
    assigned = {_names(node) for node in attributes if isinstance(node.ctx, ast.Store)}
    return {id(node) for node in attributes if _names(node) in assigned and _names(node)[0]}


def _only_looks(call: ast.Call) -> bool:
    """Whether a call does nothing with an optimizer that it gets.

    `getattr(model.optimizer, "lr", None)`, as in jpata/particleflow, is like an attribute.
    """
    name = _literal(call.args[1]) if function_of(call) == "getattr" and len(call.args) > 1 else ""
    return function_of(call) in _LOOKING or (bool(name) and name not in APPLYING)


def _reads_dictionary(nodes: PythonNodes) -> bool:
    """Whether the file may read `optimizer` in the dictionary of an object.

    As in `vars(x)["optimizer"]`, `{**x.__dict__}.get("optimizer")`, or with a key that is no
    literal. `vars(arguments)["rate"]` is common, and is none of these.
    """
    dictionaries = set(map(id, nodes.calls_of(_DICTIONARIES)))
    dictionaries.update(map(id, nodes.attributes.get("__dict__", ())))
    if not dictionaries:
        return False
    if any(constant.value == "optimizer" for constant in nodes.of(ast.Constant)):
        return True
    subscripts = (node for node in nodes.of(ast.Subscript) if id(node.value) in dictionaries)
    return any(not _literal(node.slice) for node in subscripts)


def _attributes_got(nodes: PythonNodes, reader: _Reader) -> set[str]:
    """The attributes that calls read by their names.

    As in `getattr(x, "name")`, `attrgetter("first.second")` and `methodcaller("name")`. The name
    may be in a variable of a loop over literals, or one that literals are assigned to. What other
    names may stand for is not asked where TensorFlow is read, as in jpata/particleflow:
    `getattr(tf.keras.losses, config["loss"])`.
    """
    named = [(call, name) for call in nodes.calls_of(_READING) for name in _names_given(call)]
    variables = {name.id for _, name in named if isinstance(name, ast.Name)}
    known = _texts_of_variables(nodes, variables) if variables else {}
    texts = []
    for call, name in named:
        found = known.get(name.id, []) if isinstance(name, ast.Name) else [_literal(name)]
        if not any(found) and _root(call.args[0]) not in reader.names_of_tensorflow:
            found = _possible_names(name)
        texts += found
    return {name for text in texts for name in text.split(".")}


def _attributes_matched(nodes: PythonNodes) -> set[str]:
    """The attributes that patterns read, as in `case Model(optimizer=value)`."""
    patterns = nodes.of(_PATTERN) if _PATTERN is not None else []
    return {name for pattern in patterns for name in pattern.kwd_attrs}


def _possible_names(name: ast.expr) -> list[str]:
    """What matters of the names that an expression may stand for, where nothing says which.

    A variable, such as a parameter, may be the optimizer of a model. A name that is put together
    may be the method that makes a step with it, too.
    """
    return ["optimizer"] if isinstance(name, ast.Name) else ["optimizer", *APPLYING]


def _names_given(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call of one of these functions that are names of attributes."""
    return call.args[_READING[function_of(call)]]


def _texts_of_variables(nodes: PythonNodes, variables: Set[str]) -> dict[str, list[str]]:
    """The strings that variables stand for, by those that are given literals and nothing else.

    A file can have several variables of one name, such as a parameter.
    """
    pairs = [(loop.target, loop.iter) for loop in nodes.of(ast.For)]
    pairs += [(loop.target, loop.iter) for loop in nodes.of(ast.comprehension)]
    pairs += [(node.targets[0], node.value) for node in nodes.of(ast.Assign)]
    literals = [(target, value) for target, value in pairs if isinstance(value, _LITERALS)]
    others = _names_bound(nodes, {id(target) for target, _ in literals})
    found: dict[str, list[str]] = {}
    for target, value in literals:
        if isinstance(target, ast.Name) and target.id in variables - others:
            found.setdefault(target.id, []).extend(_texts_in(value))
    return found


def _names_bound(nodes: PythonNodes, targets: Set[int]) -> set[str]:
    """The names that are bound otherwise than in these targets, as variables or parameters."""
    stored = (name for name in nodes.of(ast.Name) if isinstance(name.ctx, ast.Store))
    bound = {name.id for name in stored if id(name) not in targets}
    bound.update(parameter.arg for parameter in nodes.of(ast.arg))
    bound.update(alias.asname or alias.name for alias in nodes.of(ast.alias))
    return bound
