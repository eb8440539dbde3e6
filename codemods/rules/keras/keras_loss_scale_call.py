"""Rewrites `optimizer.loss_scale()` to `optimizer.loss_scale`.

Up to TensorFlow 2.3 the attribute was a callable loss scale; since 2.4 (release notes 2.4.0) it is
a float32 tensor, and calling it raises a TypeError. Other classes have a method of this name.

Evidence for safe: each value that the object can have is made by a class of Keras, at least one by
a loss-scale optimizer; branches, functions, parameters and attributes are followed, also through
the other files of the run. Calls on objects that may be something else are reported, as is any use
of the attribute as a loss scale with methods, such as `optimizer.loss_scale.update(gradients)`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.comments import keeping_comments
from ...rewrite.proposal import Proposal
from ..findings import report
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._loss_scale_receivers import is_loss_scale_optimizer, may_be_loss_scale_optimizer

__all__ = ["RULE"]

_PERHAPS = (
    "if this is a Keras loss-scale optimizer, drop the parentheses: loss_scale is a property since "
    "TensorFlow 2.4, and calling it raises a TypeError"
)


_OBJECT = (
    "if this is a Keras loss-scale optimizer, loss_scale is a tensor since TensorFlow 2.4, and no "
    "loss scale with methods: use the attributes of the optimizer"
)
_OF_LOSS_SCALES = frozenset(
    [
        "__call__",
        "_current_loss_scale",
        "_loss_scale_value",
        "_num_good_steps",
        "get_config",
        "increment_period",
        "initial_loss_scale",
        "multiplier",
        "update",
    ]
)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes to drop the parentheses where a Keras loss-scale optimizer's scale is called."""
    for attribute in program.attributes("loss_scale"):
        call = program.call_of(attribute)
        if call is None or call.args:
            if _is_used_as_loss_scale(program, attribute) and may_be_loss_scale_optimizer(
                program, attribute.value
            ):
                yield report(attribute, "LS302", "LossScaleOptimizer.loss_scale", _OBJECT)
            continue
        if not is_loss_scale_optimizer(program, attribute.value):
            if may_be_loss_scale_optimizer(program, attribute.value):
                yield report(call, "LS302", "LossScaleOptimizer.loss_scale", _PERHAPS)
            continue
        yield Proposal(
            node=call,
            code="LS302",
            symbol="LossScaleOptimizer.loss_scale",
            outcome=Safety.SAFE,
            message="loss_scale is a property since TensorFlow 2.4; parentheses dropped",
            edits=((call, _uncalled),),
            group=KERAS_OPTIMIZERS,
        )


def _is_used_as_loss_scale(program: Program, attribute: cst.Attribute) -> bool:
    """Whether the value of an attribute is read or called as an object, under a name or directly.

    Examples are `optimizer.loss_scale.update(grads)`, and `scale = optimizer.loss_scale; scale()`.
    """
    for node in [attribute, *_names_of(program, attribute)]:
        parent = program.parents.get(node)
        if node is not attribute and program.call_of(node) is not None:
            return True
        if isinstance(parent, cst.Attribute) and parent.attr.value in _OF_LOSS_SCALES:
            return True
    return False


def _names_of(program: Program, attribute: cst.Attribute) -> list[cst.Name]:
    """The reads of names that may be bound to the attribute."""
    parent = program.parents.get(attribute)
    if not isinstance(parent, cst.Assign):
        return []
    return [
        name
        for one in parent.targets
        if isinstance(one.target, cst.Name)
        for name, scope in program.scopes.loads.items()
        if any(binding.node is one.target for binding in scope.bindings_of(name.value))
    ]


def _uncalled(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Call)
    function = node.func
    read = keeping_comments(node, function)
    if read is None or read is function:
        return function.with_changes(
            lpar=[*node.lpar, *function.lpar], rpar=[*function.rpar, *node.rpar]
        )
    # the comment stood between the call's parentheses; it needs some to stand in
    left, right = node.lpar or [cst.LeftParen()], node.rpar or [cst.RightParen()]
    return read.with_changes(lpar=left, rpar=right)


RULE = Rule(
    codes={"LS302": "loss_scale() of a Keras LossScaleOptimizer"},
    summary="optimizer.loss_scale() to optimizer.loss_scale",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a method of a class that the program defines",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Scaler:
                def scale(self):
                    return self.loss_scale()
            """,
        ),
        Example(
            "not where the optimizer may be of another class",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            def train(opt, fp16):
                if fp16:
                    opt = LossScaleOptimizer(opt)
                print(opt.loss_scale())
            """,
            None,
            Safety.MANUAL,
            message_contains="TypeError",
        ),
        Example(
            "not a read",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            print(opt.loss_scale)
            """,
        ),
        Example(
            "not after the name is bound again",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            opt = Scaler(opt)
            print(opt.loss_scale())
            """,
        ),
        Example(
            "not in a loop that binds the name again",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            for scaler in scalers:
                print(opt.loss_scale())
                opt = scaler
            """,
            None,
            Safety.MANUAL,
            message_contains="TypeError",
        ),
        Example(
            "not after it was unwrapped under the check",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            def log(opt):
                if isinstance(opt, LossScaleOptimizer):
                    opt = opt.inner_optimizer
                    print(opt.loss_scale())
            """,
        ),
        Example(
            "reported where another file makes the optimizer",
            """\
            import tensorflow as tf
            from helpers import make_optimizer

            opt = make_optimizer(fp16=True)
            print(opt.loss_scale())
            """,
            None,
            Safety.MANUAL,
            message_contains="drop the parentheses",
        ),
        Example(
            "an optimizer that is a parameter",
            """\
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            def log(opt):
                print(opt.loss_scale())
            """,
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            def log(opt):
                print(opt.loss_scale())
            """,
            Safety.SAFE,
            message_contains="TypeError",
        ),
        Example(
            "after the optimizer was wrapped",
            """\
            import tensorflow as tf

            opt = tf.keras.optimizers.SGD()
            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")

            def log():
                print(float(opt.loss_scale()))
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.optimizers.SGD()
            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)

            def log():
                print(float(opt.loss_scale))
            """,
            Safety.SAFE,
        ),
        Example(
            "an optimizer that a function wraps on one of two paths",
            """\
            import tensorflow as tf

            def make(fp16):
                opt = tf.keras.optimizers.SGD()
                if fp16:
                    opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
                return opt

            opt = make(True)
            print(opt.loss_scale())
            """,
            """\
            import tensorflow as tf

            def make(fp16):
                opt = tf.keras.optimizers.SGD()
                if fp16:
                    opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
                return opt

            opt = make(True)
            print(opt.loss_scale)
            """,
            Safety.SAFE,
        ),
        Example(
            "the graph rewrite of a Keras optimizer, for the shim",
            """\
            import tensorflow as tf

            opt = tf.keras.optimizers.SGD()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            print(opt.loss_scale())
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tf.keras.optimizers.SGD()
            opt = tfls.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            print(opt.loss_scale)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "a comment between the parentheses stays",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            scale = opt.loss_scale(  # now
            )
            """,
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            scale = (opt  # now
                .loss_scale)
            """,
            Safety.SAFE,
        ),
        Example(
            "an attribute of the class",
            """\
            from tensorflow.keras.mixed_precision import experimental

            class Trainer:
                def __init__(self, optimizer):
                    self.optimizer = experimental.LossScaleOptimizer(optimizer, "dynamic")

                def log(self):
                    return self.optimizer.loss_scale()
            """,
            """\
            from tensorflow.keras import mixed_precision

            class Trainer:
                def __init__(self, optimizer):
                    self.optimizer = mixed_precision.LossScaleOptimizer(optimizer)

                def log(self):
                    return self.optimizer.loss_scale
            """,
            Safety.SAFE,
        ),
        Example(
            "under an isinstance check, for the shim",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            def _log(opt):
                return opt.loss_scale() if isinstance(opt, LossScaleOptimizer) else 1.0

            _log(LossScaleOptimizer(tf.keras.optimizers.SGD(), "dynamic"))
            """,
            """\
            import tensorflow as tf
            from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

            def _log(opt):
                return opt.loss_scale if isinstance(opt, LossScaleOptimizer) else 1.0

            _log(LossScaleOptimizer(tf.keras.optimizers.SGD(), "dynamic"))
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
