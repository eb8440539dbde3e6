"""The files that say what is installed where a program runs; none of them is edited."""

from __future__ import annotations

import os
import re

from .pins import has_pins

__all__ = ["Requirements", "is_requirements_file"]

_IMAGE = re.compile(r"(?:Docker|Container)file(?:\..*)?|.*\.[Dd]ockerfile")
_NAME = re.compile(rb"^[^#\n]*\btf[-_.]lossscale\b", re.IGNORECASE | re.MULTILINE)
_SETTINGS = re.compile(rb"^[ \t]*\[[ \t]*tool[ \t]*\.[^\n]*$", re.MULTILINE)
_PROJECT = "pyproject.toml"
_INSTALLING = (b"[project]", b"dependencies", b"requires")
"""One of them is in a pyproject.toml that says what is installed; others only have settings."""
_LOCKS = (".lock", "pylock.toml", "conda-lock.yml")


def is_requirements_file(path: str) -> bool:
    """Whether somebody lists packages in a file with this name; lock files are made by programs."""
    name = os.path.basename(path)
    return bool(_IMAGE.fullmatch(name)) or (has_pins(path) and not name.endswith(_LOCKS))


class Requirements:
    """These files of a run.

    Attributes:
      files: their paths, as reports show them.
      have_shim: whether one of them names `tf-lossscale`.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.have_shim = False

    def add(self, path: str, data: bytes) -> None:
        """Adds a file, which need not be one of them."""
        if os.path.basename(path) == _PROJECT and not any(word in data for word in _INSTALLING):
            return
        if is_requirements_file(path):
            self.files.append(path)
            self.have_shim |= _NAME.search(_SETTINGS.sub(b"", data)) is not None
