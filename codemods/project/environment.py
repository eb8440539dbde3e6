"""Where Python code sets an environment variable, found in its tokens, without a parse.

So it also works for code that only another version of Python can parse. A text that only mentions
the variable, such as a comment, a docstring or the message of an `assert`, sets nothing. What is
not recognized does not count either.
"""

from __future__ import annotations

import collections
import keyword
import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["values_set_in"]

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

_SETTER = re.compile(r"_*(?:set(?!attr)|put)\w*|update|dict", re.IGNORECASE)
"""Matches the functions that take a name and a value, or pairs of them."""
_RUNS = frozenset(
    [
        *("system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput"),
        *("getstatusoutput", "create_subprocess_shell", "create_subprocess_exec"),
    ]
)
"""The functions of Python that start a command, such as `subprocess.run`."""
_MESSAGES = frozenset(
    [
        *("print", "pprint", "log", "debug", "info", "warn", "warning", "error", "exception"),
        *("critical", "fatal", "write", "fail", "skip", "exit"),
    ]
)
"""Functions that show their arguments."""
_STATEMENTS = frozenset(["assert", "raise", "print"])
"""Statements that contain messages; `print` is one in Python 2."""
_NO_SETTING = frozenset(["==", "!=", "in"])
"""Before a dictionary or a tuple that is compared."""


class _Token(NamedTuple):
    """A word or sign, or the content of a string."""

    text: str
    is_string: bool = False


_LINE_END = _Token("\n")


class _Bracket(NamedTuple):
    """An open bracket.

    Attributes:
      sign: the bracket.
      callee: the last name of the function whose arguments it contains or is in; may be empty.
      is_text: whether it contains what is shown, compared or defined, which sets nothing.
    """

    sign: str
    callee: str = ""
    is_text: bool = False


_NO_BRACKET = _Bracket("")


def values_set_in(source: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields each value to which the source sets the variable `name`, after its line."""
    reader = _Reader(name)
    line = 1
    at = 0
    source = re.sub("\r\n?", "\n", source)
    for match in _TOKEN.finditer(source):
        if match.lastgroup is None:
            continue
        is_string = match.lastgroup == "string"
        token = _Token(_content(match[0]) if is_string else match[0], is_string)
        values = list(reader.read(token))
        if values:
            line += source.count("\n", at, match.start())
            at = match.start()
            yield from ((line, value) for value in values)


def _content(string: str) -> str:
    """The text between the quotes."""
    match = _QUOTED.match(string)
    return match[2] if match else ""


class _Reader:
    """Reads tokens one by one; knows the last ones, the open brackets and the statement.

    Args:
      name: the name of the variable.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._in_command = re.compile(
            r"(?:\A|[;&|(\n]|(?<![\w-])(?:export|env|-e|--env)\s)\s{0,9}(?:\w{1,99}=\S{0,99}\s){0,9}"
            rf"{re.escape(name)}=[\"']?(\w+)"
        )
        self._open: list[_Bracket] = []
        self._last = collections.deque([_Token("")] * 3, maxlen=3)
        self._statement = ""
        """The first word of the statement."""

    def read(self, token: _Token) -> Iterator[str]:
        """Yields the values that the token, or a command in it, gives to the variable."""
        if token == _LINE_END and self._open:
            return
        inside = self._open[-1] if self._open else _NO_BRACKET
        if not inside.is_text and self._statement not in _STATEMENTS:
            if self._is_value(inside):
                yield token.text
            if token.is_string and inside.callee in _RUNS:
                yield from self._in_command.findall(token.text)
        self._take(token, inside)

    def _is_value(self, inside: _Bracket) -> bool:
        """Whether the next token is a value of the variable."""
        before, key, sign = self._last
        if sign.is_string:
            return False
        if sign.text == "=" and key == _Token("]"):
            return before.text == self._name
        if key.text != self._name:
            return False
        if sign.text == ":":
            return inside.sign == "{"
        if sign.text == ",":
            return bool(_SETTER.fullmatch(inside.callee))
        is_keyword = not key.is_string and inside.sign == "("
        return sign.text == "=" and is_keyword and bool(inside.callee)

    def _take(self, token: _Token, inside: _Bracket) -> None:
        """Updates the brackets, the statement and the last tokens."""
        text = "" if token.is_string else token.text
        if text and text in "([{":
            self._open.append(self._bracket(text, inside))
        elif text and text in ")]}":
            del self._open[-1:]
        if not self._open:
            is_end = bool(text) and text in "\n;:"
            self._statement = "" if is_end else self._statement or token.text
        self._last.append(token)

    def _bracket(self, sign: str, inside: _Bracket) -> _Bracket:
        """The bracket that opens with a sign."""
        _, before, last = self._last
        word = "" if last.is_string else last.text
        is_text = inside.is_text or word in _MESSAGES or word in _NO_SETTING
        if sign == "(" and word.isidentifier() and not keyword.iskeyword(word):
            return _Bracket(sign, word, is_text or before.text in ("def", "class"))
        return _Bracket(sign, inside.callee, is_text)
