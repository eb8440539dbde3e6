"""The modules that the configuration of a project makes other programs load.

They are the entry points of a package, in `setup.cfg` and `pyproject.toml`, and the plugins that
the options of pytest name. What loads them is in no file of the run, so the configuration itself
counts as the file that imports them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..facts import Links

__all__ = ["has_entry_points", "links_of_configuration", "links_to", "objects_named"]

_FILES = ("entry_points.txt", "pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini")
_LISTING = ("entry", "plugins", "scripts")
"""Words in the headers of sections that list entry points."""
_PLUGIN = "-p"
"""The option of pytest before the name of a plugin."""
_MARKS = str.maketrans(dict.fromkeys("\"'[](){},", " "))


def has_entry_points(path: str) -> bool:
    """Whether a file can name entry points or plugins, by its name."""
    return os.path.basename(path) in _FILES


def links_of_configuration(text: str) -> Links:
    """The modules that a configuration names, and what it names in them."""
    return links_to(found for line in _with_sections(text) for found in _named_in(*line))


def links_to(found: Iterator[tuple[str, str]]) -> Links:
    """The links of a file that reads names from modules; the name of a whole module is empty."""
    reads: dict[str, set[str]] = {}
    for module, name in found:
        reads.setdefault(module, set()).update([name] if name else [])
    return Links(
        frozenset(reads), {module: frozenset(names) for module, names in reads.items() if names}
    )


def objects_named(text: str, is_module: bool = True) -> Iterator[tuple[str, str]]:
    """The module and the name in a text such as `pkg.amp:wrap`, or `pkg.amp` if that counts."""
    path, colon, attribute = text.partition("[")[0].partition(":")
    module, name = path.strip(), attribute.strip().partition(".")[0]
    is_path = all(part.isidentifier() for part in module.split("."))
    if is_path and (name.isidentifier() if colon else is_module):
        yield module, name


def _with_sections(text: str) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is in a section that lists entry points."""
    is_listing = False
    for line in text.splitlines():
        stripped = line.strip()
        if line.startswith("["):
            is_listing = any(word in line for word in _LISTING)
        elif stripped and not stripped.startswith(("#", ";")):
            yield stripped, is_listing


def _named_in(line: str, is_listing: bool) -> Iterator[tuple[str, str]]:
    """What a line names: entry points after `=` or between quotes, and plugins after `-p`."""
    values = line.replace("'", '"').split('"')[1::2] or [line.rpartition("=")[2]]
    for value in values:
        yield from objects_named(value, is_listing)
    words = line.translate(_MARKS).split()
    for word, following in zip(words, [*words[1:], ""]):
        if word.startswith(_PLUGIN):
            yield from objects_named(word[len(_PLUGIN) :] or following)
