"""Where Dockerfiles, Makefiles and environment files set a variable.

Only what surely becomes a variable of a program counts: not a label, a build argument, a variable
of make that is not exported, or what a shell exports and then ends.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator
from typing import Callable

from .shell import ANY, assigned_value, settings_in, settings_in_words, words_in

__all__ = ["in_dockerfile", "in_environment_file", "in_makefile", "in_script"]

_CONTINUED = re.compile(r"\\[ \t]*\Z")
_HERE = re.compile(r"<<-?[ \t]*[\"']?(\w+)")
_INSTRUCTION = re.compile(r"\s*(?:onbuild\s+)?(\w+)\s+", re.IGNORECASE)
_STARTS = ("CMD", "ENTRYPOINT")
_MAKE_VARIABLE = re.compile(
    r" *(?:[^\s:=#][^:=#]*:[ \t]*)?(export[ \t]+)?(\w+)[ \t]*(?:[?:]|::)?=[ \t]*(\w+)[ \t]*(?:#.*)?"
)
_MAKE_EXPORT = re.compile(r" *export\b([\w \t]*)(?:#.*)?|\.EXPORT_ALL_VARIABLES:.*")
_MAKE_TEXT = re.compile(r"^ *define\b.*?(?:^ *endef\b|\Z)", re.MULTILINE | re.DOTALL)
_RECIPE_SIGNS = re.compile(r"\t[ \t]*[@+-]*[ \t]*")
_ENTRY = re.compile(r"\s*(?:export\s+)?(\w+)\s*=\s*(?:\"(\w+)\"|'(\w+)'|(\w+))\s*(?:#.*)?")


def in_script(
    text: str, name: str, lives_on: bool = True, programs: re.Pattern[str] = ANY
) -> Iterator[tuple[int, str]]:
    """Yields the values that a script gives to a variable, after their lines; as `settings_in`."""
    line_of = _lines(text)
    for setting in settings_in(text, name, lives_on, programs):
        yield line_of(setting.position), setting.value


def _lines(text: str) -> Callable[[int], int]:
    """Returns a function that gives the line of an index, from 1."""
    ends = [match.start() for match in re.finditer("\n", text)]
    return lambda index: bisect.bisect_left(ends, index) + 1


def in_environment_file(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values of a variable in a file such as `.env`, after their lines."""
    for number, line in enumerate(text.split("\n"), 1):
        match = _ENTRY.fullmatch(line)
        if match is not None and match[1] == name:
            yield number, match[2] or match[3] or match[4]


def in_dockerfile(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values that the instructions give to a variable, after their lines.

    A build argument is gone when the container runs, unless `ENV` takes its value over.
    """
    arguments: list[tuple[int, str]] = []
    references = (f"${name}", f"${{{name}}}")
    for start, instruction in _instructions(text):
        match = _INSTRUCTION.match(instruction)
        if match is None:
            continue
        word = match[1].upper()
        start += instruction.count("\n", 0, match.end())
        for line, value in _in_instruction(word, instruction[match.end() :], name):
            place = (start + line - 1, value)
            if word == "ARG":
                arguments.append(place)
            else:
                yield from arguments if value in references else [place]


def _in_instruction(word: str, text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values that the arguments of an instruction give to a variable."""
    if word in ("ARG", "ENV"):
        yield from _pairs(text, name)
    elif word in _STARTS and text.startswith("["):
        yield from ((1, setting.value) for setting in settings_in_words(_listed(text), name))
    elif word in ("RUN", *_STARTS):
        yield from in_script(text, name, lives_on=False)


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """Yields the instructions without here-documents, after their first lines."""
    tag = ""
    for number, line in _continued_lines(text, has_comments=True):
        if tag:
            tag = "" if line.strip() == tag else tag
            continue
        here = _HERE.search(line)
        tag = here[1] if here else ""
        yield number, line


def _continued_lines(text: str, has_comments: bool = False) -> Iterator[tuple[int, str]]:
    """Yields the lines with their continuations, after the numbers of the first ones.

    Args:
      text: the text.
      has_comments: whether a comment can stand between continuations, as in Dockerfiles.
    """
    parts: list[str] = []
    number = 0
    for number, line in enumerate(text.split("\n"), 1):
        is_comment = has_comments and line.lstrip().startswith("#")
        if is_comment:
            parts.append("\\" if parts else "")
        else:
            parts.append(_CONTINUED.sub(r"\\", line))
        if not parts[-1].endswith("\\"):
            yield number - len(parts) + 1, "\n".join(parts)
            parts = []
    if parts:
        yield number - len(parts) + 1, "\n".join(parts)


def _pairs(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values of a variable in `A=b name=value` or `name value`, after their lines."""
    words = list(words_in(text))
    if len(words) == 2 and words[0][1] == name:
        words = [(words[0][0], f"{name}={words[1][1]}")]
    if all("=" in word for _, word in words):
        line_of = _lines(text)
        for position, word in words:
            value = assigned_value(word, name)
            if value:
                yield line_of(position), value


def _listed(text: str) -> list[str]:
    """The strings of a JSON array; none if it is something else."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [word for word in listed if isinstance(word, str)] if isinstance(listed, list) else []


def in_makefile(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values of a variable that make exports or a recipe sets, after their lines."""
    not_exported: list[tuple[int, str]] = []
    is_exported = False
    text = _MAKE_TEXT.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in _continued_lines(text):
        recipe = _RECIPE_SIGNS.match(line)
        variable = _MAKE_VARIABLE.fullmatch(line)
        export = _MAKE_EXPORT.fullmatch(line)
        if recipe is not None:
            found = in_script(line[recipe.end() :], name, lives_on=False)
            yield from ((number + offset - 1, value) for offset, value in found)
        elif variable is not None and variable[2] == name and variable[1]:
            yield number, variable[3]
        elif variable is not None and variable[2] == name:
            not_exported.append((number, variable[3]))
        elif export is not None:
            names = (export[1] or "").split()
            is_exported = is_exported or not names or name in names
    if is_exported:
        yield from not_exported
