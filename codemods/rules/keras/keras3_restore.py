"""Notes where a program restores what it saved before, with the line that reads files of Keras 2.

Keras 3 (TensorFlow 2.16) stores the variables of models and optimizers under other names. There,
`tf.train.Checkpoint` finds no variable of a Keras model in a file of Keras 2; `load_weights` and
`load_model` read no checkpoint and no SavedModel of Keras 2. `tfls.checkpoints.restore` reads files
of both, with the slots, the iterations and the loss scale.

A note is for information only: if no run of Keras 2 is to be continued, nothing needs to change.
It stands in the run that replaces the class of the optimizer, or the policy under which `compile`
wraps one, in the same file, and in none after it. If a file that imports this one restores, the
note stands at the class. A module that is only imported, and restores what it gets, has no note:
there, the shim's optimizer raises an error at the next step, if the model was not restored.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ...resolve.vocabulary import LOOK_ALIKES
from ..rule import Decision, Options, Program, Proposal, Reference, Rule

__all__ = ["RULE"]

_CODE = "LS409"
_CHECKPOINT, _MANAGER, _SAVER = "Checkpoint", "CheckpointManager", "Saver"
_INITIALIZE = "restore_or_initialize"
_METHODS = {
    "restore": (_CHECKPOINT, _SAVER),
    "read": (_CHECKPOINT,),
    _INITIALIZE: (_MANAGER,),
}
"""The methods that restore, each with the classes of `tf.train` that have it."""
_REWRITE = "enable_mixed_precision_graph_rewrite"
_LONGEST = 50
"""The most characters of an expression in a message."""

_OF_CHECKPOINT = (
    "Keras 3 does not find the variables of a Keras model in a checkpoint of Keras 2: to continue "
    "a run of Keras 2, write tfls.checkpoints.restore({}, {})"
)
_OF_WEIGHTS = (
    "Keras 3 reads only .h5 files of Keras 2 here, and no optimizer: to continue a run of Keras 2, "
    "write tfls.checkpoints.restore({}, {})"
)
_OF_MODEL = (
    "Keras 3 reads no SavedModel of Keras 2, and no .h5 file with a float16 policy: to continue a "
    "run of Keras 2, build the model, and write tfls.checkpoints.restore({}, model, optimizer)"
)
_OF_SAVER = (
    "Keras 3 names variables in another way than Keras 2, and {} finds them by their names: to "
    "continue a run of Keras 2, assign tf.train.load_checkpoint({}).get_tensor(name)"
)
_OF_BACKUP = (
    "Keras 3 does not read backups of Keras 2, and begins again: finish a run of Keras 2 before "
    "the upgrade, or save a tf.train.Checkpoint of it there, and write "
    "tfls.checkpoints.restore(path, checkpoint)"
)
_ELSEWHERE = (
    "another file of this program restores checkpoints or weights: to continue a run of Keras 2, "
    "write tfls.checkpoints.restore(path, checkpoint) there"
)
_NAMES_OF_CHECKPOINTS = ("checkpoint", "ckpt", "chkpt")
"""What the names of objects contain that are checkpoints for certain: parameters, and others that
are made elsewhere, as in tensorflow/models (`ckpt.restore`)."""


class _Made(NamedTuple):
    """The call that makes an object of `tf.train`, or None, and the name of its class."""

    call: Optional[cst.Call]
    name: str


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Notes each place that restores, in a file with an optimizer whose class is replaced."""
    if not options.for_keras_3:
        return
    replaced = _replaced(program, options, decision)
    if not replaced:
        return
    yield from _of_tf_train(program)
    yield from _of_functions(program)
    yield from _of_weights(program)
    yield from _of_models(program)
    if decision.restores_elsewhere:
        yield Proposal.note(replaced[0].node, _CODE, replaced[0].legacy.name, _ELSEWHERE)


def _replaced(program: Program, options: Options, decision: Decision) -> list[Reference]:
    """The places at which this run replaces what makes Keras loss-scale optimizers."""
    return [
        reference
        for reference in program.references
        if reference.legacy.is_keras_optimizer
        or _rewrites_keras(program, reference)
        or _wraps_compiled(program, reference)
        if _is_replaced(reference, options, decision)
    ]


def _wraps_compiled(program: Program, reference: Reference) -> bool:
    """Whether a place sets a policy, under which `compile` of the file wraps an optimizer."""
    return reference.legacy.is_experimental_policy and bool(program.attributes("compile"))


def _is_replaced(reference: Reference, options: Options, decision: Decision) -> bool:
    legacy = reference.legacy
    if legacy.is_on_shim or not legacy.is_renamed(options, decision):
        return False
    may_stay = decision.is_for_keras_3 or legacy.root == "tf_keras"
    return not (legacy.is_final_path and may_stay)


def _rewrites_keras(program: Program, reference: Reference) -> bool:
    """Whether a place is a call of the graph rewrite for a Keras optimizer, which it wraps."""
    call = program.call_of(reference.node)
    if reference.legacy.name != _REWRITE or call is None or not call.args:
        return False
    return program.classes.kind_of_optimizer(call.args[0].value).is_keras


def _of_tf_train(program: Program) -> Iterator[Proposal]:
    """The methods of `tf.train.Checkpoint`, `CheckpointManager` and `Saver`."""
    for method, classes in _METHODS.items():
        for attribute in program.attributes(method):
            made = _made(program, attribute.value, classes) or _unseen(program, attribute)
            if made is not None:
                symbol = f"tf.train.{made.name}.{method}"
                message = _message(program, attribute, made)
                yield Proposal.note(attribute, _CODE, symbol, message)


def _message(program: Program, attribute: cst.Attribute, made: _Made) -> str:
    """What to write in the place of a method of what `made` makes; it may be called later."""
    call = program.call_of(attribute)
    if made.name == _SAVER:
        return _OF_SAVER.format("tf.train.Saver", _path(program, call, 1))
    if made.name == _MANAGER:
        manager = _short(program, attribute.value, "manager")
        return _OF_CHECKPOINT.format(f"{manager}.latest_checkpoint", f"{manager}.checkpoint")
    checkpoint = _short(program, attribute.value, "checkpoint")
    return _OF_CHECKPOINT.format(_path(program, call, 0), checkpoint)


def _made(program: Program, node: cst.BaseExpression, classes: Collection[str]) -> Optional[_Made]:
    """The call of one of the classes of `tf.train` that makes an object; None if none does."""
    for source in _followed(program, node):
        if not isinstance(source, cst.Call):
            continue
        names = set(_classes_of_tf(program, source.func))
        if len(names) == 1 and names.issubset(classes):
            return _Made(source, names.pop())
    return None


def _followed(program: Program, node: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """The sources of a value, and those of what a function of the file returns."""
    for source in program.values.sources_of(node):
        yield source
        if isinstance(source, cst.Call) and isinstance(source.func, cst.Name):
            yield from _returned_by(program, source.func)


def _returned_by(program: Program, called: cst.Name) -> Iterator[cst.CSTNode]:
    """The sources of the values that a function of the file returns."""
    functions = [binding.node for binding in program.values.bindings_of(called)]
    for value in itertools.chain.from_iterable(map(program.values.returned_by, functions)):
        yield from program.values.sources_of(value)


def _classes_of_tf(program: Program, function: cst.BaseExpression) -> Iterator[str]:
    """The classes of TensorFlow that a call makes an object of, or from which its own inherits."""
    own = program.values.class_named(function)
    for node in [function] if own is None else [base.value for base in own.bases]:
        yield from program.names_in_tensorflow(node)


def _unseen(program: Program, attribute: cst.Attribute) -> Optional[_Made]:
    """What an object that is not seen to be made is for certain, by its method or its name."""
    if program.paths_of(attribute.value) or not _may_be_of_tf(program, attribute.value):
        return None
    if attribute.attr.value == _INITIALIZE:
        return _Made(None, _MANAGER)
    name = program.code(attribute.value).lower()
    is_checkpoint = any(word in name for word in _NAMES_OF_CHECKPOINTS)
    is_restoring = attribute.attr.value == "restore" and "manager" not in name
    return _Made(None, _CHECKPOINT) if is_checkpoint and is_restoring else None


def _may_be_of_tf(program: Program, node: cst.BaseExpression) -> bool:
    """Whether no source of a value is an object of another library, or of a class of the file."""
    calls = [source for source in program.values.sources_of(node) if isinstance(source, cst.Call)]
    return not any(
        program.paths_of(call.func) or program.values.class_named(call.func) is not None
        for call in calls
    )


def _of_functions(program: Program) -> Iterator[Proposal]:
    """The functions and classes of TensorFlow that restore by themselves."""
    for name in ("init_from_checkpoint", "BackupAndRestore"):
        for node in _named(program, name):
            call = program.call_of(node)
            if call is None or not program.is_of_tensorflow(node):
                continue
            saver = _OF_SAVER.format("init_from_checkpoint", _path(program, call, 0))
            message = _OF_BACKUP if name == "BackupAndRestore" else saver
            yield Proposal.note(node, _CODE, name, message)


def _named(program: Program, name: str) -> list[cst.BaseExpression]:
    """The places with an attribute of this name, or with what is imported by it."""
    imported = [found for found in program.imports() if found.path.endswith("." + name)]
    loads = [load for found in imported for load in program.loads_of(found.scope, found.name)]
    return [*program.attributes(name), *loads]


def _keyword(argument: cst.Arg) -> str:
    return "" if argument.keyword is None else argument.keyword.value


def _path(program: Program, call: Optional[cst.Call], index: int) -> str:
    """The argument of a call that is a path, as messages show it."""
    if call is None:
        return "path"
    positional = [argument.value for argument in call.args if not _keyword(argument)]
    named = [argument.value for argument in call.args if _keyword(argument).endswith("path")]
    found = [*named, *positional[index : index + 1]]
    return _short(program, found[0], "path") if found else "path"


def _short(program: Program, node: cst.BaseExpression, otherwise: str) -> str:
    """The source of an expression, or another word for one that is long."""
    code = program.code(node)
    return otherwise if len(code) > _LONGEST or "\n" in code else code


def _of_weights(program: Program) -> Iterator[Proposal]:
    """The calls of `load_weights` on what can be a Keras model."""
    for attribute in program.attributes("load_weights"):
        call = program.call_of(attribute)
        if call is None or not _may_be_model(program, attribute.value):
            continue
        model = _short(program, attribute.value, "model")
        message = _OF_WEIGHTS.format(_path(program, call, 0), model)
        yield Proposal.note(attribute, _CODE, "Model.load_weights", message)


def _may_be_model(program: Program, node: cst.BaseExpression) -> bool:
    """Whether an object can be a Keras model: not a module, and of no other known class."""
    if program.paths_of(node):
        return False
    if isinstance(node, cst.Name) and node.value == "self":
        owner = program.values.class_around(node)
        return owner is not None and _may_be_model_class(program, owner)
    return all(_may_make_model(program, source) for source in program.values.sources_of(node))


def _may_make_model(program: Program, source: cst.CSTNode) -> bool:
    if not isinstance(source, cst.Call):
        return True
    own = program.values.class_named(source.func)
    if own is not None:
        return _may_be_model_class(program, own)
    return not _is_of_others(program, source.func)


def _may_be_model_class(program: Program, owner: cst.ClassDef) -> bool:
    """Whether a class of the file has the `load_weights` of a base class that is not known."""
    scopes = (scope for scope in program.scopes.all if scope.node is owner)
    if any("load_weights" in scope.bindings for scope in scopes):
        return False
    return any(not _is_of_others(program, base.value) for base in owner.bases)


def _is_of_others(program: Program, node: cst.BaseExpression) -> bool:
    """Whether a class or function is one of another library."""
    return any(path.partition(".")[0] in LOOK_ALIKES for path in program.paths_of(node))


def _of_models(program: Program) -> Iterator[Proposal]:
    """The calls of `load_model` of Keras."""
    imported = [found for found in program.imports() if found.path.endswith(".load_model")]
    names = [load for found in imported for load in program.loads_of(found.scope, found.name)]
    for node in [*program.attributes("load_model"), *names]:
        call = program.call_of(node)
        if call is None or not program.is_of_tensorflow(node):
            continue
        message = _OF_MODEL.format(_path(program, call, 0))
        yield Proposal.note(node, _CODE, "load_model", message)


RULE = Rule(
    codes={"LS409": "a restore beside an optimizer that is migrated for Keras 3"},
    summary="restores of runs that Keras 2 saved, noted for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    reports=reports,
    cases="""
        # not on Keras 2
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          tf.train.Checkpoint(net=net, opt=opt).restore("run/ckpt-1")

        # not without an optimizer that is migrated
        > --keras 3
          import tensorflow as tf

          tf.keras.mixed_precision.set_global_policy("mixed_float16")
          tf.train.Checkpoint(net=net).restore("run/ckpt-1")

        # a checkpoint with a manager
        > safe, --keras 3: tfls.checkpoints.restore(manager.latest_checkpoint, checkpoint)
          import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          checkpoint = tf.train.Checkpoint(net=net, opt=opt)
          manager = tf.train.CheckpointManager(checkpoint, "run", max_to_keep=3)
          checkpoint.restore(manager.latest_checkpoint).expect_partial()

        # parameters with the name of a checkpoint, and not others
        > safe, --keras 3: tfls.checkpoints.restore(path, ckpt)
          import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          def resume(ckpt, canvas, path):
              ckpt.restore(path)
              canvas.restore(path)

        # weights, to the shim
        > safe, --to shim, --keras 3: tfls.checkpoints.restore("weights", net)
          import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
          net.load_weights("weights")

        # not of another class
        > safe, --keras 3
          import snapshots
          import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          snapshots.Snapshot(opt).restore("run/ckpt-1")
          snapshots.load_weights(opt)
    """,
)
