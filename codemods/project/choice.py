"""Decides which Keras version to target, and says why."""

from __future__ import annotations

from collections.abc import Iterable

from ..files.printable import quoted, visible
from ..model import FileError, KerasChoice
from . import installed
from .evidence import Evidence, Rank

__all__ = ["choose"]

_UNKNOWN = "no Keras version found in the project; pass --keras 2 or --keras 3 to choose one"
_SHOWN = 20


def choose(evidence: Iterable[Evidence]) -> KerasChoice:
    """Returns the target that the evidence decides, or else the installed TensorFlow.

    `TF_USE_LEGACY_KERAS` and imports of `tf_keras` come first, then version pins. If the evidence
    of one kind is contradictory, or if there is none at all, the result runs on both versions.
    """
    ordered = sorted(set(evidence), key=_order)
    for rank in Rank:
        found = [one for one in ordered if one.rank is rank]
        by_keras = [[one for one in found if one.keras == keras] for keras in (2, 3)]
        two, three = by_keras
        if two and three:
            reason = f"contradictory: {_place(two[0])}, but {_place(three[0])}"
            return KerasChoice(None, reason, (_conflict(two[0], three[0]),), _details(found))
        if found:
            return KerasChoice(found[0].keras, _place(found[0]), (), _details(found))
    beside = installed.installed_keras()
    return KerasChoice(None, _UNKNOWN) if beside is None else KerasChoice(*beside)


def _order(one: Evidence) -> tuple[int, str, int, str]:
    """Files near the top of the project come first."""
    return one.path.replace("\\", "/").count("/"), one.path, one.line, one.words


def _place(one: Evidence) -> str:
    return f"{visible(one.words)} in {quoted(one.path)}:{one.line}"


def _details(found: list[Evidence]) -> tuple[str, ...]:
    more = len(found) - _SHOWN
    shown = [f"Keras {one.keras}: {_place(one)}" for one in found[:_SHOWN]]
    return (*shown, f"and {more:,} more") if more > 0 else tuple(shown)


def _conflict(two: Evidence, three: Evidence) -> FileError:
    return FileError(
        two.path,
        two.line,
        f"{two.words} means Keras 2, but {_place(three)} means Keras 3; the result runs on both; "
        "pass --keras 2 or --keras 3 to choose one",
    )
