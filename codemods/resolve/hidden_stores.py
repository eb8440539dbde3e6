"""Decides whether an attribute can get a value that no assignment to it shows.

Examples are `setattr(self, name, value)`, `self.__dict__.update(...)`, `object.__setattr__`, a
decorator that replaces the class, and a base class of another library. Knowing the assignments
`self.name = ...` is evidence only where there is nothing of this kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .legacy_symbols import root_of
from .program import Program
from .tree import string_of

__all__ = ["classes_related_to", "decorators_are_known", "may_be_stored_unseen", "values_in_body"]

_SETTERS = frozenset(["setattr", "__setattr__"])
_DICTS = frozenset(["__dict__", "vars"])
_HARMLESS_METHODS = frozenset(["copy", "get", "items", "keys", "values"])
_HARMLESS_CALLS = frozenset(
    [
        "dict",
        "dumps",
        "format",
        "len",
        "list",
        "pformat",
        "pprint",
        "print",
        "repr",
        "sorted",
        "str",
    ]
)
_INTERCEPTING = frozenset(["__getattr__", "__getattribute__", "__setattr__", "__setstate__"])
"""Methods of a class that decide themselves what reading or storing an attribute does."""
_HARMLESS_DECORATORS = frozenset(
    [
        "abc.abstractmethod",
        "classmethod",
        "functools.cache",
        "functools.lru_cache",
        "functools.total_ordering",
        "staticmethod",
        "typing.final",
        "typing.no_type_check",
        "typing.overload",
        "typing.runtime_checkable",
        "typing_extensions.final",
        "typing_extensions.override",
    ]
)
_HARMLESS_OF_TENSORFLOW = frozenset(
    ["do_not_convert", "function", "register_keras_serializable", "with_name_scope"]
)
"""Decorators that call what they decorate with the same arguments and return its result."""
_HARMLESS_BASES = frozenset(["ABC", "Generic", "NamedTuple", "Protocol", "TestCase", "Thread"])


def may_be_stored_unseen(program: Program, name: str, owner: Optional[cst.ClassDef]) -> bool:
    """Whether something else than an assignment can set the attribute `name`.

    Args:
      program: the program.
      name: the name of the attribute.
      owner: the class whose instances have the attribute; None if it is not known.
    """
    names = program.cached(_names_set_by_calls)
    if names is None or name in names:
        return True
    classes = classes_related_to(program, owner) if owner is not None else _classes(program)
    if any(_intercepts(program, one, name) for one in classes):
        return True
    return owner is not None and any(_has_unknown_parts(program, one) for one in classes)


def values_in_body(
    program: Program, name: str, owner: Optional[cst.ClassDef]
) -> list[cst.BaseExpression]:
    """The values that the bodies of the same classes give the attribute, as its default."""
    classes = classes_related_to(program, owner) if owner is not None else _classes(program)
    return [
        binding.value
        for scope in program.all_scopes()
        if scope.node in classes
        for binding in scope.bindings.get(name, ())
        if binding.value is not None
    ]


def decorators_are_known(program: Program, definition: cst.CSTNode) -> bool:
    """Whether what a `def` or `class` statement defines is called and returned as it stands.

    A decorator of another library can pass other arguments, or return something else.
    """
    if not isinstance(definition, (cst.FunctionDef, cst.ClassDef)):
        return False
    return all(_is_harmless(program, one.decorator) for one in definition.decorators)


def _is_harmless(program: Program, decorator: cst.BaseExpression) -> bool:
    function = decorator.func if isinstance(decorator, cst.Call) else decorator
    if _text(function) == "property" or _text(function).endswith(".setter"):
        return True
    return all(
        path in _HARMLESS_DECORATORS
        or (root_of(path) is not None and path.rpartition(".")[2] in _HARMLESS_OF_TENSORFLOW)
        for path in _paths(program, function)
    )


def _names_set_by_calls(program: Program) -> Optional[frozenset[str]]:
    """The attributes that calls set by name; None if a name is computed."""
    found: set[str] = set()
    loads: list[tuple[str, cst.CSTNode]] = [
        (name.value, name)
        for name in program.scopes.loads
        if name.value in _SETTERS or name.value in _DICTS
    ]
    stored = [*_SETTERS, "__dict__", "__setitem__", "vars"]
    loads += [(name, each) for name in stored for each in program.attributes(name)]
    for name, node in loads:
        call = program.call_of(node)
        if name in _SETTERS:
            text = _stored_name(call) if call is not None else None
            if text is None:
                return None
            found.add(text)
        elif name == "__setitem__":
            continue  # of a dict of attributes: `vars(self).__setitem__`, found below
        else:
            mapping = node if name == "__dict__" else call
            text = "" if mapping is None else _stored_in(program, mapping)
            if text is None:
                continue
            if not text:
                return None
            found.add(text)
    return frozenset(found)


def _stored_name(call: cst.Call) -> Optional[str]:
    """The `"name"` of `setattr(self, "name", value)` and of `self.__setattr__("name", value)`."""
    for argument in call.args[:2]:
        if argument.star or argument.keyword is not None:
            return None
        text = string_of(argument.value)
        if text is not None:
            return text
    return None


def _stored_in(program: Program, mapping: cst.CSTNode) -> Optional[str]:
    """The attribute that is stored through a dict of attributes; "" if any, None if none."""
    parent = program.parents.get(mapping)
    if isinstance(parent, cst.Attribute):
        return None if parent.attr.value in _HARMLESS_METHODS else ""
    if isinstance(parent, cst.Subscript) and parent.value is mapping:
        above = program.parents.get(parent)
        if not isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del)):
            return None
        index = parent.slice[0].slice
        text = string_of(index.value) if isinstance(index, cst.Index) else None
        return text or ""
    if isinstance(
        parent, (cst.ComparisonTarget, cst.For, cst.CompFor, cst.FormattedStringExpression)
    ):
        return None
    if isinstance(parent, cst.StarredDictElement):
        return None
    if isinstance(parent, cst.Arg):
        call = program.parents.get(parent)
        function = _text(call.func).rpartition(".")[2] if isinstance(call, cst.Call) else ""
        return None if parent.star == "**" or function in _HARMLESS_CALLS else ""
    return ""


def _intercepts(program: Program, owner: cst.ClassDef, name: str) -> bool:
    """Whether a class has a method for access to attributes, or a descriptor of the name."""
    for scope in program.all_scopes():
        if scope.node is owner:
            if not _INTERCEPTING.isdisjoint(scope.bindings):
                return True
            return any(one.value is None for one in scope.bindings.get(name, ()))
    return False


def _has_unknown_parts(program: Program, owner: cst.ClassDef) -> bool:
    """Whether a decorator, a metaclass, or a base class from elsewhere can change the class."""
    if not decorators_are_known(program, owner):
        return True
    for keyword in owner.keywords:
        is_metaclass = keyword.keyword is None or keyword.keyword.value == "metaclass"
        if is_metaclass and _text(keyword.value).rpartition(".")[2] != "ABCMeta":
            return True
    return not all(_is_known_base(program, base.value) for base in owner.bases)


def _is_known_base(program: Program, base: cst.BaseExpression) -> bool:
    if isinstance(base, cst.Subscript):  # `Generic[T]`
        base = base.value
    if _text(base) == "object" or _text(base).rpartition(".")[2] in _HARMLESS_BASES:
        return True
    if isinstance(base, cst.Name) and base in program.scopes.loads:
        bindings = program.scopes.loads[base].bindings_of(base.value)
        if bindings and all(isinstance(one.node, cst.ClassDef) for one in bindings):
            return True
    paths = _paths(program, base)
    return bool(paths) and all(
        root_of(path) is not None or path.startswith("tf_lossscale.") for path in paths
    )


def classes_related_to(program: Program, owner: cst.ClassDef) -> set[cst.ClassDef]:
    """The class, its bases in the program, and all classes that inherit from one of those."""
    bases = program.cached(_bases)
    related = {owner}
    grown = True
    while grown:
        before = len(related)
        for one, above in bases.items():
            if one in related:
                related.update(above)
            elif not related.isdisjoint(above):
                related.add(one)
        grown = len(related) > before
    return related


def _classes(program: Program) -> list[cst.ClassDef]:
    return list(program.cached(_bases))


def _bases(program: Program) -> dict[cst.ClassDef, list[cst.ClassDef]]:
    """Each class of the program, with those of its bases that the program defines."""
    return {one: list(_bases_of(program, one)) for one in _definitions(program)}


def _definitions(program: Program) -> Iterator[cst.ClassDef]:
    for scope in program.all_scopes():
        if isinstance(scope.node, cst.ClassDef):
            yield scope.node


def _bases_of(program: Program, owner: cst.ClassDef) -> Iterator[cst.ClassDef]:
    for base in owner.bases:
        if isinstance(base.value, cst.Name) and base.value in program.scopes.loads:
            for each in program.scopes.loads[base.value].bindings_of(base.value.value):
                if isinstance(each.node, cst.ClassDef):
                    yield each.node


def _paths(program: Program, node: cst.CSTNode) -> frozenset[str]:
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    if scope is None:
        return frozenset([_text(node)])
    if isinstance(node, cst.Name) and not scope.bindings_of(node.value):
        return frozenset([node.value])  # a builtin
    meanings = program.origins.of_expression(node, scope)
    return meanings


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
