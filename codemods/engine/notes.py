"""Says why nothing is edited, and why symbols go to the shim: once, at the first such place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..facts import Decision, Reason
from ..files.excludes import NOTEBOOK
from ..files.printable import quoted, relative
from ..model import Group, Options

__all__ = ["NOTHING", "NO_NAME", "note_of", "reasons_of_file", "why_on_shim"]

NO_NAME = "no legacy name in it"
NOTHING = "no symbol to migrate in it: its names are not TensorFlow's, or migrated already"

_GROUPS = {
    Group.CONTRIB: "contrib classes",
    Group.V1: "v1 loss scales and optimizers",
    Group.CROSS_SHARD: "cross-shard symbols",
    Group.POLICIES: "policies",
    Group.KERAS_OPTIMIZERS: "Keras loss-scale optimizers",
}
_MOST_PLACES = 3
"""Places that a note lists."""


def reasons_of_file(
    file: str, decision: Decision
) -> Iterator[tuple[list[Group], tuple[Reason, ...]]]:
    """The groups of which the first deciding place is in a file, with all reasons.

    Groups that the same places decide are together.
    """
    found: dict[tuple[tuple[str, int, str], ...], tuple[list[Group], tuple[Reason, ...]]] = {}
    for group, reasons in decision.on_shim.items():
        if reasons and reasons[0].file == file:
            key = tuple((reason.file, reason.need.line, reason.need.why) for reason in reasons)
            found.setdefault(key, ([], reasons))[0].append(group)
    yield from found.values()


def why_on_shim(groups: Collection[Group], options: Options) -> str:
    """Why the names that a file takes from the shim stay there, where no place decides it."""
    if Group.CONTRIB in groups and not options.to_shim:
        return "its contrib classes stay on the shim: nothing else has their behavior; see --unsafe"
    return "its names are those of the shim already"


def note_of(file: str, groups: Sequence[Group], reasons: Sequence[Reason]) -> str:
    """Why groups go to the shim, and what would change that."""
    names = " and ".join(_GROUPS[group] for group in groups)
    text = f"{reasons[0].need.why}, so the {names} of this program go to the shim"
    first = _place(file, reasons[0])
    others = list(dict.fromkeys(_place(file, reason) for reason in reasons))
    others.remove(first)
    if not others:
        return f"{text}; they can go to TensorFlow's once this line is changed"
    more = len(others) - _MOST_PLACES
    listed = [*others[:_MOST_PLACES], *([f"{more} other places"] if more > 0 else [])]
    return f"{text}; they can go to TensorFlow's once this line and {', '.join(listed)} are changed"


def _place(file: str, reason: Reason) -> str:
    path = quoted(relative(reason.file))
    if reason.file.endswith(NOTEBOOK):
        return path  # its lines count within cells
    if reason.file == file:
        return f"line {reason.need.line}"
    return f"{path}:{reason.need.line}" if reason.need.line else path
