"""Finds the files that need no parse, by searching their bytes for legacy names.

In repositories that use these classes, 3.9% of the files contain one of the words below. Searching
a file takes microseconds; parsing takes up to a tenth of a second.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import BinaryIO

from ..facts import Trait
from ..resolve.vocabulary import (
    APPLYING,
    CROSS_SHARD,
    DISTINCTIVE,
    MODULE,
    PARTS,
    PATH_WORDS,
    RESTORING,
    SCALING,
    STEP_AND_STATE,
    TPU,
    code_words,
)
from .python_tree import PythonSource

__all__ = [
    "is_in_code",
    "may_concern",
    "may_concern_in",
    "may_name_path",
    "may_refer",
    "traits_hinted",
    "uses_other_contrib",
    "without_images",
]

_WHOLE = tuple(word.encode() for word in sorted({MODULE, *CROSS_SHARD}))
"""Words that mean nothing as a part of a longer name, such as `use_mixed_precision`."""

_SUPPRESSION = b"lossscale:"
_SUPPRESSION_IN_DATA = re.compile(rb"#[ \t]*lossscale:[ \t]*ignore", re.IGNORECASE)
_LOSS_SCALE = b"loss_scale"
"""An attribute of optimizers, which alone is too common to be a legacy name."""
_PARTS = (
    *(word.encode() for word in sorted(PARTS)),
    b"loss_scale:0",
    b".loss_scale()",
    b".Policy(",
    b"mixed_float16",
    b"mixed_bfloat16",
    _SUPPRESSION,
)
"""Words that can be parts of a name.

A file in which a rule can find something contains one of these or those above (checked by a test).
Those of policies are for names that another file of the run re-exports (`compat.set_policy`). The
last one is for suppression comments, which are reported if they silence nothing.
"""

_STEMS = (
    b"mixed_", b"LossScale", b"oss_scale", b"scaled_", b"_policy", b".Policy(", b"lossscale:",
    *sorted(word.encode() for word in CROSS_SHARD),
)  # fmt: skip
"""Each word above contains one of these (checked by a test)."""

_WHOLE_NAMES = re.compile(
    rb"(?:(?<![\w\x80-\xff])|(?<=\\[a-z])|(?<=\\u[\da-fA-F]{4}))(?:%s)(?![\w\x80-\xff])"
    % b"|".join(_WHOLE)
)
"""The whole words, also after an escape in a string: `"\\nmixed_precision"` in a notebook."""


_IMAGE = b'"image/png": "'
"""The key of an image in a notebook, and the quote of its text. In a text, quotes are escaped."""
_LEAST_IMAGE = 1024
"""Bytes of an image that are worth leaving out; with less, the parts could take much memory."""


def without_images(notebook: bytes) -> bytes:
    """A notebook in which the images that it has shown are empty; it remains valid JSON.

    They are half of the bytes of public notebooks, and each search would go through them.
    """
    parts = []
    start, at = 0, notebook.find(_IMAGE)
    while at >= 0:
        begin = at + len(_IMAGE)
        end = notebook.find(b'"', begin)
        if end - begin >= _LEAST_IMAGE and notebook[end - 1 : end] != b"\\":
            parts.append(notebook[start:begin])
            start = end
        at = notebook.find(_IMAGE, begin)
    return b"".join([*parts, notebook[start:]])


def may_concern(source: bytes) -> bool:
    """Whether any rule could apply to `source`."""
    if not any(word in source for word in _STEMS):  # nearly all files
        return False
    if any(word in source for word in _PARTS):
        return True
    return any(word in source for word in _WHOLE) and bool(_WHOLE_NAMES.search(source))


def is_in_code(source: PythonSource) -> bool:
    """Whether a word of a source is in its code, rather than in a comment or a docstring.

    What Python's own parser cannot parse counts as code.

    Args:
      source: a source for which `may_concern` holds.
    """
    if source.nodes is None or _SUPPRESSION in source.data:
        return True
    code = "\n".join(set(code_words(source.nodes.all()))).encode("utf-8", "surrogatepass")
    return _LOSS_SCALE in code or may_concern(code)


_PART = 1024 * 1024
_OVERLAP = max(map(len, (*_WHOLE, *_PARTS))) - 1


def may_concern_in(file: BinaryIO) -> bool:
    """Like `may_concern`, for a file that is too large to be held in memory."""
    end = b""
    while True:
        part = file.read(_PART)
        if may_concern(end + part):
            return True
        if not part:
            return False
        end = part[-_OVERLAP:]


class _Hint:
    """What a file without a parse may have: one of some attributes, or of some other words.

    Args:
      attributes: names that count after a dot.
      words: words that count anywhere; of a tuple of words, all must be there.
    """

    def __init__(
        self, attributes: Iterable[str] = (), words: Iterable[bytes | tuple[bytes, ...]] = ()
    ) -> None:
        self._names = [name.encode() for name in attributes]
        self._words = [word if isinstance(word, tuple) else (word,) for word in words]
        self._words += [(b"." + name,) for name in self._names]
        # Whatever stands behind a comment or a backslash is not read.
        self._apart = re.compile(rb"\.(?:[ \t]*[#\\]|\s+(?:%s))" % b"|".join(self._names))

    def is_in(self, source: bytes) -> bool:
        """Whether a source has one of them."""
        if any(all(word in source for word in words) for words in self._words):
            return True
        return any(name in source for name in self._names) and bool(self._apart.search(source))


_READS_BY_NAME = (b"getattr", b"attrgetter", b"methodcaller")
"""Functions that read attributes by their names, which may be computed."""
_DICTIONARIES = (b"getmembers", b"vars", b"__dict__")
_PATTERN = b"case"
_HINTS = {
    Trait.COMPILE: _Hint(["compile"], [b"'compile", b'"compile', (_PATTERN, b"compile")]),
    Trait.LOAD: _Hint(words=[b"load_model"]),
    Trait.RESTORE: _Hint(
        words=[
            *(name.encode() for name in RESTORING),
            (b"restore", b"ckpt"),
            (b"restore", b"Checkpoint"),
        ]
    ),
    Trait.LOOP: _Hint(APPLYING),
    Trait.APPLIES: _Hint(
        APPLYING,
        [*_READS_BY_NAME, *((_PATTERN, name.encode()) for name in APPLYING)],
    ),
    Trait.HANDED_ON: _Hint(words=[b"optimizer", *_READS_BY_NAME, *_DICTIONARIES]),
    Trait.STEP: _Hint(STEP_AND_STATE),
    Trait.TF_KERAS: _Hint(words=[b"tf_keras"]),
}  # fmt: skip
"""What a file must contain to have a trait."""


def traits_hinted(source: bytes, known: Collection[Trait]) -> set[Trait]:
    """The traits that a source may have, but for those that are known.

    Whatever its parse finds is among them (checked by a test), so that a decision that is the same
    with and without them is also the same with the traits that the parse finds.
    """
    return {trait for trait, hint in _HINTS.items() if trait not in known and hint.is_in(source)}


_IN_PATHS = tuple(word.encode() for word in (*sorted(PATH_WORDS), f"contrib.{TPU}"))
_PATH_ROOTS = (b"tensorflow.", b"tf.", b"keras.", b"contrib.")


def may_name_path(data: bytes) -> bool:
    """Whether a file that is not Python may name a legacy path: text with one of its words.

    Or whether it has a suppression comment, which is reported if it silences nothing.
    """
    has_word = any(word in data for word in _IN_PATHS)
    may_name = has_word and any(root in data for root in _PATH_ROOTS)
    return (may_name or bool(_SUPPRESSION_IN_DATA.search(data))) and b"\0" not in data


_TENSORFLOW = re.compile(rb"tensorflow|keras|\btf|\bfrom\s+\.", re.IGNORECASE)
_LEGACY = re.compile(
    rb"\b(?:LossScale|"
    + "|".join(sorted(DISTINCTIVE | {*SCALING})).encode()
    + rb")\b|\b(?:keras|contrib|train|v1|v2)\s*\.\s*mixed_precision\b|\bmixed_precision\s*\."
)
_IMPORT = re.compile(rb"\bimport\b")
_MODULE = re.compile(rb"\bmixed_precision\b")


def may_refer(source: bytes) -> bool:
    """Whether a source that cannot be parsed may use a legacy name of TensorFlow.

    That is, it mentions TensorFlow or imports from its own package, and it mentions a legacy name
    or module. In doubt, it does: comments and strings count, too.
    """
    if not _TENSORFLOW.search(source):
        return False
    return bool(_LEGACY.search(source)) or _imports_module(source)


def _imports_module(source: bytes) -> bool:
    """Whether the module stands behind `import` in a line.

    One expression for both would search the rest of a line again from each `import` in it.
    """
    module = _MODULE.search(source)
    while module is not None:
        start = source.rfind(b"\n", 0, module.start()) + 1
        end = source.find(b"\n", module.end())
        end = len(source) if end < 0 else end
        first = _IMPORT.search(source, start, end)
        if first is not None and _MODULE.search(source, first.end(), end):
            return True
        module = _MODULE.search(source, end)
    return False


_CONTRIB = b".contrib"
_OTHER = re.compile(
    rb"(?:(?<![\w.])|(?<=\\n))(?:tf|tensorflow)\.contrib\b"
    rb"(?![\w.]*(?:\.|\s+import\s+(?:\(\s*)?)"
    rb"(?:mixed_precision|CrossShardOptimizer|cross_replica_sum|tpu_optimizer|tpu_ops)\b)"
)
"""Matches a use. Below `.contrib`, the names that rules migrate do not count."""
_ROOTS = (b"tf", b"tensorflow")


def uses_other_contrib(source: bytes) -> bool:
    """Whether a source uses `tf.contrib` for something else than the symbols of the rules.

    Comments do not count, but strings do. Aliases such as `from tensorflow import contrib` do not.
    """
    checked, is_comment = 0, False
    at = source.find(_CONTRIB)
    while at >= 0:
        start = source.rfind(b"\n", checked, at) + 1
        if start:
            checked, is_comment = start, False
        is_comment = is_comment or source.find(b"#", checked, at) >= 0
        begins = (at - len(root) for root in _ROOTS if source.endswith(root, 0, at))
        if not is_comment and any(_OTHER.match(source, begin) for begin in begins):
            return True
        checked = at + len(_CONTRIB)
        at = source.find(_CONTRIB, checked)
    return False
