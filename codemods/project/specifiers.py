"""Version specifiers of pip, Poetry and conda: which Keras API the allowed versions have.

The `packaging` library is not used, because it reads neither Poetry's `^2.10` nor conda's `=2.10`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Optional

from tf_lossscale._versions.releases import FIRST_WITH_KERAS_3, LAST_WITH_KERAS_2

__all__ = ["PACKAGES", "keras_of", "normalized"]

_TENSORFLOW = (
    *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-macos"),
    *("tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
)
PACKAGES = {
    **dict.fromkeys(_TENSORFLOW, "tensorflow"),
    "keras": "keras",
    "tf-keras": "tf-keras",
}
"""The distributions that decide, each with the one whose version numbers it has."""

_LONGEST = 200
_LAST = (10**9,)
"""After every version: a part of a version that is read has at most nine digits."""
_CLAUSE = re.compile(
    r"(===|==|~=|!=|<=|>=|<|>|=|\^|~|)\s*v?(?:\d+!)?(\d+(?:\.\d+)*)(?!\.?\d)"
    r"(\.?\*)?(?:[-_.+a-zA-Z][-\w.+]*)?\Z"
)
_Version = tuple[int, ...]


class _Clause(NamedTuple):
    """One comparison with a version.

    Attributes:
      operator: as it is written; may be empty.
      version: one to three numbers.
      interval: the first version that it admits, or excludes, and the first one after them.
    """

    operator: str
    version: _Version
    interval: tuple[_Version, _Version]


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
    # Versions that the specifier itself names count as releases, too.
    named = [_padded(clause.version) for clauses in alternatives for clause in clauses]
    first = FIRST_WITH_KERAS_3[family]
    keras = {
        3 if release >= first else 2
        for release in (*_releases(family), *named)
        if any(_admit(clauses, release) for clauses in alternatives)
    }
    return keras.pop() if len(keras) == 1 else None


def _clauses(text: str) -> list[_Clause]:
    """Splits one alternative of a specifier into its clauses.

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
        is_prefix = bool(match[3]) or match[1] == "="
        version = _version(match[2])
        clauses.append(_Clause(match[1], version, _interval(match[1], version, is_prefix)))
    return clauses


def _version(text: str) -> _Version:
    parts = text.split(".")[:3]
    if any(len(part) > 9 for part in parts):
        raise ValueError(text)
    return tuple(map(int, parts))


def _admit(clauses: Sequence[_Clause], release: _Version) -> bool:
    """Whether all clauses admit a release."""
    for clause in clauses:
        low, high = clause.interval
        if (low <= release < high) == (clause.operator == "!="):
            return False
    return True


@lru_cache(maxsize=None)
def _releases(family: str) -> list[_Version]:
    """All versions that exist, and more that may follow."""
    last, first = LAST_WITH_KERAS_2[family], FIRST_WITH_KERAS_3[family]
    old = itertools.product(range(last[0] + 1), range(21), range(10))
    new = itertools.product(range(first[0], first[0] + 4), range(60), (0, 1, 2))
    return [*(one for one in old if one <= last), *(one for one in new if one >= first)]


def _padded(version: _Version) -> _Version:
    return (*version, 0, 0)[:3]


def _interval(operator: str, version: _Version, is_prefix: bool) -> tuple[_Version, _Version]:
    full = _padded(version)
    if operator in ("", "=", "==", "===", "!="):
        return full, _after(version if is_prefix else full)
    if operator == "~=":
        return full, _after(version[:-1]) if len(version) > 1 else full
    if operator == "^":
        kept = next((i for i, part in enumerate(version) if part), len(version) - 1) + 1
        return full, _after(version[:kept])
    if operator == "~":
        return full, _after(version[:2])
    if operator == "<":
        return (0,), full
    if operator == "<=":
        return (0,), _after(full)
    return (_after(full) if operator == ">" else full), _LAST


def _after(version: _Version) -> _Version:
    """The first version after all that begin with the numbers of `version`."""
    return (*version[:-1], version[-1] + 1)
