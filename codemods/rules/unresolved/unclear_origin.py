"""Reports legacy names whose origin cannot be resolved statically.

- `from module import *` hides where a name comes from (LS901). In public code, most loss-scale
  managers with these names come from `from npu_bridge.npu_init import *`, which is not TensorFlow.
  So no name is rewritten because of its spelling, and neither is a star import of a legacy module.
- tensor2tensor and its descendants reach `contrib` through functions
  (`contrib.tpu().CrossShardOptimizer`) that import it lazily or raise on TensorFlow 2 (LS902).
- Projects have their own `compat` modules (`from lingvo import compat as tf`), which may be
  TensorFlow's or not (LS903). If the module is in the run, its own names are rewritten there, and
  the uses need no edit, so the command drops the finding. A class test of what `compile` may have
  made is reported in any case, as is a comparison with `type(optimizer)`: the module shows which
  class is named, but not which one the optimizer has.
- A name can mean a legacy symbol on one path and something else on another (LS904). Each place that
  binds it is rewritten on its own, to the shim, whose symbols have the same parameters. A use
  through a module that also holds other things cannot follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ...model import Group
from ...resolve.classes import is_made_here, may_compile
from ...resolve.mentions import compares_type, tested_object
from ...resolve.places import Unclear
from ...rewrite.proposal import SHIM
from ..rule import Program, Proposal, Rule

__all__ = ["RULE"]

_NAMESPACES = re.compile(r"(?:\.(?:contrib|keras|mixed_precision|train|tpu|experimental))+$")
"""Modules of TensorFlow at the end of a path through a module of the project."""
_CODES = {"star": "LS901", "call": "LS902", "re-export": "LS903", "several": "LS904"}
_MESSAGES = {
    "star": "names from `import *` ({0}) are not resolved: import them by name, then migrate again",
    "call": "`{0}` cannot be resolved statically: import {1} by name, then migrate again",
    "re-export": (
        "{1} from `{0}`: if it is TensorFlow's, import it from TensorFlow here, then migrate "
        "again; otherwise silence this line (# lossscale: ignore[LS903])"
    ),
    "several": "this name can mean {0}: use different names, then migrate again",
}
_TESTED = (
    "compile makes optimizers of the installed Keras's final class: if `{}` is the experimental "
    "class, this test is False from TensorFlow 2.4 on; test for both classes"
)
_ON_SHIM = f"{SHIM}.contrib.mixed_precision"
_EXACT = "the type of an optimizer depends on the TensorFlow version: use isinstance"
_STAR = "names from a star import cannot be told apart"
_SEVERAL = "this name has other meanings, too"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such name; one finding for a module or expression that several come through."""
    yield from _needs(program)
    found: dict[tuple[str, str, object], list[Unclear]] = {}
    for unclear in program.unclear:
        why, through = unclear.why, unclear.through
        if why == "re-export":
            through = _NAMESPACES.sub("", through) or through
        if why != "several" or _is_lost(unclear):
            one = unclear.node if why in ("several", "star") else None
            found.setdefault((why, through, one), []).append(unclear)
    for (why, through, _), places in found.items():
        names = " and ".join(dict.fromkeys(f"`{place.name}`" for place in places))
        message = _MESSAGES[why].format(through, names)
        made = Proposal.report(places[0].node, _CODES[why], places[0].name, message)
        if why == "re-export":
            made = made._replace(through=tuple(dict.fromkeys(map(_path, places))))
        yield made
    yield from _tests(program)


def _path(unclear: Unclear) -> str:
    """The path of a name that comes through another module."""
    dot = "" if unclear.through.endswith(".") else "."
    return f"{unclear.through}{dot}{unclear.name}"


def _is_lost(unclear: Unclear) -> bool:
    """Whether a use with several meanings is not right once their bindings are rewritten."""
    is_legacy = not unclear.legacy or any(legacy.rule for legacy in unclear.legacy)
    return is_legacy and not isinstance(unclear.node, cst.Name)


def _needs(program: Program) -> Iterator[Proposal]:
    """The places that need the shim, of which the symbols keep their names and parameters."""
    for scope in program.scopes.all:
        for star, path in scope.stars:
            if path == _ON_SHIM and not program.goes_to_shim(Group.CONTRIB):
                yield Proposal.place_needs_shim(star, "LS901", "*", Group.CONTRIB, _STAR)
    unclear = [(one.node, legacy) for one in program.unclear for legacy in one.legacy]
    several = [(node, legacy) for node, legacy in unclear if legacy.rule]
    if not any(branch.has_final for branch in program.guards):
        several += [(one.node, one.legacy) for one in program.guarded]
    for node, legacy in several:
        if not program.goes_to_shim(legacy.group):
            yield Proposal.place_needs_shim(node, "LS904", legacy.name, legacy.group, _SEVERAL)


def _tests(program: Program) -> Iterator[Proposal]:
    for unclear in program.unclear:
        if unclear.why != "re-export" or unclear.name != "LossScaleOptimizer":
            continue
        tested = tested_object(program, unclear.node)
        if compares_type(program, unclear.node):
            yield Proposal.report(unclear.node, "LS903", unclear.name, _EXACT)
        elif tested is not None and may_compile(program) and not is_made_here(program, tested):
            message = _TESTED.format(program.code(unclear.node))
            yield Proposal.report(unclear.node, "LS903", unclear.name, message)


RULE = Rule(
    codes={
        "LS901": "a legacy name that only a star import can bind",
        "LS902": "a legacy name on what a call returned or a caller passed",
        "LS903": "a legacy name that comes through another module",
        "LS904": "a name that has a legacy and another meaning",
    },
    summary="names whose origin cannot be resolved, reported",
    upstream="https://github.com/tensorflow/tensor2tensor/blob/master/tensor2tensor/utils/contrib.py",
    check=check,
    cases="""
        # not from a library with its own class
          from npu_bridge.npu_init import *
          from smdistributed.modelparallel.tensorflow import LossScaleOptimizer

          manager = ExponentialUpdateLossScaleManager(2**32, 1000)
          opt = LossScaleOptimizer(opt)

        # a function that returns contrib
        > manual: statically
          from tensor2tensor.utils import contrib

          opt = contrib.tpu().CrossShardOptimizer(opt)

        # a module of the project that re-exports TensorFlow
        > manual: from `lingvo.compat`
          from lingvo import compat as tf

          y = tf.tpu.cross_replica_sum(x)
    """,
)
