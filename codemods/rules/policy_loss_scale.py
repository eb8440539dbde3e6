"""Reports `policy.loss_scale`, which final policies do not have.

The final policy (TensorFlow 2.4) carries no loss scale; reading the attribute raises an
AttributeError. There is nothing to rewrite it to: the scale belongs to the optimizer now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ..model import Outcome, Target
from ..program import Program, Reference
from ..proposal import Proposal
from ..rule import Example, Rule
from ..values import sure_value

__all__ = ["RULE"]

_MESSAGE = "a policy no longer carries a loss scale: read the optimizer's (optimizer.loss_scale)"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each read on what is surely a policy."""
    if program.options.target is Target.SHIM:
        return
    for attribute in program.attributes("loss_scale"):
        reference = _policy(program, attribute.value)
        if reference is not None:
            legacy = reference.legacy
            yield Proposal(
                node=attribute,
                code="LS605",
                symbol="Policy.loss_scale",
                outcome=Outcome.MANUAL,
                message=_MESSAGE,
                group=f"{legacy.family}.{legacy.name}",
                blocks=True,
            )


def _policy(program: Program, node: cst.CSTNode) -> Optional[Reference]:
    """What makes the policy that `node` surely is."""
    if isinstance(node, cst.Name):
        binding = sure_value(program, node)
        made = binding.value if binding is not None else None
        return _policy(program, made) if isinstance(made, cst.Call) else None
    if not isinstance(node, cst.Call):
        return None
    reference = program.by_node.get(node.func)
    if reference is None or reference.legacy.rule not in ("LS602", "LS603", "LS604"):
        return None
    return reference


RULE = Rule(
    codes={"LS605": "loss_scale of a policy"},
    summary="policy.loss_scale, which is gone, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a hyperparameter of that name",
            """\
            from tensorflow.keras import mixed_precision

            print(hparams.loss_scale)
            """,
        ),
        Example(
            "not the optimizer's",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt)
            print(opt.loss_scale)
            """,
        ),
        Example(
            "not for the shim, whose policies have it",
            """\
            from tf_lossscale.keras.mixed_precision import experimental

            print(experimental.global_policy().loss_scale)
            """,
            target=Target.SHIM,
        ),
        Example(
            "a read of the final policy's",
            """\
            from tensorflow.keras import mixed_precision

            policy = mixed_precision.global_policy()
            print(policy.loss_scale)
            """,
            None,
            Outcome.MANUAL,
            says="optimizer",
        ),
    ),
)
