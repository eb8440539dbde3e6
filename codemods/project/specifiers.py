"""Version specifiers of pip, Poetry and conda: which Keras API the allowed versions have.

The `packaging` library is not used, because it reads neither Poetry's `^2.10` nor conda's `=2.10`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Optional

from tf_lossscale._versions.releases import FIRST_WITH_KERAS_3, LAST_WITH_KERAS_2

__all__ = ["PACKAGES", "keras_of", "normalized"]

PACKAGES = {
    **dict.fromkeys(
        (
            "tensorflow",
            "tensorflow-cpu",
            "tensorflow-gpu",
            "tensorflow-intel",
            "tensorflow-macos",
            "tf-nightly",
            "tf-nightly-cpu",
            "tf-nightly-gpu",
        ),
        "tensorflow",
    ),
    "keras": "keras",
    "tf-keras": "tf-keras",
}
"""The distributions that decide, each with the one whose version numbers it has."""

_LONGEST = 200
_CLAUSE = re.compile(
    r"(===|==|~=|!=|<=|>=|<|>|=|\^|~|)\s*v?(?:\d+!)?(\d+(?:\.\d+)*)"
    r"(\.?\*)?(?:[-_.+a-zA-Z][-\w.+]*)?\Z"
)
_Version = tuple[int, ...]


def normalized(name: str) -> str:
    """The name of a distribution as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@lru_cache(maxsize=1024)
def keras_of(package: str, specifier: str) -> Optional[int]:
    """The Keras version, 2 or 3, that all allowed versions have.

    Returns:
      None if the allowed versions include both, or if the specifier cannot be read. Every version
      of tf-keras is Keras 2.

    >>> keras_of("tensorflow", ">=2.4,<2.16"), keras_of("keras", "^3.1")
    (2, 3)
    >>> keras_of("tensorflow", ">=2.4")
    """
    family = PACKAGES.get(normalized(package))
    if family is None or len(specifier) > _LONGEST:
        return None
    if family == "tf-keras":
        return 2
    try:
        alternatives = [_clauses(one) for one in re.split(r"\|\|?", specifier)]
    except ValueError:
        return None
    named = [version for clauses in alternatives for _, version, _ in clauses]
    allowed = {
        keras
        for keras, version in itertools.chain(_releases(family), _named(family, named))
        for clauses in alternatives
        if all(_admits(*clause, version) for clause in clauses)
    }
    return allowed.pop() if len(allowed) == 1 else None


def _clauses(text: str) -> list[tuple[str, _Version, bool]]:
    """The operator, the version, and whether it ends in `.*`, for each clause.

    Raises:
      ValueError: if a clause cannot be read.
    """
    clauses = []
    for part in re.split(r"[,\s]+(?![\d.]|v\d)", text.strip().strip("()").strip()):
        if part in ("", "*"):
            continue
        match = _CLAUSE.match(part)
        if match is None:
            raise ValueError(part)
        clauses.append((match[1], _version(match[2]), bool(match[3]) or match[1] == "="))
    return clauses


def _version(text: str) -> _Version:
    parts = text.split(".")[:3]
    if any(len(part) > 9 for part in parts):
        raise ValueError(text)
    return tuple(map(int, parts))


def _releases(family: str) -> Iterator[tuple[int, _Version]]:
    """Versions on both sides: all that exist, and more that may follow."""
    last, first = LAST_WITH_KERAS_2[family], FIRST_WITH_KERAS_3[family]
    for version in itertools.product(range(last[0] + 1), range(21), range(10)):
        if version <= last:
            yield 2, version
    for version in itertools.product(range(first[0], first[0] + 4), range(60), (0, 1, 2)):
        if version >= first:
            yield 3, version


def _named(family: str, versions: list[_Version]) -> Iterator[tuple[int, _Version]]:
    """The versions that the specifier itself names."""
    for version in versions:
        full = _padded(version)
        yield (3 if full >= FIRST_WITH_KERAS_3[family] else 2), full


def _padded(version: _Version) -> _Version:
    return (*version, 0, 0)[:3]


def _admits(operator: str, version: _Version, is_prefix: bool, candidate: _Version) -> bool:
    full = _padded(version)
    if operator in ("", "=", "==", "===", "!="):
        same = candidate[: len(version)] == version if is_prefix else candidate == full
        return same != (operator == "!=")
    if operator == "~=":
        return candidate >= full and candidate[: max(len(version) - 1, 1)] == version[:-1]
    if operator == "^":
        kept = next((i for i, part in enumerate(version) if part), len(version) - 1) + 1
        return candidate >= full and candidate[:kept] == version[:kept]
    if operator == "~":
        kept = min(len(version), 2)
        return candidate >= full and candidate[:kept] == version[:kept]
    if operator == "<":
        return candidate < full
    if operator == "<=":
        return candidate <= full
    return candidate > full if operator == ">" else candidate >= full
