"""The names of Adam's powers of beta, `beta1_power` and `beta2_power`, in the copy of a Saver file.

Adam and AdaMax create the powers when they first apply gradients, which both wrappers do in a
conditional. Control flow v1 prefixes their names with the scopes of the program and the name of the
conditional. A branch of control flow v2 is a function, in which only scopes of its own count.
"""

import re
from typing import Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._checkpoint.finding import Entry

# The conditional of each wrapper, under control flow v1, if the program has no other in its scope.
_CONDITIONAL = {"contrib": "cond/", "v1": "cond_1/"}
_POWER = re.compile(r"(?P<path>(?:.*/)?)(?P<name>beta[12]_power)(?:_(?P<number>\d+))?$")
_INNERMOST = re.compile(r"(?P<scope>(?:.*/)?)(?P<conditional>cond(?:_\d+)?/)(?P<inner>.*)$")

_NOTE_ON_CONTROL_FLOW = (
    "{}: these are the names in a program with control flow v1, like the one that wrote SRC. For a "
    "program with control flow v2, the default in TensorFlow 2 unless disable_v2_behavior() or "
    "disable_control_flow_v2() is called, pass --control-flow v2"
)
_NOTE_ON_SCOPES = (
    "{}: these are the names in a program that applies gradients outside of all scopes, and has no "
    "other conditional before. If its Saver reports that another key is missing, use --rename"
)
_NOTE_ON_FIXED = (
    "{}: these are the names in a program with FixedLossScale if one with FixedLossScaleManager of "
    "contrib wrote SRC, which does not show the class of a fixed loss scale. If the Saver reports "
    "that another key is missing, use --rename"
)
_NOTE_ON_KEPT = (
    "{0} keeps its name: the new one depends on the scopes, conditionals and optimizers of the "
    "whole program; use --rename {0}=NEW to change it"
)

# New names by key; None for a name that SRC does not show.
_Names = Dict[str, Optional[str]]


class _Power(NamedTuple):
    """A power, and the parts of its name."""

    key: str
    scope: str
    """What precedes the innermost conditional."""
    conditional: str
    """The innermost conditional; "" without one."""
    inner: str
    """The scopes inside the conditional."""
    name: str
    number: int
    """The number that TensorFlow appends to a name in use, or 0."""

    @property
    def order(self) -> Tuple[int, int]:
        """The order in which a program creates powers that have the same scope."""
        return int(self.conditional.strip("cond_/") or 0), self.number


def new_names(
    tensors: Mapping[str, Entry],
    families: Collection[str],
    to: str,
    control_flow: Optional[str],
    renames: Collection[str],
) -> Tuple[Dict[str, str], List[str]]:
    """Returns the new keys of the powers of beta, by old key, and notes for the user.

    Args:
      tensors: those of SRC.
      families: the families of its loss scales; none if the loss scale is fixed.
      to: the family of the class that will read the copy.
      control_flow: that of the program that will read the copy; None for that of SRC.
      renames: the keys for which the user gives a name.
    """
    names, note = _names_and_note(list(_powers_in(tensors)), families, to, control_flow)
    names = {key: name for key, name in names.items() if key not in renames}
    new = {key: name for key, name in names.items() if name is not None and name != key}
    notes = [note.format(" and ".join(sorted(new.values())))] if new and note else []
    notes += [_NOTE_ON_KEPT.format(key) for key, name in names.items() if name is None]
    return new, notes


def _names_and_note(
    powers: Sequence[_Power], families: Collection[str], to: str, control_flow: Optional[str]
) -> Tuple[_Names, str]:
    """Returns new names, and what the user must know if one of them differs from the old one."""
    is_fixed_v1 = not families and to == "v1"
    in_conditionals = [power for power in powers if power.conditional]
    if not in_conditionals:
        if control_flow == "v1" and not is_fixed_v1:
            return _in_first_conditional(powers, to), _NOTE_ON_SCOPES
        return _from_v2(powers, families, to, control_flow), ""
    # SRC has the names of control flow v1, so the other powers are those of optimizers that are not
    # wrapped.
    if is_fixed_v1:
        return _without_own_conditional(in_conditionals), _NOTE_ON_FIXED
    if control_flow == "v2":
        return _without_conditionals(in_conditionals), ""
    note = _NOTE_ON_CONTROL_FLOW if control_flow is None else ""
    return _in_other_conditional(in_conditionals, families, to), note


def _powers_in(tensors: Mapping[str, Entry]) -> Iterator[_Power]:
    for key in sorted(tensors):
        match = _POWER.match(key)
        if match is None or tensors[key].shape:
            continue
        path, name, number = match["path"], match["name"], int(match["number"] or 0)
        found = _INNERMOST.match(path)
        scope, conditional, inner = found.groups() if found else (path, "", "")
        yield _Power(key, scope, conditional, inner, name, number)


def _in_other_conditional(powers: Sequence[_Power], families: Collection[str], to: str) -> _Names:
    """Returns the names under control flow v1, where the class `to` has another conditional."""
    # Without a loss scale in the file, it is contrib: v1 has no conditional for a fixed one.
    family = "contrib" if not families else " and ".join(sorted(families))
    if family == to:
        return {}
    return {
        power.key: _joined(power.scope + _CONDITIONAL[to] + power.inner, power.name, power.number)
        if power.conditional == _CONDITIONAL.get(family)
        else None
        for power in powers
    }


def _without_conditionals(powers: Sequence[_Power]) -> _Names:
    """Returns the names under control flow v2: without all that is outside of the branch.

    TensorFlow numbers equal names in the order of their creation. SRC shows it within one scope, by
    the numbers of the conditionals.
    """
    groups: Dict[str, List[_Power]] = {}
    for power in powers:
        groups.setdefault(power.inner + power.name, []).append(power)
    names: _Names = {}
    for name, group in groups.items():
        is_known = len({power.scope for power in group}) == 1
        for number, power in enumerate(sorted(group, key=lambda power: power.order)):
            names[power.key] = _joined("", name, number) if is_known else None
    return names


def _without_own_conditional(powers: Sequence[_Power]) -> _Names:
    """Returns the names in a program with the fixed loss scale of v1, which has no conditional."""
    return {
        power.key: _joined(power.scope + power.inner, power.name, power.number)
        if power.conditional == _CONDITIONAL["contrib"] and not _INNERMOST.match(power.scope)
        else None
        for power in powers
    }


def _in_first_conditional(powers: Sequence[_Power], to: str) -> _Names:
    """Returns the names under control flow v1, in a program of one optimizer outside of scopes."""
    return {
        power.key: None if power.scope or power.number else _CONDITIONAL[to] + power.name
        for power in powers
    }


def _from_v2(
    powers: Sequence[_Power], families: Collection[str], to: str, control_flow: Optional[str]
) -> _Names:
    """Returns the names that are not known, of powers that are in no conditional.

    They stay the same in a program with control flow v2. But with a fixed loss scale, they can be
    those of v1, which has no conditional for it, so that scopes are in the names.
    """
    if families:
        return {}
    is_known = to == "contrib" and control_flow == "v2"
    return {power.key: None for power in powers if power.scope or not is_known}


def _joined(scope: str, name: str, number: int) -> str:
    return f"{scope}{name}_{number}" if number else scope + name
