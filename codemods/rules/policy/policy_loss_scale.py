"""Reports `policy.loss_scale`, which final policies do not have.

The final policy (TensorFlow 2.4) has no loss scale; reading the attribute raises an
AttributeError. The scale now belongs to the optimizer, which the rule does not know. A parameter or
an attribute that is called a policy counts, too, in a file that uses the experimental API. The
policies of such a program stay on the shim's, which keep the attribute up to TensorFlow 2.8.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Group
from ...resolve.mentions import reads_of
from ...resolve.tree import last_name
from ...resolve.values import sources_of
from ..rule import Program, Proposal, Rule

__all__ = ["RULE"]

_SYMBOL = "Policy.loss_scale"
_WHY = "the final policy has no loss scale"
_MESSAGE = "policies have no loss scale from TensorFlow 2.9 on: use optimizer.loss_scale"
_PERHAPS = f"if this is a Keras policy: {_MESSAGE}"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each read on what is certainly a policy, or is called one."""
    if program.options.to_shim:
        return
    policies = [one.legacy for one in program.references if one.legacy.is_policy]
    is_experimental = any(legacy.rule for legacy in policies)
    for node, receiver in reads_of(program, "loss_scale") if policies else ():
        is_certain = _is_policy(program, receiver)
        if is_certain or (is_experimental and "policy" in last_name(receiver).lower()):
            if is_experimental and not program.goes_to_shim(Group.POLICIES):
                yield Proposal.place_needs_shim(node, "LS605", _SYMBOL, Group.POLICIES, _WHY)
            yield Proposal.report(node, "LS605", _SYMBOL, _MESSAGE if is_certain else _PERHAPS)


def _is_policy(program: Program, node: cst.BaseExpression) -> bool:
    sources = sources_of(program, node)
    calls = [program.by_node.get(one.func) for one in sources if isinstance(one, cst.Call)]
    return len(calls) == len(sources) and all(
        made_by is not None and made_by.legacy.returns_policy for made_by in calls
    )


RULE = Rule(
    codes={"LS605": "loss_scale of a policy"},
    summary="policy.loss_scale, which was removed, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    cases="""
        # not a hyperparameter with the same name
          from tensorflow.keras import mixed_precision

          print(hparams.loss_scale)

        # a read of the final policy's loss scale
        > manual: optimizer
          from tensorflow.keras import mixed_precision

          policy = mixed_precision.global_policy()
          print(policy.loss_scale)
    """,
)
