"""Reports `policy.loss_scale`, which final policies do not have.

The final policy (TensorFlow 2.4) has no loss scale; reading the attribute raises an
AttributeError. The scale now belongs to the optimizer, which the rule does not know. A parameter or
an attribute that is called a policy counts, too, in a file that uses the experimental API.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._family import group_of, may_read_loss_scale, reads_of_loss_scale

__all__ = ["RULE"]

_MESSAGE = "policies no longer have a loss scale: use optimizer.loss_scale"
_PERHAPS = "if this is a Keras policy, it no longer has a loss scale: use optimizer.loss_scale"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each read on what is certainly a policy, or is called one."""
    certain = program.cached(reads_of_loss_scale)
    for node, reference in {**certain, **may_read_loss_scale(program)}.items():
        yield Proposal(
            node=node,
            code="LS605",
            symbol="Policy.loss_scale",
            outcome=Safety.MANUAL,
            message=_MESSAGE if node in certain else _PERHAPS,
            group=group_of(reference),
            blocks=True,
        )


RULE = Rule(
    codes={"LS605": "loss_scale of a policy"},
    summary="policy.loss_scale, which was removed, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a hyperparameter with the same name",
            """\
            from tensorflow.keras import mixed_precision

            print(hparams.loss_scale)
            """,
        ),
        Example(
            "not the loss scale of an optimizer",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt)
            print(opt.loss_scale)
            """,
        ),
        Example(
            "not for the shim, whose policies have a loss scale",
            """\
            from tf_lossscale.keras.mixed_precision import experimental

            print(experimental.global_policy().loss_scale)
            """,
            target=Target.SHIM,
        ),
        Example(
            "a read of what is called a policy, beside the experimental API",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            def setup(policy):
                prec.set_policy(policy)
                return policy.loss_scale is not None
            """,
            None,
            Safety.MANUAL,
            message_contains="if this is a Keras policy",
        ),
        Example(
            "a read of the final policy's loss scale",
            """\
            from tensorflow.keras import mixed_precision

            policy = mixed_precision.global_policy()
            print(policy.loss_scale)
            """,
            None,
            Safety.MANUAL,
            message_contains="optimizer",
        ),
        Example(
            "a read of the experimental policy's loss scale keeps its constructor unchanged",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            prec.set_policy("mixed_float16")
            print(prec.global_policy().loss_scale)
            """,
            None,
            Safety.MANUAL,
            message_contains="optimizer",
        ),
    ),
)
