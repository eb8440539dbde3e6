"""What the files of a run show about each other by their words, before any of them is parsed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Callable

from ..model import Surroundings
from .import_words import ImportWords, imports_of

if TYPE_CHECKING:  # it imports LibCST, which takes longer than most searches
    from .modules import Modules

__all__ = ["Words"]

_MAKERS = (b"LossScaleOptimizer", b"mixed_precision_graph_rewrite", b"from_loss_scale")
# Patterns that begin with plain bytes are searched for many times faster.
_COMPILES = re.compile(rb"\.compile(?<!\bre\.compile)(?<!\bregex\.compile)\s*\(")
_LOADS = re.compile(rb"load_model(?<!\wload_model)\b")
_KERAS = (b"keras", b"models.load_model")
"""What a file contains in which `load_model` is not only a function of the project."""
_POLICIES = (b"set_policy", b"set_global_policy", b"set_dtype_policy", b"mixed_float16")
"""What sets a policy under which `compile` wraps optimizers."""
_IMPORTERS = (b"import_module", b"__import__")
_COMPUTED = re.compile(rb"(?:import_module|__import__)\s*\(\s*(?![\s'\"])")
_ATTRIBUTE = re.compile(rb"\.\s*([A-Za-z_]\w*)")
_STATEMENT = re.compile(rb"^[ \t]*(?:from|import)\b.*$", re.MULTILINE)
_OWN_NAMES = {
    name: (
        re.compile(rb"\bimport " + module + rb" as " + name + rb"\b"),
        re.compile(rb"\bas " + name + rb"\b|\b" + name + rb"[ \t]*=[^=]"),
        re.compile(rb"(?<![\w.])" + name + rb"(?:\s*\.\s*\w+)+"),
    )
    for name, module in (
        (b"tf", rb"tensorflow(?:\.compat\.v[12])?"),
        (b"tfls", rb"tf_lossscale"),
    )
}
"""For the usual names of TensorFlow and the shim: their import, any binding, and their chains."""
_WORD = re.compile(rb"[A-Za-z_]\w*")
_TYPE = re.compile(rb"\btype\s*\(|\.__class__\b")
_TEST = re.compile(rb"\bis(?:instance|subclass)\s*\(")
_PACKAGE = "__init__.py"
_NEAR = 100
"""Bytes around a test of a class in which its name stands."""
_RENAMED = re.compile(rb"\b([A-Za-z_]\w*)\s+as\s+([A-Za-z_]\w*)")


class Words:
    """Collects what the search of a run sees in each file.

    Attributes:
      imports: the words of the import statements of all files.
      computed: the files that import modules by computed names.
    """

    def __init__(self) -> None:
        self.imports = ImportWords()
        self.computed: list[str] = []
        self._makers: set[str] = set()
        self._compiles = self._loads = self._sets_policy = False

    def add(self, file: str, source: bytes) -> None:
        """Adds a file, given by its absolute path."""
        self.imports.add(file, source)
        if any(word in source for word in _MAKERS):
            self._makers.add(file)
        if any(word in source for word in _IMPORTERS) and _COMPUTED.search(source):
            self.computed.append(file)
        if not self._loads:
            is_keras = b"load_model" in source and any(word in source for word in _KERAS)
            self._loads = is_keras and bool(_LOADS.search(source))
        if not self._compiles:
            self._compiles = b".compile" in source and bool(_COMPILES.search(source))
        if not self._sets_policy:
            self._sets_policy = any(word in source for word in _POLICIES)

    @property
    def compiles(self) -> bool:
        """Whether a file may make or wrap an optimizer by `compile` or `load_model`."""
        return self._loads or (self._compiles and self._sets_policy)

    def around(self, file: str, modules: Modules, read: Callable[[str], bytes]) -> Surroundings:
        """What the other files show about one; `read` returns the bytes of a file."""
        reads: set[bytes] = set()
        compared: set[bytes] = set()
        tested: set[bytes] = set()
        modules_read = [file]  # the file, and the packages that pass on what they import from it
        for module in modules_read:
            for importer in self.imports.importers(module):
                source = read(importer)
                names = set(_names_read(module, importer, source, modules))
                if module == file:
                    reads |= names
                    if os.path.basename(importer) == _PACKAGE:
                        modules_read.append(importer)
                compared |= names & reads & _words_near(_TYPE, source)
                tested |= names & reads & _words_near(_TEST, source)
        return Surroundings(
            makes_optimizers=bool(self._makers - {file}),
            compiles=self.compiles,
            reads=_texts(reads),
            compared=_texts(compared),
            tested=_texts(tested),
        )


def _words_near(pattern: re.Pattern[bytes], source: bytes) -> set[bytes]:
    """The words around each match, also under the names that they were imported by."""
    found = pattern.finditer(source)
    near = (source[max(0, one.start() - _NEAR) : one.end() + _NEAR] for one in found)
    words = {word for text in near for word in _WORD.findall(text)}
    return words | {name for name, local in _RENAMED.findall(source) if local in words}


def _texts(words: Iterable[bytes]) -> frozenset[str]:
    return frozenset(word.decode("utf-8", "replace") for word in words)


def _names_read(module: str, importer: str, source: bytes, modules: Modules) -> Iterable[bytes]:
    """The names that a file may read from a module of the run: rather too many than too few."""
    imported = imports_of(module, source)
    if imported is None:
        return _WORD.findall(source)
    found: set[bytes] = set()
    for path, name in imported:
        if modules.find(path, importer) not in (None, module):
            continue
        if name == "*":
            return _WORD.findall(source)
        found.update([name.encode()] if name else _attributes(source))
    return found


def _attributes(source: bytes) -> list[bytes]:
    """The attributes that are read in a file, but for those of TensorFlow and the shim."""
    code = _STATEMENT.sub(b"", source)
    for imported, bound, chains in _OWN_NAMES.values():
        if len(imported.findall(source)) == len(bound.findall(source)) > 0:
            code = chains.sub(b"", code)
    return _ATTRIBUTE.findall(code)
