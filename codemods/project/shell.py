"""Where shell commands set an environment variable.

The commands are split into words, nothing is run. Only what reaches a program counts: an exported
variable, one that is set for a single command, an option of `docker run`, or a line that is
appended to a file such as `~/.bashrc`. Output, other here-documents and arguments are only text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

__all__ = [
    "ANY",
    "PYTHON",
    "Setting",
    "assigned_value",
    "settings_in",
    "settings_in_words",
    "words_in",
]


class Setting(NamedTuple):
    """A value that a variable is set to.

    Attributes:
      position: the index in the text.
      value: the value, without quotes.
    """

    position: int
    value: str


class _Word(NamedTuple):
    """A word of a command.

    Attributes:
      text: the word without quotes.
      raw: the word as in the source.
      position: its index in the source.
    """

    text: str
    raw: str
    position: int


class _Command(NamedTuple):
    """A command without its operators.

    Attributes:
      words: the words, in order.
      targets: the files that its output goes to.
      end: the operator after it; may be empty.
      document: the here-documents after it; None if there are none.
    """

    words: list[_Word]
    targets: list[str]
    end: str
    document: Optional[_Word] = None


_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\r?\n)+)|(?P<end>[;&|()\n])"
    r"|(?P<here><<-?(?!<)[ \t]*(?P<tag>[^\s;&|()<>]+))|(?P<redirect>\d*[<>]+&?)"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<word>(?:'[^']*'?|\"[^\"\\]*(?:\\.[^\"\\]*)*\"?|\\.|[^\s;&|()<>'\"\\])+)|.",
    re.DOTALL,
)
_QUOTED = re.compile(r"'([^']*)'?|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"?|\\(.)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\\"$`])")
_ASSIGNMENT = re.compile(r"\w+=")

_RESERVED = frozenset(["if", "then", "elif", "else", "do", "while", "until", "!", "{", "time"])
_PREFIXES = frozenset(["sudo", "exec", "command", "nohup", "nice", "env", "builtin"])
"""Commands that run the command in their arguments."""
_DECLARES = frozenset(["export", "declare", "typeset", "readonly"])
_WRITERS = frozenset(["cat", "echo", "printf", "tee"])
_RUNNERS = frozenset(
    [
        *("run", "exec", "create", "srun", "sbatch", "bazel"),
        *("mpirun", "mpiexec", "orterun", "horovodrun"),
    ]
)
"""Words after which an option sets a variable for a program."""
_LONG_OPTION = r"--(?:export|(?:[a-z]+[_-])*env(?:-vars)?)"
_OPTION = re.compile(rf"-[ex]|{_LONG_OPTION}")
_OPTION_WITH_VALUE = re.compile(rf"{_LONG_OPTION}=|-e(?=\w)")
_CONDA = ["conda", "env", "config", "vars", "set"]
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_SHELL_OPTION = re.compile(r"-\w*c")

ANY = re.compile(
    r"(?!(?:echo|printf|[ef]?grep|rg|sed|[gm]?awk|perl|cat|test|\[\[?|:|true|false|read|exit|return|die"
    r"|log|info|debug|warn|warning|error|fail|usage|help|print|pip3?|cd|ls|mkdir|rm|cp|mv|touch|unset"
    r"|set|source|\.|git|curl|wget|apt|apt-get|case|for|alias|export|}|fi|done|esac)(?:\s|\Z))."
)
"""Matches a command that starts a program, and not one that shows text or prepares something."""
PYTHON = re.compile(
    rf"{ANY.pattern}*?(?:\b(?:python|pytest|jupyter|papermill|tox|nox|torchrun|make)|\.(?:py|sh)\b)",
    re.IGNORECASE,
)
"""Matches a command that runs Python code, as far as its words tell."""

_ENVIRONMENT_FILE = re.compile(
    r"\$[{(]?(?:env:)?(?:GITHUB_ENV|BASH_ENV)[)}]?|/etc/environment|/etc/profile(?:\.d/.*)?"
    r"|(?:.*/)?(?:\.?(?:bashrc|bash_profile|profile|zshrc|zprofile|zshenv|env|envrc)|bash\.bashrc)"
    r"|.*/activate\.d/.*",
    re.IGNORECASE,
)
"""Matches files whose lines become variables."""


def settings_in(
    text: str, name: str, lives_on: bool = True, programs: re.Pattern[str] = ANY
) -> Iterator[Setting]:
    """Yields the values to which a script sets the variable `name`.

    Args:
      text: the script, or the command.
      name: the name of the variable.
      lives_on: whether an exported variable counts without a program that is started after it, as
        in a file that can be sourced.
      programs: matches the commands that count as a program.
    """
    commands = list(_commands(text))
    reader = _Reader(name, lives_on, programs)
    for index, command in enumerate(commands):
        after = commands[index + 1] if index + 1 < len(commands) else None
        if command.end == "|" and after and after.words and after.words[0].text == "tee":
            command.targets.extend(word.text for word in after.words[1:])
        yield from reader.read(command)


def settings_in_words(words: Iterable[str], name: str) -> Iterator[Setting]:
    """Yields the values to which a command, given as its words, sets the variable `name`."""
    command = _Command([_Word(word, word, 0) for word in words], [], "")
    return _Reader(name, lives_on=False, programs=ANY).read(command)


def words_in(text: str) -> Iterator[tuple[int, str]]:
    """Yields the words of a text without their quotes, after their positions."""
    for command in _commands(text):
        for word in command.words:
            yield word.position, word.text


def assigned_value(text: str, name: str) -> str:
    """The value in `name=value`; of `name=${name:-value}`, the default; empty for other texts."""
    before, sign, value = text.partition("=")
    if not sign or before != name:
        return ""
    default = re.fullmatch(rf"\$\{{{re.escape(name)}:?[-=](\w+)\}}", value)
    return default[1] if default else value


def _commands(text: str) -> Iterator[_Command]:
    """Splits a text into commands, without comments."""
    command = _Command([], [], "")
    tags: list[str] = []
    is_target = False
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            break
        at, start = match.end(), match.start()
        kind = match.lastgroup
        if kind == "here":
            tags.append(re.sub(r"[\\'\"]", "", match["tag"]))
        elif kind == "redirect":
            is_target = True
        elif kind == "word":
            _add(_Word(_unquoted(match[0]), match[0], start), command, is_target)
            is_target = False
        elif kind == "end":
            document = None
            if match[0] == "\n" and tags:
                start, at = at, _after_here_documents(text, at, tags)
                document = _Word(text[start:at], text[start:at], start)
            yield command._replace(end=match[0], document=document)
            command, is_target = _Command([], [], ""), False
    yield command


def _add(word: _Word, command: _Command, is_target: bool) -> None:
    """Adds a word to a command, or to the files that its output goes to."""
    if is_target:
        command.targets.append(word.text)
    else:
        command.words.append(word)


def _after_here_documents(text: str, at: int, tags: list[str]) -> int:
    """The index after the here-documents that begin at an index; empties the list of their tags."""
    while tags:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at:end].strip() == tags[0]:
            del tags[0]
        at = end + 1
        if at > len(text):
            break
    return min(at, len(text))


def _unquoted(raw: str) -> str:
    """A word without its quotes."""
    return _QUOTED.sub(_content, raw)


def _content(match: re.Match[str]) -> str:
    """What is in quotes, or behind a backslash."""
    if match[2]:
        return _ESCAPED.sub(r"\1", match[2])
    return match[1] or match[3] or ""


class _Reader:
    """Reads the commands of a script in their order.

    Args:
      name: the name of the variable.
      lives_on: whether an exported variable counts at once.
      programs: matches the commands that count as a program.
    """

    def __init__(self, name: str, lives_on: bool, programs: re.Pattern[str]) -> None:
        self._name = name
        self._lives_on = lives_on
        self._programs = programs
        self._exports_all = False
        self._not_exported: list[Setting] = []
        self._not_used: list[Setting] = []
        """What is exported, but not to a program yet."""

    def read(self, command: _Command) -> Iterator[Setting]:
        """Yields the settings that count from this command on."""
        words = command.words
        while words and words[0].text in _RESERVED:
            words = words[1:]
        count = 0
        while count < len(words) and _ASSIGNMENT.match(words[count].raw):
            count += 1
        assigned = self._settings_of(words[:count])
        words = words[count:]
        if words:
            yield from self._run(words, assigned, command)
        elif command.end != ")":
            yield from self._assign(assigned)

    def _settings_of(self, words: Iterable[_Word]) -> list[Setting]:
        values = [(word.position, assigned_value(word.text, self._name)) for word in words]
        return [Setting(position, value) for position, value in values if value]

    def _assign(self, settings: list[Setting]) -> Iterator[Setting]:
        """Reads variables of the shell, which no program gets unless they are exported."""
        if self._exports_all:
            yield from self._export(settings)
        else:
            self._not_exported += settings

    def _export(self, settings: list[Setting]) -> Iterator[Setting]:
        if self._lives_on:
            yield from settings
        else:
            self._not_used += settings

    def _run(
        self, words: Sequence[_Word], assigned: list[Setting], command: _Command
    ) -> Iterator[Setting]:
        """Reads a command with what is set for it alone."""
        first = words[0].text
        if first == "set":
            self._exports_all |= any(word.text in ("-a", "allexport") for word in words)
        elif first in _DECLARES:
            yield from self._declare(words)
        elif first == "setenv":
            values = [Setting(words[1].position, words[2].text)] if len(words) == 3 else []
            yield from self._export(values if values and words[1].text == self._name else [])
        elif first.lower().startswith("$env:"):
            text = "".join(word.text for word in words)[len("$env:") :]
            value = assigned_value(text, self._name)
            yield from self._export([Setting(words[0].position, value)] if value else [])
        elif first in _WRITERS:
            yield from self._written(words, command)
        else:
            yield from self._started(words, assigned)

    def _declare(self, words: Sequence[_Word]) -> Iterator[Setting]:
        """Reads `export`, or `declare` with the option `-x` or without it."""
        options = "".join(word.text for word in words[1:] if word.text.startswith("-"))
        assigned = self._settings_of(words[1:])
        if words[0].text != "export" and "x" not in options:
            yield from self._assign(assigned)
        elif "n" not in options:
            if any(word.text == self._name for word in words[1:]):
                assigned += self._not_exported
                self._not_exported.clear()
            yield from self._export(assigned)

    def _written(self, words: Sequence[_Word], command: _Command) -> Iterator[Setting]:
        """Yields what `echo` or `cat` adds to a file whose lines become variables."""
        texts = [word.text for word in words[1:]]
        targets = [*command.targets, *(texts if words[0].text == "tee" else ())]
        if not any(map(_ENVIRONMENT_FILE.fullmatch, targets)):
            return
        line = re.compile(
            rf"(?:\A(?:-[en]+ )*|\\n|\n)[ \t]*(?:export )?{re.escape(self._name)}=[\"']?(\w+)[\"']?"
            r"(?=\\n|\n|\Z)"
        )
        for match in line.finditer(" ".join(texts)):
            yield Setting(words[0].position, match[1])
        if command.document is not None:
            for match in line.finditer(command.document.text):
                yield Setting(command.document.position + match.start(1), match[1])

    def _started(self, words: Sequence[_Word], assigned: list[Setting]) -> Iterator[Setting]:
        """Yields what a program gets, and what has been exported before it starts."""
        while words and words[0].text.rpartition("/")[2] in _PREFIXES:
            count = 1
            while count < len(words) and re.match(r"-|\w+=", words[count].text):
                count += 1
            assigned = assigned + self._settings_of(words[1:count])
            words = words[count:]
        texts = [word.text for word in words]
        if texts[:5] == _CONDA:
            yield from self._settings_of(words[5:])
        if not self._programs.match(" ".join(texts)):
            return
        yield from self._not_used
        self._not_used.clear()
        yield from assigned
        yield from self._options(words)
        yield from self._nested(words)

    def _options(self, words: Sequence[_Word]) -> Iterator[Setting]:
        """Yields what the command `env` and options such as `-e` of `docker run` set."""
        is_runner = False
        before = ""
        for word in words:
            yield from self._settings_of(_values(word, before, is_runner))
            is_runner = is_runner or word.text in _RUNNERS
            is_of_env = before == "env" and re.match(r"-|\w+=", word.text)
            before = before if is_of_env else word.text

    def _nested(self, words: Sequence[_Word]) -> Iterator[Setting]:
        """Yields what the script in `bash -c "script"` sets."""
        for shell, option, script in zip(words, words[1:], words[2:]):
            if _SHELL.fullmatch(shell.text) and _SHELL_OPTION.fullmatch(option.text):
                for setting in settings_in(script.text, self._name, lives_on=False):
                    yield setting._replace(position=script.position)
                return


def _values(word: _Word, before: str, is_runner: bool) -> list[_Word]:
    """What a word sets after `env`, or as an option of a command that runs a program.

    Args:
      word: the word.
      before: the word before it; `env` also after other variables.
      is_runner: whether the command runs a program, as `docker run` does.
    """
    if before == "env":
        return [word]
    match = _OPTION_WITH_VALUE.match(word.text)
    if not is_runner or not (match or _OPTION.fullmatch(before)):
        return []
    option = match[0] if match else before
    value = word.text[match.end() :] if match else word.text
    values = value.split(",") if option.startswith("--") else [value]
    return [word._replace(text=value) for value in values]
