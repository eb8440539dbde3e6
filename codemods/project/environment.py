"""Where Python code sets an environment variable, found in its tokens, without a parse.

So it also works for code that only another version of Python can parse. A text that only mentions
the variable, such as a comment, a docstring or the message of an `assert`, sets nothing. Nor does a
dictionary that is not surely an environment, or code of a test, which is undone or runs alone. What
is not recognized does not count either.
"""

from __future__ import annotations

import collections
import keyword
import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

from .shell import settings_in, settings_in_words

__all__ = ["places_in"]

_REST_OF_STRING = {
    **{
        3 * quote: rf"[^{quote}\\]*(?:(?:\\.|{quote}(?!{quote * 2}))[^{quote}\\]*)*"
        for quote in "\"'"
    },
    **{quote: rf"[^{quote}\\\n]*(?:\\.[^{quote}\\\n]*)*" for quote in "\"'"},
}
"""What follows each opening quote, up to the closing one or, if it is missing, the end."""
_STRINGS = "|".join(f"{quote}{rest}(?:{quote})?" for quote, rest in _REST_OF_STRING.items())
_TOKEN = re.compile(
    rf"[^\S\n]+|#[^\n]*|\\\n|(?P<string>[A-Za-z]{{0,2}}(?:{_STRINGS}))|(?P<other>\w+|[=!]=|.|\n)",
    re.DOTALL,
)
_QUOTED = re.compile(r"[A-Za-z]{0,2}(\"\"\"|'''|\"|')(.*?)(?:\1)?\Z", re.DOTALL)

_SETTER = re.compile(r"_*(?:set|put)_?env\w*|setdefault|update|__setitem__|dict", re.IGNORECASE)
"""Matches the functions that take a name and a value, or pairs of them."""
_OF_ENVIRONMENT = re.compile(r"setdefault|update|__setitem__")
"""Matches the methods of `os.environ` that set variables."""
_ENVIRONMENT = re.compile(
    r"(?!\w*(?:expect|want|help|message|schema|test))"
    r"(?:\w*_)?env(?:iron(?:b|ment)?)?s?(?:_?(?:vars?|variables))?",
    re.IGNORECASE,
)
"""Matches the names of what holds environment variables, such as `os.environ` or `child_env`."""
_UNDONE = re.compile(r"\w*(?:patch|mock)\w*|mp", re.IGNORECASE)
"""Matches the objects that tests change the environment with, for as long as a test runs."""
_RUNS = frozenset(
    [
        *("system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput"),
        *("getstatusoutput", "create_subprocess_shell", "create_subprocess_exec"),
    ]
)
"""The functions of Python that start a command, such as `subprocess.run`."""
_MESSAGE = re.compile(
    r"_*(?:assert\w*|log(?:_\w+)?|p?print|debug|info|warn|warning|error|exception|critical|fatal|write"
    r"|fail|skip|exit)"
)
"""Matches the functions that show or compare their arguments."""
_STATEMENTS = frozenset(["assert", "raise", "print"])
"""Statements that contain messages; `print` is one in Python 2."""
_NO_SETTING = frozenset(["==", "!=", "in"])
"""Before a dictionary or a tuple that is compared."""
_CONTINUES = frozenset(
    [*("if", "or", "and", "in", "not", "is", "==", "!="), *"+%*/|&^<>.["],
)
"""What makes a string that it follows a part of an expression."""
_LONGEST_PATH = 100
_TEST_FILE = re.compile(
    r"(?:.*[\\/])?(?:tests[\\/].*|test_[^\\/]*|[^\\/]*_test\.py|conftest\.py)", re.DOTALL
)
"""Matches the paths of files with tests."""
_TEST = re.compile(r"test\w*|Test\w*|\w+Tests?")
"""Matches the names of the tests in them. Elsewhere, `test` can evaluate a model."""
_PREPARES_TESTS = re.compile(
    r"(?:setUp|tearDown)(?:Class|Module)?|(?:setup|teardown)_(?:module|function|method|class)"
)
"""Matches the names of functions that prepare tests."""


class _Token(NamedTuple):
    """A word or sign, or the content of a string."""

    text: str
    is_string: bool = False


_LINE_END = _Token("\n")


class _Bracket(NamedTuple):
    """An open bracket.

    Attributes:
      sign: the bracket.
      path: the dotted name before it; may be empty.
      callee: the last name of the function whose arguments it contains or is in; may be empty.
      is_text: whether it contains what is shown, compared or defined, which sets nothing.
      sets: whether the pairs of names and values in it become environment variables.
      is_value: whether it contains the value that is assigned to the variable.
      holder: the name that a dictionary is assigned to, which can be added to an environment; may
        be empty.
    """

    sign: str
    path: str = ""
    callee: str = ""
    is_text: bool = False
    sets: bool = False
    is_value: bool = False
    holder: str = ""


_NO_BRACKET = _Bracket("")


class _Found(NamedTuple):
    """A place in the source: its index, and the value, or None for an import."""

    position: int
    value: Optional[str]


def places_in(
    source: str, name: str, package: str, path: str
) -> Iterator[tuple[int, Optional[str]]]:
    """Yields the places that set an environment variable or import a package.

    Args:
      source: the source.
      name: the name of the variable.
      package: the name of the package.
      path: the path of the file, which shows whether it has tests.

    Yields:
      the line, and the value of the variable; None for an import.
    """
    line = 1
    at = 0
    source = re.sub("\r\n?", "\n", source)
    reader = _Reader(name, package, has_tests=bool(_TEST_FILE.fullmatch(path)))
    for index, value in _found_in(source, reader):
        line += source.count("\n", at, index)
        at = index
        yield line, value


def _found_in(source: str, reader: _Reader) -> Iterator[_Found]:
    """Yields what a reader finds in the tokens of a source, in their order."""
    for match in _TOKEN.finditer(source):
        if match.lastgroup is None:
            continue
        is_string = match.lastgroup == "string"
        token = _Token(_content(match[0]) if is_string else match[0], is_string)
        if reader.begins_line and token != _LINE_END:
            reader.begin(match.start() - source.rfind("\n", 0, match.start()))
        yield from reader.read(token, match.start())
    yield from reader.read(_LINE_END, len(source))


def _content(string: str) -> str:
    """The text between the quotes."""
    match = _QUOTED.match(string)
    return match[2] if match else ""


class _Reader:
    """Reads tokens one by one; knows the last ones, the open brackets and the statement.

    Attributes:
      begins_line: whether the next token is the first one of a line outside brackets.

    Args:
      name: the name of the variable.
      package: the name of the package.
      has_tests: whether the file has tests.
    """

    def __init__(self, name: str, package: str, has_tests: bool) -> None:
        self.begins_line = True
        self._name = name
        self._package = package
        self._keys = {name}
        """The names in the source that mean the variable."""
        self._tests = _Tests(has_tests)
        self._open: list[_Bracket] = []
        self._words: list[str] = []
        """The strings in the list that is a command."""
        self._last = collections.deque([_Token("")] * 3, maxlen=3)
        self._path = ""
        """The dotted name that ends with the last token."""
        self._before_path = ""
        """The token before it."""
        self._pending: Optional[_Found] = None
        """A value that counts unless it is a part of an expression."""
        self._held: dict[str, list[_Found]] = {}
        """The values in dictionaries, by the names that these are assigned to."""
        self._statement = ""
        """The first word of the statement."""
        self._is_environment = False
        """Whether the last `=` assigns to an environment, as `env = ` or `env=` in a call."""
        self._has_target = False
        """Whether the statement assigns to the variable."""

    def begin(self, column: int) -> None:
        """Begins a line outside brackets whose first token is in this column."""
        self.begins_line = False
        self._tests.begin(column)

    def read(self, token: _Token, index: int) -> Iterator[_Found]:
        """Yields the values that the token, or a command in it, gives to the variable."""
        if token == _LINE_END and self._open:
            return
        inside = self._open[-1] if self._open else _NO_BRACKET
        yield from self._completed(token, inside)
        self._tests.read(token, self._last[-1], self._statement)
        if not inside.is_text and self._statement not in _STATEMENTS:
            yield from self._found(token, index, inside)
        self._take(token, inside)

    def _found(self, token: _Token, index: int, inside: _Bracket) -> Iterator[_Found]:
        """Yields what a token of code is; a value is kept until the next token completes it."""
        if self._tests.is_inside:
            return
        if self._is_value(inside):
            self._pending = _Found(index, token.text)
        yield from (_Found(index, value) for value in self._commanded(token, inside))
        if token == _Token(")") and inside.sets and self._last[-2].text in ("(", "*"):
            held = self._held.pop(self._last[-1].text, ())
            yield from (found._replace(position=index) for found in held)
        if self._is_import(token):
            yield _Found(index, None)

    def _completed(self, token: _Token, inside: _Bracket) -> Iterator[_Found]:
        """Yields the last value if the token ends it."""
        if self._pending is None or (inside.is_value and token == _Token(")")):
            return
        if not token.is_string and token.text not in _CONTINUES:
            if inside.holder:
                self._held.setdefault(inside.holder, []).append(self._pending)
            else:
                yield self._pending
        self._pending = None

    def _is_value(self, inside: _Bracket) -> bool:
        """Whether the next token is a value of the variable."""
        _, key, sign = self._last
        if sign.is_string:
            return False
        if self._has_target:
            return sign.text == "(" if inside.is_value else sign.text == "=" and not self._open
        if not (inside.sets or inside.holder) or not self._is_key(key):
            return False
        if sign.text == ":":
            return inside.sign == "{"
        if sign.text == ",":
            return bool(_SETTER.fullmatch(inside.callee))
        is_keyword = not key.is_string and inside.sign == "("
        return sign.text == "=" and is_keyword and bool(inside.callee)

    def _is_key(self, token: _Token) -> bool:
        return token.text == self._name if token.is_string else token.text in self._keys

    def _commanded(self, token: _Token, inside: _Bracket) -> Iterator[str]:
        """Yields the values that a command gives to the variable."""
        if inside.callee not in _RUNS:
            return
        if inside.sign == "[" and token == _Token("]"):
            yield from (found.value for found in settings_in_words(self._words, self._name))
        elif inside.sign == "[" and token.is_string:
            self._words.append(token.text)
        elif token.is_string and self._name in token.text:
            settings = settings_in(token.text, self._name, lives_on=False)
            yield from (found.value for found in settings)

    def _is_import(self, token: _Token) -> bool:
        """Whether the token is the package in `import package` or `from package import x`."""
        is_first = self._last[-1] == _Token(self._statement) and not self._open
        return is_first and token == _Token(self._package) and self._statement in ("import", "from")

    def _take(self, token: _Token, inside: _Bracket) -> None:
        """Updates the brackets, the statement and the last tokens."""
        text = "" if token.is_string else token.text
        if text and text in "([{":
            self._words = []
            self._open.append(self._bracket(text, inside))
        elif text and text in ")]}":
            self._close(text)
        elif text == "=":
            self._assign(inside)
        elif token == _Token(self._name, is_string=True) and self._last[-1] == _Token("="):
            self._keys.add(self._last[-2].text)
        if not self._open:
            self._advance(text, token)
        self._follow(text)
        self._last.append(token)

    def _close(self, sign: str) -> None:
        """Closes a bracket; `environ["NAME"]` can be what a statement assigns to."""
        bracket = self._open.pop() if self._open else _NO_BRACKET
        is_alone = self._last[-2] == _Token("[") and self._is_key(self._last[-1])
        is_variable = sign == "]" and is_alone and _is_environment(bracket.path)
        self._path = self._name if is_variable else ""

    def _assign(self, inside: _Bracket) -> None:
        """Reads the sign `=`."""
        is_environment = _is_environment(self._path)
        if self._open:
            self._is_environment = is_environment and inside.sign == "("
            return
        self._is_environment |= is_environment
        self._has_target |= self._path == self._name and self._last[-1] == _Token("]")

    def _advance(self, text: str, token: _Token) -> None:
        """Updates the statement with a token outside brackets."""
        self.begins_line = self.begins_line or text == "\n"
        if text and text in "\n;:":
            is_annotation = text == ":" and self._statement == self._path.partition(".")[0] != ""
            self._is_environment = is_annotation and _is_environment(self._path)
            self._has_target = False
            self._statement = ""
        else:
            self._statement = self._statement or token.text

    def _follow(self, text: str) -> None:
        """Updates the dotted name that ends with the last token."""
        is_name = text.isidentifier() and not keyword.iskeyword(text)
        is_part = text.isidentifier() and self._path.endswith(".")
        if self._path and (text == "." or is_part):
            self._path = self._path[-_LONGEST_PATH:] + text
        elif not (self._path and text in ("]", "|")):  # as in `environ["A"] = ` and `environ |= `
            self._path = text if is_name else ""
            self._before_path = "" if self._last[-1].is_string else self._last[-1].text

    def _bracket(self, sign: str, inside: _Bracket) -> _Bracket:
        """The bracket that opens with a sign."""
        _, before, last = self._last
        word = "" if last.is_string else last.text
        is_text = inside.is_text or bool(_MESSAGE.fullmatch(word)) or word in _NO_SETTING
        if sign == "(" and word.isidentifier() and not keyword.iskeyword(word):
            is_text = is_text or before.text in ("def", "class")
            sets = self._sets_as_call(inside)
            is_value = self._path == "str" and self._before_path == "=" and self._has_target
            return _Bracket(sign, self._path, word, is_text, sets, is_value)
        sets = inside.sets or (sign == "{" and word in ("=", "|") and self._is_environment)
        is_value = sign == "(" and word == "=" and self._has_target
        is_held = sign == "{" and word == "=" and not self._open and not sets
        holder = before.text if is_held else ""
        return _Bracket(sign, self._path, inside.callee, is_text, sets, is_value, holder)

    def _sets_as_call(self, inside: _Bracket) -> bool:
        """Whether the pairs in the arguments of the function become environment variables."""
        owner, _, callee = self._path.rpartition(".")
        if callee == "dict" and not owner:
            return inside.sets or (self._before_path == "=" and self._is_environment)
        if _OF_ENVIRONMENT.fullmatch(callee):
            return _is_environment(owner)
        is_undone = bool(_UNDONE.fullmatch(owner.rpartition(".")[2]))
        return "env" in callee.lower() and bool(_SETTER.fullmatch(callee)) and not is_undone


class _Tests:
    """Knows whether a line belongs to a test: a function, a class, or a fixture.

    Attributes:
      is_inside: whether the last token is in a test.

    Args:
      in_test_file: whether names that begin with `test` are those of tests.
    """

    def __init__(self, in_test_file: bool) -> None:
        self.is_inside = False
        self._in_test_file = in_test_file
        self._column = 0
        """The column of the test, or of the line."""
        self._is_fixture = False

    def begin(self, column: int) -> None:
        """Begins a line; tests end with the first line that is not indented more."""
        if not self.is_inside or column <= self._column:
            self.is_inside = False
            self._column = column

    def read(self, token: _Token, last: _Token, statement: str) -> None:
        """Reads a token after the last one, in a statement with this first word."""
        if token.is_string or self.is_inside:
            return
        if statement == "@" and token.text == "fixture":
            self._is_fixture = True
        elif last.text in ("def", "class"):
            is_test = self._in_test_file and _TEST.fullmatch(token.text)
            self.is_inside = bool(
                self._is_fixture or is_test or _PREPARES_TESTS.fullmatch(token.text)
            )
            self._is_fixture = False
        elif statement == "class" and token.text.endswith("TestCase"):
            self.is_inside = True


def _is_environment(path: str) -> bool:
    """Whether a dotted name is that of an environment."""
    return bool(_ENVIRONMENT.fullmatch(path.rpartition(".")[2]))
