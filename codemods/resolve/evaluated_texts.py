"""Tells whether texts read the names of a file: `eval("tf." + kind)`, `timeit("x = tf.pi")`.

There are two questions. Whether a text *may* read a name decides only whether an import stays
beside what is added. So `may_read` is generous: its errors cost an import that nothing reads.
Whether a text that is evaluated *shows* a name decides whether the name may get another meaning,
such as the final class. A message that mentions the class, or `eval(flags.rate)`, does not count.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Optional, Union

import libcst as cst

from .qualified_names import Origins
from .scopes import Scope
from .syntax import Syntax
from .tree import last_name, walk

__all__ = ["EvaluatedTexts"]

_RUNNING = frozenset(["eval", "exec"])
_EVALUATING = frozenset([
    *_RUNNING, "cProfile.run", "cProfile.runctx", "profile.run", "profile.runctx", "six.exec_",
    "timeit.Timer", "timeit.repeat", "timeit.timeit", "typing.ForwardRef",
    "typing_extensions.ForwardRef",
])  # fmt: skip
"""Functions that evaluate their first argument, or also the second one, as the setup of timeit."""
_INTERPRETERS = frozenset(["code.InteractiveConsole", "code.InteractiveInterpreter"])
"""Classes whose objects evaluate texts, by methods with names such as `push`."""
_OPEN = frozenset([
    *_INTERPRETERS, "IPython.embed", "IPython.start_ipython", "breakpoint", "code.interact",
    "execfile", "pdb.set_trace", "runpy.run_module", "runpy.run_path",
])  # fmt: skip
"""Functions that evaluate the texts of a file, or what a user types."""
_BUILTINS = ("builtins.", "__builtin__.")
_MODULES = frozenset(
    path.partition(".")[0] for path in (*_EVALUATING, *_OPEN, *_BUILTINS) if "." in path
)
_NAMES = frozenset(path.partition(".")[0] for path in (*_EVALUATING, *_OPEN, *_BUILTINS))
"""The first names of these paths, as in a notebook whose imports are not seen."""

_CELL_METHODS = (
    "ev", "ex", "magic", "run_cell", "run_cell_magic", "run_code", "run_line_magic", "runctx",
)  # fmt: skip
"""Methods of IPython, and of profilers, that evaluate their arguments."""
_METHODS = (*_CELL_METHODS, "eval", "exec")
_SHELL_METHODS = ("getoutput", "query", "system")
"""Methods that put variables into a text: `system("echo $tf")`, `frame.query("x > @tf")`."""
_RUN_INSIDE = re.compile(r"(?:^|%)\s*run\s+(?:-\w+\s+)*-\w*i\b|^\s*-\w*i\s+\S+\.(?:py|ipynb)\b")
"""Matches `%run -i use.py`, also as an argument, which runs a file with the names of this one."""

_VARIABLES = ("globals", "locals", "vars")
"""Builtins that return a dictionary with the variables."""
_READING = ("__getitem__", "get", "pop")
_ACCESS = ("delattr", "getattr", "hasattr", "setattr")

_MESSAGE = re.compile(
    r"^(?:print|pprint|echo|log|debug|info|warn|warning|error|exception|critical|fatal|fail|exit)$"
    r"|(?:Error|Exception|Warning)$"
)
"""Matches functions and classes that show their arguments to somebody."""
_MESSAGE_KEYWORDS = frozenset(["description", "doc", "epilog", "help", "msg"])
_FLAG = "DEFINE_"
"""Begins functions of absl whose third argument is the help: `DEFINE_string(name, x, help)`."""

_EXPORTS = "__all__"
_IN_LIST = (cst.Element, cst.List, cst.Tuple, cst.BinaryOperation, cst.Arg)

_COMPUTED = "\0"
"""Stands in a text for each of its parts that is computed."""
_COMPUTED_ANYWHERE = re.compile(rf"(?<!\.){_COMPUTED}")
"""Matches a computed part that can begin with any name, since it is no attribute."""
_FORMATTED = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*[\d*]*(?:\.[\d*]+)?[a-zA-Z]")

_Text = Union[cst.SimpleString, cst.FormattedString]
_WHOLE = (cst.ConcatenatedString, cst.BinaryOperation, cst.IfExp)
"""Expressions whose value is, or has, the text in them."""


class EvaluatedTexts:
    """The texts of a file that are evaluated, and those that may be."""

    def __init__(self, syntax: Syntax, origins: Origins) -> None:
        self._syntax = syntax
        self._origins = origins

    def may_read(self, name: str) -> bool:
        """Whether something other than a name may read a variable, so that it must stay bound.

        That is a text that shows the name, a text that is evaluated and that the file does not
        show, or `sys.modules[__name__].tf`.
        """
        if self._evaluates_unseen_text or self._evaluates_computed_text or self._is_read_on(name):
            return True
        word = _word(name)
        if any(map(word.search, self._syntax.texts)):
            return True
        texts = [(node, text) for node, text in self._texts if name in text]
        return any(self._may_be_read(node, text, name) for node, text in texts)

    def show(self, name: str) -> bool:
        """Whether a text that is evaluated has the name of a variable.

        That is a text in a call that evaluates it, an annotation, `globals()["name"]`, or
        `__all__`, for other files; or any that is no message, if the file evaluates a text that it
        computes.
        """
        word = _word(name)
        if self._is_read_on(name) or any(map(word.search, self._syntax.texts)):
            return True
        texts = [(node, text) for node, text in self._texts if name in text]
        return any(self._is_evaluated(node, text, name) for node, text in texts)

    def _may_be_read(self, node: _Text, text: str, name: str) -> bool:
        is_word = _word(name).search(text) is not None
        if is_word and (node in self._evaluated or node in self._put_together):
            return True
        if self._is_statement(node):
            return False
        if self._is_message(node):
            return _substituted(name).search(text) is not None
        if self._has_name(node, text, name) or _substituted(name).search(text):
            return True
        return is_word and self._is_in_annotation(node)

    def _is_evaluated(self, node: _Text, text: str, name: str) -> bool:
        is_word = _word(name).search(text) is not None
        if is_word and (node in self._evaluated or self._is_in_annotation(node)):
            return True
        if text == name and (node in self._keys_of_variables or self._is_exported(node)):
            return True
        if not self._evaluates_computed_text or not self._has_name(node, text, name):
            return False
        return not (self._is_statement(node) or self._is_message(node) or self._is_key(node))

    def _has_name(self, node: _Text, text: str, name: str) -> bool:
        """Whether a text reads a name if it is evaluated: `tf`, `tf.float16`, `f(tf[0])`, `tf.`."""
        if text == name or _read(name).search(text):
            return True
        if not _at_end(name).search(text):
            return False
        _, parent = self._syntax.outside(node, (cst.ConcatenatedString,))
        return re.search(r"\s", text) is None or isinstance(parent, cst.BinaryOperation)

    # What is evaluated.

    @functools.cached_property
    def _texts(self) -> list[tuple[_Text, str]]:
        """Each string with its text; in an f-string, an open brace stands for an expression."""
        scopes = self._syntax.scopes
        texts: list[tuple[_Text, str]] = [(node, node.raw_value) for node in scopes.strings]
        texts += [(node, "".join(map(_text_of_part, node.parts))) for node in scopes.f_strings]
        return texts

    @functools.cached_property
    def _evaluators(self) -> list[tuple[cst.CSTNode, str]]:
        """Each chain that means a function which evaluates texts, with its path."""
        scopes = self._syntax.scopes
        imported = {
            name
            for scope in scopes.all
            for name, bindings in scope.bindings.items()
            if any(binding.path.partition(".")[0] in _MODULES for binding in bindings)
        }
        names = imported | _NAMES
        found: list[tuple[cst.CSTNode, str]] = []
        for name, scope in scopes.loads.items():
            if name.value in names:
                for path in self._paths(name, scope):
                    found += self._evaluator(name, path)
        return found

    def _paths(self, name: cst.Name, scope: Scope) -> list[str]:
        """The paths that a name can mean; one that nothing binds means itself."""
        if scope.owner(name.value) is None:
            return [name.value]
        return sorted(self._origins.of_name(name.value, scope))

    def _evaluator(self, node: cst.CSTNode, path: str) -> Iterator[tuple[cst.CSTNode, str]]:
        """The chain that begins with a name and means a function which evaluates texts."""
        while True:
            known = _without_builtins(path)
            if known in _EVALUATING or known in _OPEN:
                yield node, known
                return
            parent = self._syntax.parents.get(node)
            if not isinstance(parent, cst.Attribute) or parent.value is not node:
                return
            node, path = parent, f"{path}.{parent.attr.value}"

    @functools.cached_property
    def _evaluated(self) -> frozenset[cst.CSTNode]:
        """The strings in calls that evaluate them."""
        arguments = [
            argument for node, path in self._evaluators for argument in self._arguments(node, path)
        ]
        return _strings_in([*arguments, *self._arguments_of_methods(_METHODS)])

    @functools.cached_property
    def _put_together(self) -> frozenset[cst.CSTNode]:
        """The strings in calls that replace names in them."""
        return _strings_in(self._arguments_of_methods(_SHELL_METHODS))

    def _arguments(self, node: cst.CSTNode, path: str) -> list[cst.BaseExpression]:
        """The arguments of a call that it evaluates."""
        call = self._syntax.call_of(node)
        if call is None or path in _OPEN:
            return []
        count = 2 if path.startswith("timeit.") else 1
        named = [argument for argument in call.args if _keyword(argument) in ("stmt", "setup")]
        positional = [argument for argument in call.args if argument.keyword is None]
        return [argument.value for argument in [*positional[:count], *named]]

    def _arguments_of_methods(self, names: Sequence[str]) -> list[cst.BaseExpression]:
        attributes = [node for name in names for node in self._syntax.attributes(name)]
        calls = filter(None, map(self._syntax.call_of, attributes))
        return [argument.value for call in calls for argument in call.args]

    @functools.cached_property
    def _evaluates_unseen_text(self) -> bool:
        """Whether the file evaluates other files with its names, or what a user types."""
        if any(path in _OPEN for _, path in self._evaluators):
            return True
        texts = [*self._syntax.texts, *(string.raw_value for string in self._syntax.scopes.strings)]
        return any(map(_RUN_INSIDE.search, texts))

    @functools.cached_property
    def _evaluates_computed_text(self) -> bool:
        """Whether the file evaluates a text that its call does not show.

        As in `eval(flags.dtype)`, `list(map(eval, lines))` and `globals()[name]`.
        """
        for node, path in self._evaluators:
            if path in _INTERPRETERS or (path in _RUNNING and self._is_passed_on(node)):
                return True
            if not all(map(self._shows_names, self._arguments(node, path))):
                return True
        if not all(map(self._shows_names, self._arguments_of_methods(_CELL_METHODS))):
            return True
        return not all(isinstance(key, cst.SimpleString) for key in self._reads_of_variables)

    def _is_passed_on(self, node: cst.CSTNode) -> bool:
        """Whether a function is used without a call, so that its text is not seen.

        But not for `add_argument("--x", type=eval)`: argparse calls it, with the names of argparse.
        """
        parent = self._syntax.parents.get(node)
        is_type = isinstance(parent, cst.Arg) and _keyword(parent) == "type"
        return self._syntax.call_of(node) is None and not is_type

    def _shows_names(self, node: cst.BaseExpression) -> bool:
        """Whether the source shows each name in a text, as in `"tf." + kind`."""
        if isinstance(node, cst.Lambda):
            return True
        return _COMPUTED_ANYWHERE.search(self._template(node)) is None

    def _template(self, node: cst.BaseExpression) -> str:
        """The text that an expression makes, as far as its strings show it."""
        if isinstance(node, cst.SimpleString):
            return node.raw_value
        if isinstance(node, cst.FormattedString):
            return _FORMATTED.sub(_COMPUTED, self._syntax.code(node)[len(node.start) :])
        if isinstance(node, cst.ConcatenatedString):
            return self._template(node.left) + self._template(node.right)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return self._template(node.left) + self._template(node.right)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
            return _PERCENT.sub(_COMPUTED, self._template(node.left))
        return self._template_of_call(node) if isinstance(node, cst.Call) else _COMPUTED

    def _template_of_call(self, call: cst.Call) -> str:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "format":
            return _FORMATTED.sub(_COMPUTED, self._template(call.func.value))
        is_compile = isinstance(call.func, cst.Name) and call.func.value == "compile"
        return self._template(call.args[0].value) if is_compile and call.args else _COMPUTED

    # Variables that are read by their names.

    def _is_read_on(self, name: str) -> bool:
        """Whether a name is read from the module itself: `sys.modules[__name__].tf`."""
        return any(self._is_loaded_module(node.value) for node in self._syntax.attributes(name))

    def _is_loaded_module(self, node: cst.CSTNode) -> bool:
        """Whether an expression is `__main__`, or an item of `sys.modules`, or a name for one."""
        if _is_item_of_modules(node) or last_name(node) == "__main__":
            return True
        scope = self._syntax.scopes.loads.get(node) if isinstance(node, cst.Name) else None
        if scope is None or not isinstance(node, cst.Name):
            return False
        return any(_is_item_of_modules(bound.value) for bound in scope.bindings_of(node.value))

    @functools.cached_property
    def _reads_of_variables(self) -> list[cst.BaseExpression]:
        """The names that `globals()["tf"]` and `getattr(sys.modules[__name__], "tf")` read."""
        found: list[cst.BaseExpression] = []
        for name, scope in self._syntax.scopes.loads.items():
            if name.value not in _VARIABLES and name.value != "getattr":
                continue
            call = self._syntax.call_of(name)
            if call is None or scope.owner(name.value) is not None:
                continue
            if name.value != "getattr" and not call.args:
                found += self._keys(call)
            elif len(call.args) > 1 and self._is_loaded_module(call.args[0].value):
                found.append(call.args[1].value)
        return found

    def _keys(self, dictionary: cst.Call) -> Iterator[cst.BaseExpression]:
        """The key that is read from a dictionary: `globals()[key]`, `globals().get(key)`.

        The dictionary stands for the keys that are read by another name of it.
        """
        parent = self._syntax.parents.get(dictionary)
        if isinstance(parent, cst.Assign) and last_name(dictionary.func) == "globals":
            yield dictionary
        if isinstance(parent, cst.Subscript) and parent.value is dictionary:
            index = parent.slice[0].slice
            if isinstance(index, cst.Index) and not self._syntax.is_stored(parent):
                yield index.value
        elif isinstance(parent, cst.Attribute) and parent.attr.value in _READING:
            call = self._syntax.call_of(parent)
            if call is not None and call.args:
                yield call.args[0].value

    @functools.cached_property
    def _keys_of_variables(self) -> frozenset[cst.CSTNode]:
        return _strings_in(self._reads_of_variables)

    # What a string is for.

    def _is_in_annotation(self, node: _Text) -> bool:
        return any(isinstance(above, cst.Annotation) for above in self._syntax.ancestors(node))

    def _is_exported(self, node: _Text) -> bool:
        """Whether a string is in `__all__`, by an assignment or a call such as `extend`."""
        _, parent = self._syntax.outside(node, _IN_LIST)
        if isinstance(parent, cst.Assign):
            return any(last_name(bound.target) == _EXPORTS for bound in parent.targets)
        if isinstance(parent, (cst.AnnAssign, cst.AugAssign)):
            return last_name(parent.target) == _EXPORTS
        if not isinstance(parent, cst.Call) or not isinstance(parent.func, cst.Attribute):
            return False
        return last_name(parent.func.value) == _EXPORTS

    def _is_statement(self, node: _Text) -> bool:
        """Whether a string is a docstring, or another statement of its own."""
        _, parent = self._syntax.outside(node, (cst.ConcatenatedString,))
        return isinstance(parent, cst.Expr)

    def _is_key(self, node: _Text) -> bool:
        """Whether a string is compared, or names an item or an attribute of something."""
        _, parent = self._syntax.outside(node, (cst.ConcatenatedString,))
        if isinstance(parent, cst.Arg):
            call = self._syntax.parents.get(parent)
            return isinstance(call, cst.Call) and last_name(call.func) in _ACCESS
        return isinstance(parent, (cst.Index, cst.Comparison, cst.ComparisonTarget))

    def _is_message(self, node: cst.CSTNode) -> bool:
        """Whether a string is a part of what is printed, logged, raised, or shown as help."""
        around, parent = self._syntax.outside(node, _WHOLE)
        while isinstance(parent, cst.Attribute) and parent.attr.value == "format":
            call = self._syntax.call_of(parent)
            if call is None:
                return False
            around, parent = self._syntax.outside(call, _WHOLE)
        if isinstance(parent, cst.Assert):
            return parent.msg is around
        call_around = self._syntax.parents.get(parent) if isinstance(parent, cst.Arg) else None
        if not isinstance(parent, cst.Arg) or not isinstance(call_around, cst.Call):
            return False
        return self._takes_message(call_around, parent)

    def _takes_message(self, call: cst.Call, argument: cst.Arg) -> bool:
        name = last_name(call.func)
        if _keyword(argument) in _MESSAGE_KEYWORDS or _MESSAGE.search(name):
            return True
        if isinstance(self._syntax.parents.get(call), cst.Raise):
            return True
        return name.startswith(_FLAG) and argument not in call.args[:2]


def _word(name: str) -> re.Pattern[str]:
    """Matches a name in the source of a string, where an escape can stand before it.

    The attribute in `module.name` is no such name.
    """
    return re.compile(rf"(?:(?<![\w.])|(?<=\\[abfnrtv])){re.escape(name)}(?!\w)")


def _read(name: str) -> re.Pattern[str]:
    """Matches a name that is called or indexed, or of which an attribute is read."""
    return re.compile(rf"{_word(name).pattern}(?:\.[\w{{%]|[(\[])")


def _at_end(name: str) -> re.Pattern[str]:
    """Matches a name with a dot at the end of a text, to which an attribute may be added."""
    return re.compile(rf"{_word(name).pattern}\.$")


def _substituted(name: str) -> re.Pattern[str]:
    """Matches a name that is put into a text by its name: `{tf}`, `%(tf)s`, `$tf`."""
    escaped = re.escape(name)
    return re.compile(rf"\{{{escaped}\s*[}}.!:\[]|%\({escaped}\)|\$\{{?{_word(name).pattern}")


def _text_of_part(part: cst.BaseFormattedStringContent) -> str:
    """The text of a part of an f-string; an open brace for an expression."""
    return part.value if isinstance(part, cst.FormattedStringText) else "{"


def _strings_in(nodes: Sequence[cst.CSTNode]) -> frozenset[cst.CSTNode]:
    strings = (cst.SimpleString, cst.FormattedString)
    return frozenset(part for node in nodes for part in walk(node) if isinstance(part, strings))


def _keyword(argument: cst.Arg) -> Optional[str]:
    return argument.keyword.value if argument.keyword is not None else None


def _without_builtins(path: str) -> str:
    first, _, rest = path.partition(".")
    return rest if f"{first}." in _BUILTINS else path


def _is_item_of_modules(node: Optional[cst.CSTNode]) -> bool:
    return isinstance(node, cst.Subscript) and last_name(node.value) == "modules"
