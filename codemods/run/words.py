"""What the words of a file show, for the other files of a run, before any of them is parsed.

Every file of a run is searched for this, so it must be much quicker than a parse. Words in comments
count, too: too many files are taken to import a module, rather than too few.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Iterator
from typing import Optional

__all__ = ["Words", "attributes_in", "imports_of", "stem_of", "words_in"]

# None of these patterns may backtrack: each part ends where the next one begins.
_NAME = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*|\.(?=[ \t]*import\b)")
_IMPORTING = [
    re.compile(mark + rb"(?:[^\n(#\\]+|\\(?:\r?\n)?|#[^\n]*|\((?:[^)#]+|#[^\n]*)*\)?)*")
    for mark in (b"import", rb"patch(?=\()")
]
"""An import of a module by a statement or by a string, up to the end of its line or brackets."""
_INIT = "__init__.py"
_HERE = b"."
_STATEMENT = re.compile(rb"(?:from\s+([\w.]+)\s+)?import(?:\s*\(\s*|\s+)([\w.,*][\w.,*\s]*)\)?\Z")
"""A plain import statement, without the white space around it."""
_ALIAS = re.compile(r"(?:\A|,)\s*([\w.*]+)")
_NO_CODE = re.compile(rb"#[^\n]*|\\\r?\n")
"""Comments and line continuations."""

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
_IMPORT_LINE = re.compile(rb"^[ \t]*(?:from|import)\b.*$", re.MULTILINE)
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
_VERSIONS = (
    b"__version__", b".VERSION", b"hasattr(tf", b"version('tensorflow", b'version("tensorflow',
)  # fmt: skip
_ASKS = rb"(?:TF_?VERSION|tf_?version|%b)" % b"|".join(map(re.escape, _VERSIONS))
_FLAG = re.compile(
    rb"^[ \t]*(?:def[ \t]+(\w+)|(?:\w+\.)?(\w[\w, \t]*)(?::[^=\n]*)?=(?!=)[^\n]*"
    rb"(?:[(\\,]\s*\n[^\n]*)?%b|(?:el)?if\b[^\n]*%b[^\n]*\n[ \t]+(\w+)[ \t]*=(?!=))"
    rb"|%b(?:[ \t]+as[ \t]+(\w+))?" % (_ASKS, _ASKS, _ASKS),
    re.MULTILINE,
)
"""A function, the names that are made of a version, or a version, perhaps in the last function."""
_TRIED = re.compile(
    rb"try:[ \t\r]*\n\s*(?:import\s+tensorflow\.|from\s+tensorflow\b)[^\n]*\n"
    rb"(?:\s*except[^\n]*\n)?\s*(\w+)[ \t]*=(?!=)"
)
"""A name that is bound because an import of TensorFlow fails, or does not."""


class Words:
    """Collects what the search of a run sees in each file."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        """The files that import modules by computed names."""
        self.makers: set[str] = set()
        """The files that mention what makes a Keras loss-scale optimizer."""
        self.flags: set[bytes] = set()
        """The names that a file may make of the version of TensorFlow."""
        self._compiles = self._loads = self._sets_policy = False
        self._files: list[str] = []
        self._lines: list[bytes] = []
        self._with: dict[bytes, list[int]] = {}
        self._indexed = 0

    def add(self, file: str, source: bytes) -> None:
        """Adds a Python file or a notebook, given by its absolute path."""
        # The words are needed only if a file of the run has a legacy name, which few runs know yet.
        lines = b"\n".join(_lines(source))
        if lines:
            self._files.append(file)
            self._lines.append(lines)
        if any(word in source for word in _MAKERS):
            self.makers.add(file)
        if any(word in source for word in _IMPORTERS) and _COMPUTED.search(source):
            self.computed.append(file)
        if b"tensorflow" in source:
            self.flags.update(_TRIED.findall(source))
        if b"tensorflow" in source and any(version in source for version in _VERSIONS):
            function = b""
            for found in _FLAG.finditer(source):
                function = found[1] or function
                names = [function, *filter(None, found.groups()[1:])] if not found[1] else []
                self.flags.update(_WORD.findall(b" ".join(names)))
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

    def importers(self, module: str) -> list[tuple[str, bytes]]:
        """The files that may import the module in the file `module`, with their imports, in order.

        What is imported is not read again from the files, which can have many imports.
        """
        for number in range(self._indexed, len(self._files)):
            for word in set(_NAME.findall(self._lines[number])):
                self._with.setdefault(word, []).append(number)
        self._indexed = len(self._files)
        numbers = set(self._with.get(os.fsencode(stem_of(module)), ()))
        directory, name = os.path.split(module)
        if name == _INIT:  # `from . import name`
            below = directory + os.sep
            here = self._with.get(_HERE, ())
            numbers.update(one for one in here if self._files[one].startswith(below))
        found = [(self._files[number], self._lines[number]) for number in sorted(numbers)]
        return [(file, lines) for file, lines in found if file != module]


def imports_of(module: str, lines: bytes) -> Optional[set[tuple[str, str]]]:
    """What import statements may import of the module; None if that is not certain.

    Each is the path that may be the module, and the name that is imported from it; the name is
    empty if a statement binds the module, or a package around it, and `*` for a star import. For a
    module `models`, `from pkg.models import layer` gives `("pkg.models", "layer")`, and
    `import a.models.b` gives `("a.models", "")`.
    """
    return _imports_of(stem_of(module), os.path.basename(module) == _INIT, lines)


@functools.lru_cache(maxsize=None)  # a repository can have hundreds of modules called `utils`
def _imports_of(word: str, is_package: bool, lines: bytes) -> Optional[set[tuple[str, str]]]:
    found: set[tuple[str, str]] = set()
    for line in _lines(lines):
        words = _NAME.findall(line)
        if os.fsencode(word) not in words and not (is_package and _HERE in words):
            continue
        code = _NO_CODE.sub(b" ", line).strip()
        statement = _STATEMENT.match(code)
        if statement is None:
            if code:
                return None
            continue
        above = (statement[1] or b"").decode()
        for name in _ALIAS.findall(statement[2].decode()):
            if is_package and above and not above.strip("."):
                found.add((above, name))
            path = f"{above}{'' if above.endswith('.') else '.'}{name}" if above else name
            parts = path.split(".")
            for place, part in enumerate(parts):
                if part == word:
                    # An `import` binds the first package, from which any name can be read.
                    rest = parts[place + 1] if above and place + 1 < len(parts) else ""
                    found.add((".".join(parts[: place + 1]), rest))
    return found


def _lines(source: bytes) -> Iterator[bytes]:
    """The lines with an import, each with those that it continues or that continue it."""
    for found in itertools.chain(*(pattern.finditer(source) for pattern in _IMPORTING)):
        start = source.rfind(b"\n", 0, found.start()) + 1
        while source.endswith((b"\\\n", b"\\\r\n"), 0, start):
            start = source.rfind(b"\n", 0, start - 1) + 1
        yield source[start : found.end()]


def stem_of(file: str) -> str:
    """The last part of the path of the module in `file`: the name of its file or package."""
    directory, name = os.path.split(file)
    return os.path.basename(directory) if name == _INIT else os.path.splitext(name)[0]


def words_in(source: bytes) -> list[bytes]:
    """Every name in a file."""
    return _WORD.findall(source)


def attributes_in(source: bytes) -> list[bytes]:
    """The attributes that are read in a file, but for those of TensorFlow and the shim."""
    code = _IMPORT_LINE.sub(b"", source)
    for imported, bound, chains in _OWN_NAMES.values():
        if len(imported.findall(source)) == len(bound.findall(source)) > 0:
            code = chains.sub(b"", code)
    return _ATTRIBUTE.findall(code)
