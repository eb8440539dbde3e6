"""Collects what the other files of a program must know about a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Callable, Optional

import libcst as cst

from ..facts import SINGLE_FILE, USES_OF_KERAS_2, Export, FileFacts, Links, Need, Trait
from ..model import Group, Options
from ..resolve.legacy_symbols import Legacy, namespace_of
from ..resolve.mentions import Mention
from ..resolve.places import Place, Reference, Why
from ..resolve.program import Program
from ..resolve.qualified_names import CALL
from ..resolve.scopes import Scope, ScopeKind
from ..resolve.vocabulary import REWRITE, SCALING
from ..rewrite.proposal import Obstacle
from ..rules.rule import Rule
from ..rules.to_shim import code_of_place, needs_of_written
from .comments import Suppressions, may_suppress
from .render import Place as At, Source

__all__ = ["Locate", "exports_of", "facts_of", "kept_places", "need_at", "obstacles_of"]

_SUPPRESSED = "a comment suppresses the finding, so this place stays"
_READ_NAME_IS_ABSENT = "a name that nothing replaces is read from it, so this place stays"
_BESIDE_ABSENT = "a name that nothing replaces is read from the same module, so this place stays"
_NOT_SELECTED = "--select or --ignore leaves this place as it is"
_NOT_MAKING = (Mention.IMPORT, Mention.TEST, Mention.ANNOTATION, Mention.ALIAS)
_MIXED = "mixed_float16"
_SAME_SYMBOLS = (Group.V1, Group.CROSS_SHARD)
"""The groups of which the final API has the very same symbols as the legacy one."""


Locate = Callable[[Set[cst.CSTNode]], Mapping[cst.CSTNode, At]]
"""Finds where nodes stand in the sources of a file."""


def facts_of(
    program: Program,
    sources: Sequence[Source],
    links: Links,
    locate: Locate,
    options: Options,
    rules: Sequence[Rule],
) -> FileFacts:
    """The facts of a file.

    Args:
      program: the file.
      sources: its sources.
      links: what connects it with others.
      locate: finds the places of nodes in them.
      options: how it is rewritten.
      rules: the rules.
    """
    kept = kept_places(program, sources, locate, options)
    groups = {group for place in program.places() if _can_move(place) for group in place.groups}
    foreign = program.keras_2_methods.foreign_uses
    traits = {*_traits(program), *links.traits, *([Trait.LOOP] if foreign else [])}
    return FileFacts(
        groups=frozenset(groups),
        needs=() if options.to_shim else _needs(program, locate, options, rules, kept),
        traits=frozenset(traits),
        exports=exports_of(program, kept),
        through=frozenset(
            unclear.path
            for unclear in [*program.unclear, *program.common]
            if unclear.why is Why.RE_EXPORT or unclear.origin
        ),
        conditions=program.guards.conditions(),
        asks=_asks(program, options),
        links=links,
    )


def kept_places(
    program: Program, sources: Sequence[Source], locate: Locate, options: Options
) -> Mapping[cst.CSTNode, str]:
    """The places that keep their symbols although the rules move them, each with the reason.

    What binds a name that such a place reads is one of them. So is what binds a module of which a
    name is read that nothing replaces: that place is reported, and would read the name from nothing
    if the import was gone. If something else replaces that module, or reads it as a value, the
    other places that begin with its name stay, too.
    """
    places = [place for place in program.places() if _moves(place, options)]
    found = {
        place.node: _NOT_SELECTED for place in places if not options.selects(code_of_place(place))
    }
    for place in _silenced(places, sources, locate):
        found.setdefault(place.node, _SUPPRESSED)
    absent = [use for use in program.namespaces if program.mentions.absent_name(use)]
    for place in _beside(program, absent, places):
        found.setdefault(place.node, _BESIDE_ABSENT)
    if found or absent:
        _add_what_binds(program, places, absent, found)
    return found


def _silenced(
    places: Sequence[Place], sources: Sequence[Source], locate: Locate
) -> Iterator[Place]:
    """The places of which a comment silences the finding."""
    if not any(may_suppress(source.data) for source in sources):
        return
    located = locate(frozenset(place.node for place in places))
    suppressions = Suppressions.of_sources(sources)
    for place in places:
        if suppressions.silence(code_of_place(place), located[place.node]):
            yield place


def _add_what_binds(
    program: Program,
    places: Iterable[Place],
    absent: Iterable[Place],
    kept: dict[cst.CSTNode, str],
) -> None:
    """Adds the places that bind what a kept place reads, with its reason.

    Args:
      program: the file.
      places: the places that can move.
      absent: those that read a name that nothing replaces, so that no rule moves them.
      kept: the places that are kept, to which the others are added.
    """
    by_node = {place.node: place for place in places}
    pending = [(by_node[node], reason) for node, reason in kept.items()]
    pending += [(place, _READ_NAME_IS_ABSENT) for place in absent]
    for place, reason in pending:
        for node in _binding_nodes(place):
            if node in by_node and node not in kept:
                kept[node] = reason
                pending.append((by_node[node], reason))


def _beside(program: Program, absent: Sequence[Place], places: Sequence[Place]) -> Iterator[Place]:
    """The places that begin with the same name as one of `absent`, and must stay with it.

    Otherwise only what binds the name stays, and the other places get a name of their own.
    """
    bound = {place.node for place in places}
    variables = {
        _variable(use)
        for use in absent
        if not bound.isdisjoint(_binding_nodes(use)) and _may_change(program, *_variable(use))
    }
    for place in places if variables else ():
        if place.root is not None and _variable(place) in variables:
            yield place


def _may_change(program: Program, owner: Optional[Scope], name: str) -> bool:
    """Whether a name is bound more than once, or is more than a module of which names are read."""
    if owner is None or len(owner.bindings[name]) > 1:
        return True
    loads = program.loads_of(owner, name)
    return not all(isinstance(program.parents.get(load), cst.Attribute) for load in loads)


def _variable(place: Place) -> tuple[Optional[Scope], str]:
    """The first name of a place, and the scope that it belongs to."""
    name = place.root.value if place.root is not None else ""
    return place.scope.owner(name), name


def _binding_nodes(place: Place) -> Iterator[cst.CSTNode]:
    """What binds the first name of a place: imports, and the values of assignments."""
    if place.root is None:
        return
    owner = place.scope.owner(place.root.value)
    for binding in owner.bindings_of(place.root.value) if owner is not None else ():
        yield binding.node
        if binding.value is not None:
            yield binding.value


def _can_move(place: Place) -> bool:
    """Whether a place can be renamed to the shim."""
    if isinstance(place, Reference):
        return bool(place.legacy.rule)
    module = namespace_of(place.path)
    return module is not None and not module.has_others


def _moves(place: Place, options: Options) -> bool:
    """Whether a place can get another path."""
    if options.to_shim or not isinstance(place, Reference):
        return True
    return place.legacy.is_renamed(options, SINGLE_FILE)


def _needs(
    program: Program,
    locate: Locate,
    options: Options,
    rules: Sequence[Rule],
    kept: Mapping[cst.CSTNode, str],
) -> tuple[Need, ...]:
    """The needs of a file, with their places, in the order of the source."""
    obstacles = [*obstacles_of(program, options, rules), *_of_kept(program, kept)]
    located = locate(frozenset(obstacle.node for obstacle in obstacles))
    needs = {need_at(obstacle, located[obstacle.node]): None for obstacle in obstacles}
    return tuple(sorted(needs, key=lambda need: (need.source, need.line, need.column, need.why)))


def obstacles_of(program: Program, options: Options, rules: Sequence[Rule]) -> Iterator[Obstacle]:
    """The places that the final API does not fit, by all rules."""
    for rule in rules:
        yield from rule.obstacles(program, options)
    yield from needs_of_written(program)


def need_at(obstacle: Obstacle, place: At) -> Need:
    """The need of an obstacle, with its place."""
    return obstacle.need._replace(source=place.source, line=place.line, column=place.column)


def _of_kept(program: Program, kept: Mapping[cst.CSTNode, str]) -> Iterable[Obstacle]:
    """A place that keeps its legacy symbol fits only the shim's symbols, as class tests tell.

    An import that stays only for a name that nothing replaces leads to no such symbol.
    """
    for place in program.places() if kept else ():
        reason = kept.get(place.node)
        if reason is None or reason == _READ_NAME_IS_ABSENT:
            continue
        if set(place.groups) & set(_SAME_SYMBOLS):
            continue
        yield from Obstacle.of_place(place, code_of_place(place), reason)


def _traits(program: Program) -> Iterable[Trait]:
    """What the file has that matters to the other files of its program."""
    references = [*program.references, *program.mixed]
    legacies = [reference.legacy for reference in references]
    has = {
        Trait.EXPERIMENTAL_CLASS: any(legacy.is_experimental_optimizer for legacy in legacies),
        Trait.FINAL_CLASS: program.classes.names_final_class(),
        Trait.SYMBOL: _has_symbol(program, legacies),
        Trait.MAKER: _makes_optimizers(program),
        Trait.POLICY: program.classes.sets_policy(),
        Trait.EXPERIMENTAL_POLICY: any(legacy.is_experimental_policy for legacy in legacies),
        Trait.KERAS_3_METHODS: program.classes.uses_methods_of_keras_3(),
        Trait.KERAS_2_METHODS: _uses_methods_of_keras_2(program),
        Trait.MIXED: _names_mixed_policy(program),
    }
    return [trait for trait, is_there in has.items() if is_there]


def _has_symbol(program: Program, legacies: Sequence[Legacy]) -> bool:
    """Whether the file has a symbol of any group, or a module, of TensorFlow or of the shim."""
    if any(legacy.rule and not _is_final_policy(legacy.name) for legacy in legacies):
        return True
    return bool(program.migrated) or any(use.keeps_names for use in program.namespaces)


def _uses_methods_of_keras_2(program: Program) -> bool:
    """Whether the file uses methods that only Keras 2 has, and no `scale_loss`."""
    is_scaling = any(program.attributes(name) for name in SCALING)
    return is_scaling and not program.attributes("scale_loss")


def _names_mixed_policy(program: Program) -> bool:
    texts = (string.raw_value for string in program.scopes.strings)
    return bool(program.attributes("set_dtype_policy")) or any(_MIXED in text for text in texts)


def _makes_optimizers(program: Program) -> bool:
    """Whether the file calls what makes a Keras loss-scale optimizer, inherits from it, or so."""
    if not program.classes.makes_optimizers():
        return False
    used = [node for node, _ in program.migrated]
    used += [
        unclear.node for unclear in program.unclear if not isinstance(unclear.node, cst.ImportAlias)
    ]
    for reference in [*program.references, *program.mixed]:
        # Those of graph mode have no methods of Keras.
        is_maker = reference.legacy.is_keras_optimizer or reference.legacy.name == REWRITE
        if is_maker and program.mentions.of(reference) not in _NOT_MAKING:
            used.append(reference.node)
    return bool(used)


def _is_final_policy(name: str) -> bool:
    return name == "set_global_policy"


def _asks(program: Program, options: Options) -> frozenset[Trait]:
    """The traits of other files that findings in this file depend on."""
    asks: set[Trait] = set()
    if options.for_keras_3 or options.to_shim:
        if program.keras_2_methods.foreign_uses:
            asks |= {Trait.MAKER, Trait.POLICY, Trait.EXPERIMENTAL_POLICY}
        if _defines_scaling(program):
            asks.add(Trait.MAKER)
    if any(program.mentions.reads_of("loss_scale")):
        asks |= {Trait.MAKER, Trait.EXPERIMENTAL_POLICY}
    if options.unsafe:
        asks |= USES_OF_KERAS_2
    if options.for_keras_3 and any(found.legacy.is_keras_optimizer for found in program.references):
        asks.add(Trait.RESTORE)
    if program.classes.names_final_class():
        asks |= {Trait.KERAS_2_METHODS, Trait.KERAS_3_METHODS}
    if not options.sets_legacy_keras and (program.references or program.migrated):
        asks.add(Trait.TF_KERAS)
    return frozenset(asks)


def _defines_scaling(program: Program) -> bool:
    """Whether a class that may inherit from one of another file defines Keras 2's methods."""
    classes = (scope for scope in program.scopes.all if scope.kind is ScopeKind.CLASS)
    return any(not scope.bindings.keys().isdisjoint(SCALING) for scope in classes)


def exports_of(program: Program, kept: Collection[cst.CSTNode] = ()) -> dict[str, Export]:
    """What the top-level names mean.

    Args:
      program: the file.
      kept: its places that keep their symbols.
    """
    scope = program.scopes.module_scope
    kept_names = {
        name
        for place in program.places()
        if place.node in kept
        for name in _names_with(program, place)
    }
    return {
        name: Export(
            program.origins.of_name(name, scope),
            name in kept_names,
            frozenset().union(*(_returned(program, binding.node) for binding in bindings)),
        )
        for name, bindings in scope.bindings.items()
    }


def _names_with(program: Program, place: Place) -> Iterable[str]:
    """The top-level names that a place binds, or the function that it is in."""
    if place.scope is program.scopes.module_scope:
        return program.mentions.names_bound(place)
    around = program.ancestors(place.node)
    functions = [node for node in around if isinstance(node, cst.FunctionDef)]
    return [function.name.value for function in functions[-1:]]


def _returned(program: Program, function: cst.CSTNode) -> Iterator[str]:
    """What a function returns: paths, or what begins with `<` for other values."""
    for value in program.values.returned_by(function):
        yield from program.paths_of(value) or [CALL]
