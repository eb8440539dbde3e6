"""Where INI, TOML and YAML files set an environment variable, found line by line.

Only an entry below a key such as `env`, `setenv` or `variables` counts, and what a command of a CI
configuration sets. A description, a label, an input or the name of a step is only text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .scripts import in_environment_file, in_script
from .shell import assigned_value, words_in

__all__ = ["in_ini", "in_toml", "in_yaml"]

_ENVIRONMENT = re.compile(
    r"(?:.*[._:-])?(?:(?:set_?)?env(?:ironment)?(?:[_-]?(?:vars|variables))?|variables)"
)
"""Matches the names of keys and tables that contain environment variables."""
_SECTION = re.compile(r"\[+([^\]]*)\]+\s*(?:[#;].*)?")
_KEY = re.compile(r"([\w.\"'-]+?)[ \t]*[=:][ \t]*(.*)")
_CONDITION = re.compile(r"[DRU]+:|[\w.,{}!-]+:[ \t]+")
"""What pytest-env allows before a variable, or the factors of tox."""
_COMMENT = re.compile(r"(?:\A|\s)#.*")
_LONG_STRING = re.compile(r"(\"\"\"|''').*?\1", re.DOTALL)


def in_ini(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values of a variable in a file such as `tox.ini`, after their lines."""
    section = key = ""
    for number, line in enumerate(text.split("\n"), 1):
        entry = line
        header = _SECTION.fullmatch(line)
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        if header is not None:
            section, key = header[1].strip(), ""
            continue
        if not line[0].isspace():
            match = _KEY.fullmatch(line)
            key, entry = (match[1], match[2]) if match else ("", "")
            if _ENVIRONMENT.fullmatch(section):
                key, entry = "env", line
        yield from ((number, value) for value in _of_entry(key, entry.strip(), name))


def _of_entry(key: str, entry: str, name: str) -> Iterator[str]:
    """Yields the value of a variable in a line of a setting."""
    if key == "commands":
        yield from (value for _, value in in_script(entry, name, lives_on=False))
    elif _ENVIRONMENT.fullmatch(key):
        yield from (value for _, value in in_environment_file(_CONDITION.sub("", entry, 1), name))


def in_toml(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values of a variable in a file such as `pyproject.toml`, after their lines."""
    text = _LONG_STRING.sub(lambda match: "\n" * match[0].count("\n"), text)
    key = rf"[\"']?{re.escape(name)}[\"']?"
    pair = re.compile(rf"(?:\A|[{{,])\s*{key}\s*=\s*[\"']?(\w+)[\"']?\s*(?=[,}}#]|\Z)")
    string = re.compile(rf"[\"'](?:[DRU]+:)?{re.escape(name)}\s*=\s*(\w+)[\"']\s*(?=[],#]|\Z)")
    section = key = ""
    for number, line in enumerate(text.split("\n"), 1):
        header = _SECTION.fullmatch(line.strip())
        if header is not None:
            section, key = header[1].strip(), ""
            continue
        entry = line.strip()
        match = _KEY.fullmatch(entry)
        begins_setting = match is not None and match[1][0] not in "\"'"
        if begins_setting or _ENVIRONMENT.fullmatch(section):
            key, entry = _split(entry, section)
        if _ENVIRONMENT.fullmatch(key) and not entry.startswith("#"):
            is_array = not _ENVIRONMENT.fullmatch(section)
            strings = string.finditer(entry) if is_array else ()
            yield from ((number, found[1]) for found in (*pair.finditer(entry), *strings))


def _split(entry: str, section: str) -> tuple[str, str]:
    """The key that contains a variable, and the entry with its name, of `key = value`."""
    if _ENVIRONMENT.fullmatch(section):
        return "env", entry
    key, _, value = entry.partition("=")
    owner, _, last = key.strip().rpartition(".")
    return (owner, f"{last} ={value}") if owner else (last, value.strip())


_COMMANDS = re.compile(
    r"run|script|bash|sh|pwsh|powershell|command|entrypoint|install|init"
    r"|(?:before|after|build|test|deploy)_\w+"
)
"""Matches the keys of YAML files that contain commands."""
_SHARES_SHELL = re.compile(r"before_\w+|install")
"""Matches those whose variables live on in the commands that follow."""
_GROUPS = ("global", "jobs", "matrix")
"""What can stand between `env` and its entries in `.travis.yml`."""
_YAML_KEY = re.compile(r"([\"']?)([\w.-]+)\1[ \t]*:(?:[ \t]+(.*))?")
_ITEMS = re.compile(r"[ ]*(?:-[ ]+)*")
_BLOCK = re.compile(r"(?:&\S+[ \t]+)?([|>])[+-]?\d?[+-]?")
_ANCHOR = re.compile(r"\A(?:[&!]\S+[ \t]*)+")
_SCALAR = re.compile(r"\"([^\"\\]*)\"|'([^']*)'|(.*)", re.DOTALL)


def in_yaml(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yields the values of a variable in a CI or compose configuration, after their lines."""
    reader = _YamlReader(name)
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = _COMMENT.sub("", lines[at]).rstrip()
        at += 1
        if not line.strip():
            continue
        yield from ((at, value) for value in reader.read(line))
        if reader.block:
            end = _end_of_block(lines, at, reader.column)
            if reader.is_command:
                script = reader.block.join(lines[at:end])
                for number, value in in_script(script, name, lives_on=False):
                    yield at + number, value
            at = end


def _end_of_block(lines: list[str], at: int, column: int) -> int:
    """The index after the lines that are indented more than a column, or are empty."""
    while at < len(lines) and (
        not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip(" ")) > column
    ):
        at += 1
    return at


class _YamlReader:
    """Reads the lines of a YAML file; knows the keys above them.

    Attributes:
      block: what joins the lines of the text that follows the line; empty if there is none.
      column: the indentation of the last line, without the dashes of lists.
      is_command: whether the last key contains commands.

    Args:
      name: the name of the variable.
    """

    def __init__(self, name: str) -> None:
        self.block = ""
        self.column = 0
        self.is_command = False
        self._name = name
        self._keys: list[tuple[int, str]] = []
        """The keys above the line, after their columns."""
        self._names_variable = -1
        """The column of a line `name: VARIABLE`; negative if the last lines have none."""

    def read(self, line: str) -> Iterator[str]:
        """Yields the values that a line gives to the variable."""
        items = _ITEMS.match(line)
        column = items.end() if items else 0
        indent = len(line) - len(line.lstrip(" "))
        is_item = column > indent
        # The items of a list can stand as far left as its key.
        limit = indent + 1 if is_item else column
        self._keys = [(place, key) for place, key in self._keys if place < limit]
        key = _YAML_KEY.fullmatch(line, column)
        self.block = ""
        self.column = indent
        if key is None:
            yield from self._of_text(line[column:].strip(), "")
            return
        value = key[3] or ""
        yield from self._of_key(key[2], _ANCHOR.sub("", value), column)
        block = _BLOCK.fullmatch(value)
        self._keys.append((column, key[2]))
        self.is_command = bool(_COMMANDS.fullmatch(key[2]))
        if block is not None:
            self.block = "\n" if block[1] == "|" else " \\\n"
            self.column = column

    def _of_key(self, key: str, value: str, column: int) -> Iterator[str]:
        """Yields the value in `key: value`."""
        above = self._keys[-1][1] if self._keys else ""
        in_environment = self._is_environment()
        names_variable = self._names_variable == column
        self._names_variable = -1
        is_value = key == "value" and (names_variable or (in_environment and above == self._name))
        if is_value or (in_environment and key == self._name):
            yield _scalar(value, self._name)
        elif key == "name" and in_environment and _scalar(value, "") == self._name:
            self._names_variable = column
        elif _COMMANDS.fullmatch(key) and not in_environment:
            lives_on = bool(_SHARES_SHELL.fullmatch(key))
            found = in_script(_scalar(value, ""), self._name, lives_on)
            yield from (value for _, value in found)
        elif _ENVIRONMENT.fullmatch(key):
            yield from self._of_text(value, key)

    def _is_environment(self) -> bool:
        """Whether the keys above the line contain variables."""
        keys = [key for _, key in self._keys[-3:]]
        while keys and keys[-1] in (*_GROUPS, self._name):
            keys.pop()
        return bool(keys and _ENVIRONMENT.fullmatch(keys[-1]))

    def _of_text(self, text: str, key: str) -> Iterator[str]:
        """Yields the values in a list, a mapping or a text that stands in one line."""
        above = key or (self._keys[-1][1] if self._keys else "")
        if not key and _COMMANDS.fullmatch(above):
            script = _scalar(text, "")
            yield from (value for _, value in in_script(script, self._name))
        if not (key or self._is_environment()):
            return
        if text[:1] in ("{", "["):
            quoted = re.escape(self._name)
            pair = rf"[{{\[,]\s*[\"']?{quoted}[\"']?\s*[:=]\s*[\"']?(\w+)[\"']?\s*(?=[,}}\]])"
            yield from (match[1] for match in re.finditer(pair, text))
            return
        words = [word for _, word in words_in(_scalar(text, ""))]
        if all("=" in word for word in words):
            yield from filter(None, (assigned_value(word, self._name) for word in words))


def _scalar(value: str, name: str) -> str:
    """The text of a value; of an expansion of the variable `name`, its default."""
    match = _SCALAR.fullmatch(value.strip())
    text = (match[1] or match[2] or match[3] or "") if match else ""
    return assigned_value(f"{name}={text}", name) if name else text
