"""Reports legacy names whose origin cannot be resolved statically.

- `from module import *` hides where a name comes from (LS901). In public code, most loss-scale
  managers with these names come from `from npu_bridge.npu_init import *`, which is not TensorFlow.
  So no name is rewritten because of its spelling, and neither is a star import of a legacy module.
  If a file of the run binds the name, and is rewritten there, there is no finding.
- tensor2tensor and its descendants reach `contrib` through functions
  (`contrib.tpu().CrossShardOptimizer`) that import it lazily or raise on TensorFlow 2 (LS902). If
  the run has the function, and all that it returns is a module that is renamed as a whole, such as
  `tf.contrib.mixed_precision`, there is no finding. The same code is for modules that a loop
  binds, or that something holds, such as `modules["tf"]` or a class, and for a function that
  imports a module with `nonlocal`: no other function could read a further import there. What
  `import_module("tf_lossscale.contrib...")` leads to is reported only if it moves.
- Projects have their own `compat` modules (`from lingvo import compat as tf`), which may be
  TensorFlow's or not (LS903). If the module is in the run and its own places are rewritten there,
  the uses need no edit, and there is no finding; if they stay, as a comment silences them, there is
  one. A comparison with `type(optimizer)` is reported in any case: the module shows which class is
  named, but not which one the optimizer has.
- A name can mean a legacy symbol on one path and something else on another (LS904). Each place that
  binds it is rewritten on its own, to the shim, whose symbols have the same parameters, so the uses
  are right. A use through a module that also holds other things cannot follow, and is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.places import Unclear, Why
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule
from . import _called_paths as called

__all__ = ["RULE"]

_CODES = {Why.STAR: "LS901", Why.CALL: "LS902", Why.RE_EXPORT: "LS903", Why.SEVERAL: "LS904"}
_MESSAGES = {
    Why.STAR: (
        "names from `import *` ({0}) are not resolved: import them by name, TensorFlow's from "
        "TensorFlow itself, then migrate again"
    ),
    Why.CALL: "`{0}` cannot be resolved statically: import {1} by name from TensorFlow",
    Why.RE_EXPORT: (
        "{1} from `{0}`: if it is TensorFlow's, import it from TensorFlow here, then migrate "
        "again; otherwise silence this line (# lossscale: ignore[LS903])"
    ),
    Why.SEVERAL: "this name can mean {0}: use a name of its own for each, then migrate again",
}
_NAME = "LossScaleOptimizer"
_ON_SHIM = "tf_lossscale.contrib.mixed_precision"
_EXACT = "the type of an optimizer depends on the TensorFlow version: use isinstance"
_STAR = "the names that a star import binds cannot be determined"
_SEVERAL = "this name means something else on another path, with the arguments of this class"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The places whose symbols must keep their names and parameters."""
    for scope in program.scopes.all:
        for star, path in scope.stars:
            if path == _ON_SHIM:
                yield Obstacle.of_contrib(star, "LS901", "*", _STAR)
    unclear = [
        (unclear_name.node, legacy)
        for unclear_name in program.unclear
        for legacy in unclear_name.legacy
    ]
    several = [(node, legacy) for node, legacy in unclear if legacy.rule]
    several += [(mixed_name.node, mixed_name.legacy) for mixed_name in program.mixed]
    for node, legacy in several:
        yield Obstacle.of_legacy(node, "LS904", legacy, _SEVERAL)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each such name where it stands, so that a comment silences only its own line."""
    left = [place for place in program.unclear if _is_left(program, place, options, decision)]
    left += [common for common in program.common if common.path in decision.kept]
    for place in left:
        message = _message(program, place, options, decision)
        if not message:
            continue
        made = Proposal.report(place.node, _CODES[place.why], place.name, message)
        if place.why is Why.RE_EXPORT or place.origin:
            made = made._replace(through=(place.path,))
        yield made
    yield from _exact_tests(program)


def _message(program: Program, place: Unclear, options: Options, decision: Decision) -> str:
    """What is reported of a place; empty if a string leads from it to a name that stays."""
    on_shim = _paths_on_shim(program, place)
    if on_shim:
        moved = [path for path in on_shim if called.is_moved(path, options, decision)]
        return called.message_of_shim(min(moved)) if moved else ""
    through = place.module if place.why is Why.RE_EXPORT else place.through
    return _MESSAGES[place.why].format(through, f"`{place.name}`")


def _is_left(program: Program, unclear: Unclear, options: Options, decision: Decision) -> bool:
    """Whether a use is not right once what binds its name is rewritten."""
    if unclear.why is Why.SEVERAL:
        if all(map(called.is_of_shim, unclear.through.split(", "))):
            return False  # each of them runs on every TensorFlow
        is_legacy = not unclear.legacy or any(legacy.rule for legacy in unclear.legacy)
        is_chain = is_legacy and not isinstance(unclear.node, cst.Name)
        return is_chain and not _is_of_renamed_module(program, unclear, decision)
    if unclear.may_be_final and not options.for_keras_3 and not options.to_shim:
        return False
    return unclear.why is not Why.CALL or not _is_of_renamed_module(program, unclear, decision)


def _paths_on_shim(program: Program, unclear: Unclear) -> frozenset[str]:
    """What a name can mean, if strings that name modules of the shim lead to it and nothing else.

    `import_module("tf_lossscale.contrib.mixed_precision").LossScaleOptimizer` is what LS902 tells
    to write for the same path of TensorFlow.
    """
    paths = called.paths_read(program, unclear.node) if unclear.why is Why.CALL else frozenset()
    return paths if all(map(called.is_of_shim, paths)) else frozenset()


def _is_of_renamed_module(program: Program, unclear: Unclear, decision: Decision) -> bool:
    """Whether a name is read from an attribute that only holds modules which are renamed whole.

    `self.mp = tf.keras.mixed_precision.experimental` becomes the shim's module, which has the same
    names, so `self.mp.LossScaleOptimizer` is right, also after it was renamed.
    """
    node = unclear.node
    renamed = {use.node for use in program.namespaces if use.is_renamed_whole(decision)}
    renamed |= {migrated for migrated, _ in program.migrated}
    while isinstance(node, cst.Attribute):
        node = node.value
        sources = _modules_of(program, node)
        if sources and renamed.issuperset(sources):
            return True
    return False


def _modules_of(program: Program, node: cst.CSTNode) -> list[cst.CSTNode]:
    """What an attribute holds, or a function of the file returns; none for anything else."""
    if isinstance(node, (cst.Attribute, cst.Name)):
        sources = program.values.sources_of(node)
        return [source for source in sources if not _is_condition(program, source)]
    function = program.values.definition_of(node.func) if isinstance(node, cst.Call) else None
    found: list[cst.CSTNode] = []
    for value in program.values.returned_by(function):
        found += program.values.sources_of(value)
    return found


def _is_condition(program: Program, node: cst.CSTNode) -> bool:
    """Whether a value is the first one of an `and`, which is the result only if it is false."""
    parent = program.parents.get(node)
    if not isinstance(parent, cst.BooleanOperation) or parent.left is not node:
        return False
    return isinstance(parent.operator, cst.And)


def _exact_tests(program: Program) -> Iterator[Proposal]:
    for unclear in program.unclear:
        if unclear.why is not Why.RE_EXPORT or unclear.name != _NAME:
            continue
        is_import = isinstance(unclear.node, cst.ImportAlias)
        nodes = program.values.reads_of(unclear.node) if is_import else [unclear.node]
        for node in nodes:
            if program.mentions.compares_type(node):
                yield Proposal.report(node, "LS903", unclear.name, _EXACT)


RULE = Rule(
    codes={
        "LS901": "a legacy name that only a star import can bind",
        "LS902": "a legacy name on a module that is returned, passed or held",
        "LS903": "a legacy name that comes through another module",
        "LS904": "a name that has a legacy and another meaning",
    },
    summary="names whose origin cannot be resolved, reported",
    upstream="https://github.com/tensorflow/tensor2tensor/blob/master/tensor2tensor/utils/contrib.py",
    needs=needs,
    reports=reports,
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

        # a module that a class holds
        > manual: statically
          import tensorflow as tf

          class Backend:
              contrib = tf.contrib

          opt = Backend.contrib.tpu.CrossShardOptimizer(opt)

        # a module of the project that re-exports TensorFlow
        > manual: from `lingvo.compat`
          from lingvo import compat as tf

          y = tf.tpu.cross_replica_sum(x)

        # a name that only a star import can bind
        > manual
          from utilities import *

          opt = LossScaleOptimizer(opt, "dynamic")

        # a star import of a legacy module
        > manual
          from tensorflow.contrib.mixed_precision import *

        # an attribute by its name
        > manual
          import tensorflow as tf

          experimental = getattr(tf.keras.mixed_precision, "experimental")

        # a class of a module of the project
        > manual
          from common.compat import LossScaleOptimizer

          opt = LossScaleOptimizer(opt, "dynamic")

        # a module of two, one with other contents
        > manual
          import tensorflow as tf

          tpu = tf.contrib.tpu if use_tpu else tf.contrib.opt
          opt = tpu.CrossShardOptimizer(opt)

        # a class that a setting chooses
          if use_contrib:
        -     from tensorflow.contrib.mixed_precision import LossScaleOptimizer
        +     from tf_lossscale.contrib.mixed_precision import LossScaleOptimizer
          else:
        -     from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
        +     from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

          opt = LossScaleOptimizer(opt, scale)
    """,
)
