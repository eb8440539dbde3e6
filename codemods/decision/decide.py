"""Decides, once for each program, which groups of symbols go to the shim.

`decide` is a pure function: what it returns depends on its arguments alone. Its rules, in this
order, for the target `final`:

1. A group of symbols goes to the shim if a place of a file of the program needs that (`Need`), and
   what else the need depends on is so: another file reads the name, the program compiles models, it
   has both Keras classes, or the experimental class or policies, it imports `tf_keras`, or a name
   of another file depends on the version of TensorFlow.
2. The policies follow the Keras optimizers if the program compiles models. `compile` wraps an
   optimizer in the class that belongs to the policy, so only the shim's policy makes the shim's
   experimental class.
3. For Keras 3, the policies go to the shim if the program has a training step over
   `model.optimizer` that does not use the methods of Keras 3: under its policy, `compile` makes an
   optimizer that has the methods of Keras 2.
4. With `--unsafe`, the contrib classes follow the v1 classes, which they become otherwise.

For the target `shim`, every group goes there. `set_global_policy`, which every TensorFlow from 2.4
on has, goes there if the program has something else of the shim, or a training step over
`model.optimizer`; alone, it needs no shim.

A program that uses the methods of Keras 3's class, and in no file methods of Keras 2 only, is
written for Keras 3: its final class stays, and its subclasses need nothing.

A file that belongs to several programs joins them: they are decided as one. So adding files to a
program can only send more groups to the shim, never fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Optional

from ..facts import (
    OF_IMPORTED,
    STEP_WITH_MODEL,
    Constant,
    Decision,
    FileFacts,
    Need,
    Reason,
    Trait,
    When,
    is_written_for_keras_3,
)
from ..model import Group, Options
from .exports import ReExports, Way

__all__ = ["Connections", "decide"]

_ANY = "*"
_LOOP = Need(
    Group.POLICIES,
    "LS406",
    "model.optimizer",
    "a training step over model.optimizer has no methods of Keras 3, so compile must make the "
    "shim's class",
)


class Connections(NamedTuple):
    """How the files of a run are connected.

    Attributes:
      programs: the files of each program; a file without facts has no legacy name.
      imported: for each file, files with traits of `OF_IMPORTED` that it imports, also of other
        programs.
      traits: what files without facts have, as far as it is known.
      reads: the names of each file that other files read.
      compared: those that files read which compare types of objects.
      flags: the names of other files that each file reads and that depend on the version.
      texts: the flags among them that compare versions as text, as in `Decision`.
      is_alone: whether the run has one file only, so that nothing is known about others.
    """

    programs: Sequence[frozenset[str]]
    imported: Mapping[str, frozenset[str]] = {}
    traits: Mapping[str, frozenset[Trait]] = {}
    reads: Mapping[str, frozenset[str]] = {}
    compared: Mapping[str, frozenset[str]] = {}
    flags: Mapping[str, Mapping[str, Optional[tuple[Constant]]]] = {}
    texts: Mapping[str, Mapping[str, str]] = {}
    is_alone: bool = False


def decide(
    facts: Mapping[str, FileFacts],
    connections: Connections,
    exports: ReExports,
    options: Options,
) -> dict[str, Decision]:
    """What each file with facts gets.

    Args:
      facts: the facts of all files with legacy names.
      connections: how these and others are connected.
      exports: what names mean that are read through other files.
      options: how to rewrite the files.
    """
    decisions: dict[str, Decision] = {}
    for program in connections.programs:
        files = sorted(file for file in program if file in facts)
        traits = _traits_in(program, facts, connections)
        on_shim = _on_shim(files, facts, traits, connections, options)
        for file in files:
            others = [traits[other] for other in traits if other != file]
            ways = {path: exports.way_of(path, file) for path in sorted(facts[file].through)}
            decisions[file] = Decision(
                on_shim=on_shim,
                reads=connections.reads.get(file, frozenset()),
                compared=connections.compared.get(file, frozenset()),
                flags=connections.flags.get(file, {}),
                texts=connections.texts.get(file, {}),
                settled=_with_way(ways, Way.MOVED, Way.OWN),
                moved=_with_way(ways, Way.MOVED),
                kept=_with_way(ways, Way.KEPT),
                traits=frozenset().union(*traits.values()),
                others=frozenset().union(*others),
                is_alone=connections.is_alone,
            )
    return decisions


def _with_way(ways: Mapping[str, Way], *wanted: Way) -> frozenset[str]:
    return frozenset(path for path, way in ways.items() if way in wanted)


def _traits_in(
    program: frozenset[str], facts: Mapping[str, FileFacts], connections: Connections
) -> dict[str, frozenset[Trait]]:
    """The traits of the files of a program, and those of `OF_IMPORTED` in files that it imports.

    These files can be of other programs, of which the rest does not count.
    """
    traits = {file: _traits_of(file, facts, connections) for file in sorted(program)}
    imported = {other for file in program for other in connections.imported.get(file, ())}
    for file in sorted(imported - program):
        traits[file] = _traits_of(file, facts, connections).intersection(OF_IMPORTED)
    return traits


def _traits_of(
    file: str, facts: Mapping[str, FileFacts], connections: Connections
) -> frozenset[Trait]:
    known = facts.get(file, FileFacts()).traits
    return known | connections.traits.get(file, frozenset())


def _on_shim(
    files: Sequence[str],
    facts: Mapping[str, FileFacts],
    traits_of: Mapping[str, frozenset[Trait]],
    connections: Connections,
    options: Options,
) -> dict[Group, tuple[Reason, ...]]:
    """The groups of one program that go to the shim, each with the places that decided it."""
    traits = frozenset().union(*traits_of.values())
    if options.to_shim:
        is_policy_alone = Trait.SYMBOL not in traits and not _step_with_model(traits)
        return {group: () for group in Group if not (is_policy_alone and group is Group.POLICIES)}
    there = frozenset().union(*(facts[file].groups for file in files))
    found = _needed(there, files, facts, traits, connections)
    if Group.KERAS_OPTIMIZERS in found and may_compile(traits):
        _follow(found, Group.POLICIES, Group.KERAS_OPTIMIZERS)
    step = _step_with_model(traits)
    if options.for_keras_3 and step and Group.POLICIES in there:
        steps = (Reason(file, _LOOP) for file in traits_of if step & traits_of[file])
        found.setdefault(Group.POLICIES, tuple(steps))
    if Group.V1 in found:
        _follow(found, Group.CONTRIB, Group.V1)
    return found if options.unsafe else _without_reasons(found, Group.CONTRIB)


def _step_with_model(traits: frozenset[Trait]) -> frozenset[Trait]:
    """The traits by which a program steps with what `compile` makes; none if it does not."""
    return next((step for step in STEP_WITH_MODEL if step <= traits), frozenset())


def _needed(
    there: frozenset[Group],
    files: Sequence[str],
    facts: Mapping[str, FileFacts],
    traits: frozenset[Trait],
    connections: Connections,
) -> dict[Group, tuple[Reason, ...]]:
    """The groups of a program of which a place needs the shim, with all such places."""
    found: dict[Group, tuple[Reason, ...]] = {}
    for file in files:
        for need in facts[file].needs:
            if need.group in there and _counts(need, file, traits, connections):
                found[need.group] = (*found.get(need.group, ()), Reason(file, need))
    return {group: found[group] for group in Group if group in found}


def _follow(found: dict[Group, tuple[Reason, ...]], follower: Group, leader: Group) -> None:
    """Sends a group to the shim because of another one."""
    found.setdefault(follower, found[leader])


def _without_reasons(
    found: Mapping[Group, tuple[Reason, ...]], group: Group
) -> dict[Group, tuple[Reason, ...]]:
    """Makes a group go to the shim wherever its places are: nothing else has its behavior."""
    return {name: () if name is group else reasons for name, reasons in found.items()}


def _counts(need: Need, file: str, traits: frozenset[Trait], connections: Connections) -> bool:
    """Whether what a need depends on is so."""
    if need.when is When.IF_READ:
        reads = connections.reads.get(file, frozenset())
        return _ANY in reads or not reads.isdisjoint(need.names)
    if need.when is When.IF_FLAG:
        return not connections.flags.get(file, {}).keys().isdisjoint(need.names)
    if need.when is When.IF_COMPILED:
        return may_compile(traits)
    if need.when is When.IF_NOT_FOR_KERAS_3:
        return not is_written_for_keras_3(traits)
    wanted: Iterable[Trait] = {
        When.IF_BOTH: (Trait.EXPERIMENTAL_CLASS, Trait.FINAL_CLASS),
        When.IF_EXPERIMENTAL: (Trait.EXPERIMENTAL_CLASS,),
        When.IF_EXPERIMENTAL_POLICY: (Trait.EXPERIMENTAL_POLICY,),
        When.IF_TF_KERAS: (Trait.TF_KERAS,),
    }.get(need.when, ())
    return traits.issuperset(wanted)


def may_compile(traits: frozenset[Trait]) -> bool:
    """Whether Keras may make or wrap an optimizer itself: by `compile`, only under a policy."""
    has_policy = not traits.isdisjoint({Trait.POLICY, Trait.MIXED})
    return Trait.LOAD in traits or (Trait.COMPILE in traits and has_policy)
