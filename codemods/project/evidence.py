"""The Keras version that follows from what a project says about it, or from what is installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Optional

from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES

from ..files.printable import quoted, visible
from ..model import FileError, KerasChoice
from .pins import TENSORFLOW, Evidence, keras_of

__all__ = ["choose", "version_of"]

_UNKNOWN = "no Keras version found in the project; pass --keras 2 or --keras 3 to choose one"
_SHOWN = 20


def choose(evidence: Iterable[Evidence]) -> KerasChoice:
    """Returns the target that the evidence decides, or else the installed TensorFlow.

    `TF_USE_LEGACY_KERAS` and imports of `tf_keras` come first, then version pins. If the evidence
    of one kind is contradictory, or if there is none at all, the result runs on both versions.
    """
    ordered = sorted(set(evidence), key=_order)
    for is_pin in (False, True):
        found = [one for one in ordered if one.is_pin is is_pin]
        two, three = ([one for one in found if one.keras == keras] for keras in (2, 3))
        if two and three:
            words = f"{two[0].words} means Keras 2, but {_place(three[0])} means Keras 3"
            more = "the result runs on both; pass --keras 2 or --keras 3 to choose one"
            warning = FileError(two[0].path, two[0].line, f"{words}; {more}")
            reason = f"contradictory: {_place(two[0])}, but {_place(three[0])}"
            return KerasChoice(None, reason, (warning,), _details(found))
        if found:
            return KerasChoice(found[0].keras, _place(found[0]), (), _details(found))
    beside = _installed_keras()
    return KerasChoice(None, _UNKNOWN) if beside is None else KerasChoice(*beside)


def _order(one: Evidence) -> tuple[int, str, int, str]:
    """The key for sorting: files near the top of the project come first."""
    return one.path.replace("\\", "/").count("/"), one.path, one.line, one.words


def _place(one: Evidence) -> str:
    return f"{visible(one.words)} in {quoted(one.path)}:{one.line}"


def _details(found: list[Evidence]) -> tuple[str, ...]:
    more = len(found) - _SHOWN
    shown = [f"Keras {one.keras}: {_place(one)}" for one in found[:_SHOWN]]
    return (*shown, f"and {more:,} more") if more > 0 else tuple(shown)


def version_of(package: str) -> Optional[str]:
    """The version of an installed distribution; None if it is not installed."""
    from importlib import metadata  # late: it takes longer to import than most of the command

    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None


def _installed_keras() -> Optional[tuple[int, str]]:
    """The Keras version of the installed TensorFlow and the reason; None without TensorFlow."""
    versions = {name: version_of(name) for name in TENSORFLOW}
    for name, version in versions.items():
        keras = keras_of("tensorflow", f"=={version}") if version else None
        if keras is None:
            continue
        words = f"{name} {version} is installed"
        value = os.environ.get(LEGACY_KERAS)
        if keras == 3 and value in LEGACY_KERAS_VALUES:
            return 2, f"{words}, and {LEGACY_KERAS}={value} is set in the environment"
        beside = version_of("keras")
        return keras, f"{name} {version} and keras {beside} are installed" if beside else words
    return None
