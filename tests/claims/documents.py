"""What the repository says of itself: its Markdown files, docstrings and comments."""

import ast
import configparser
import functools
import io
import os
import pathlib
import re
import tokenize
from typing import Callable, Iterable, Iterator, List, Match, NamedTuple, Pattern, Union

ROOT = pathlib.Path(__file__).resolve().parents[2]

_NOT_OURS = {
    "__pycache__", ".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox",
    ".versions", "build", "dist", "out", "site",
}  # fmt: skip
"""Directories that git ignores: a clean clone has none of them."""


class Text(NamedTuple):
    """A piece of text, with the file and line where it starts."""

    file: str
    line: int
    text: str


class Block(NamedTuple):
    """A fenced block of code in a Markdown file."""

    file: str
    line: int
    language: str
    code: str


def files(*suffixes: str) -> Iterator[pathlib.Path]:
    """Files of the repository with one of these suffixes; all files without any."""
    for directory, folders, names in os.walk(ROOT):
        folders[:] = sorted(
            folder
            for folder in folders
            if folder not in _NOT_OURS
            and not folder.startswith(".venv")
            and ".egg-info" not in folder
        )
        for name in sorted(names):
            path = pathlib.Path(directory, name)
            if (not suffixes or path.suffix in suffixes) and name != ".git":
                yield path


def name_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


def config(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / name)
    return parser


def markdown() -> List[Text]:
    """Every Markdown file, whole."""
    return [Text(name_of(path), 1, path.read_text(encoding="utf-8")) for path in files(".md")]


def comments() -> Iterator[Text]:
    """Docstrings and comments of every Python file, and comments of the other source files."""
    for path in files(".py"):
        if "recorders" not in path.parts:  # kept byte for byte as they were run
            yield from comments_of(name_of(path), path.read_text(encoding="utf-8"))
    others = [
        ROOT / "Makefile",
        ROOT / ".ci" / "run",
        *files(".cfg", ".ini", ".toml", ".yml", ".yaml"),
    ]
    for path in others:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            before, mark, comment = line.partition("#")
            if mark and not before.rstrip().endswith("$"):
                yield Text(name_of(path), number, comment)


def comments_of(file: str, source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list):  # docstrings, those below a variable included
            for statement in body:
                value = (
                    getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
                )
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield Text(file, statement.lineno, value.value)
    run: List[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:  # consecutive lines are one text
            if run and token.start[0] != last + 1:
                yield Text(file, start, "\n".join(run))
                run = []
            start = start if run else token.start[0]
            last = token.start[0]
            run.append(token.string.lstrip("# "))
    if run:
        yield Text(file, start, "\n".join(run))


@functools.lru_cache(maxsize=None)
def everything() -> List[Text]:
    """Every text of the repository in which something is claimed."""
    return [*markdown(), *comments()]


_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text: Text) -> List[Block]:
    return [
        Block(text.file, text.text[: match.start()].count("\n") + 2, match[1], match[2])
        for match in _FENCE.finditer(text.text)
    ]


def prose(text: Text) -> str:
    """The text without its blocks of code; lines keep their numbers."""
    return _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text.text)


def place(text: Text, position: int) -> str:
    return f"{text.file}:{text.line + text.text[:position].count(chr(10))}"


def matching(
    texts: Iterable[Text], pattern: Union[str, Pattern], counts: Callable[[Text, Match], bool]
) -> List[str]:
    """Place and words of each match that counts."""
    return [
        f"{place(text, match.start())}: {match[0]}"
        for text in texts
        for match in re.finditer(pattern, text.text)
        if counts(text, match)
    ]
