"""Finds the legacy paths in texts: in strings, and in configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

from ...facts import SINGLE_FILE
from ...resolve import legacy_symbols
from ...resolve.vocabulary import MODULE, PATH_WORDS, TPU
from ..rule import Decision, Options

__all__ = ["LegacyPath", "LegacyPaths"]

_FULL = {
    "tf": "tensorflow",
    "contrib": "tensorflow.contrib",
    MODULE: f"tensorflow.keras.{MODULE}",
}
"""How a path can begin in a string, as in `operator.attrgetter("contrib.tpu...")`, in full."""
_PATH_IN_TEXT = re.compile(
    r"(?:(?<!\w)(\w+) +)?(?<![\w./])"
    rf"((?:tensorflow|tensorflow_core|tf|keras|tf_keras|contrib|{MODULE})(?:\.\w+)+)"
    r"(?: +(\w+))?"
)
"""A path, with the words before and after it."""
_DEEPEST = 12
"""Names of a path; a path of a private module has seven."""
_OF_CODE = ("", "as", "assert", "else", "for", "from", "if", "import", "in", "return", "with")
"""Words that stand beside a path in code; others make it a part of a sentence."""
_WORDS = (*sorted(PATH_WORDS), TPU)
"""One of them is in every legacy path that is reported."""


class LegacyPath(NamedTuple):
    """A legacy path in a text.

    Attributes:
      written: how it is written there.
      path: its full path.
      start: where it begins.
    """

    written: str
    path: str
    start: int = 0

    @property
    def symbol(self) -> str:
        """The last name of the path."""
        return self.written.rpartition(".")[2]

    @property
    def twin(self) -> str:
        """The path in the shim, which begins as the path in the text does."""
        path = legacy_symbols.twin_of(self.path)
        return legacy_symbols.shown_path(path) if self.written.startswith("tf.") else path


class LegacyPaths:
    """The paths that a run rewrites in code, but not in a text.

    Args:
      options: the options of the run.
      decision: what is decided about the file that has the texts.
    """

    def __init__(self, options: Options, decision: Decision = SINGLE_FILE) -> None:
        self._options = options
        self._decision = decision

    def has(self, path: str, is_whole: bool = True) -> bool:
        """Whether a path is one of them; `is_whole` says whether it is all of a path in a text."""
        legacy = legacy_symbols.legacy_of(path)
        if legacy is not None:
            return legacy.is_renamed(self._options, self._decision) or legacy.never_existed
        module = legacy_symbols.namespace_of(path)
        if module is None or module.is_final or legacy_symbols.is_of_shim(path):
            return False
        return is_whole or MODULE in module.name

    def in_text(self, text: str) -> Iterator[LegacyPath]:
        """The legacy paths in a text that do not stand in a sentence."""
        for match in _PATH_IN_TEXT.finditer(text):
            before, written, after = (part or "" for part in match.groups())
            if before not in _OF_CODE or after not in _OF_CODE:
                continue
            found = self._first_in(written)
            if found is not None:
                yield found._replace(start=match.start(2))

    @staticmethod
    def may_be_in(text: str) -> bool:
        """Whether a text may have a legacy path: a test that takes little time."""
        return any(word in text for word in _WORDS)

    def _first_in(self, written: str) -> Optional[LegacyPath]:
        """The first part of a path that is a legacy symbol, or else a module with what follows."""
        first, *names = written.split(".", _DEEPEST)[:_DEEPEST]
        path = _FULL.get(first, first)
        module: Optional[LegacyPath] = None
        for index, name in enumerate(names, 1):
            path = f"{path}.{name}"
            if not self.has(path, index == len(names)):
                continue
            if legacy_symbols.legacy_of(path) is not None:
                return LegacyPath(".".join([first, *names[:index]]), path)
            if module is None:
                module = LegacyPath(".".join([first, *names]), path)
        return module
