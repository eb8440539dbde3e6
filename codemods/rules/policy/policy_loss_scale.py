"""Keeps the policies of a program on the shim that reads `policy.loss_scale`.

The final policy (TensorFlow 2.4) has no loss scale; reading the attribute raises an
AttributeError. The shim's experimental policies have it, on every TensorFlow, and `compile` uses
it. A parameter or an attribute that is called a policy counts, too, in a program that has
experimental policies.

A read of the loss scale of a final policy fails on every TensorFlow, and is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...facts import Need
from ...model import Group
from ...resolve.mentions import reads_of
from ...resolve.tree import last_name
from ...resolve.values import sources_of
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule

__all__ = ["RULE"]

_SYMBOL = "Policy.loss_scale"
_WHY = "the final policy has no loss scale"
_MESSAGE = (
    "policies of the final API have no loss scale, in any TensorFlow: read the loss_scale of the "
    "optimizer where it is made"
)


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The reads on what is an experimental policy, or is called a policy."""
    for node, receiver in reads_of(program, "loss_scale"):
        made_by = _made_by(program, receiver)
        if (made_by and not _is_final(program, made_by)) or _is_called_policy(receiver):
            yield Obstacle(node, Need(Group.POLICIES, "LS605", _SYMBOL, _WHY))


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each read on what is certainly a final policy."""
    for node, receiver in reads_of(program, "loss_scale"):
        made_by = _made_by(program, receiver)
        if made_by and _is_final(program, made_by):
            yield Proposal.report(node, "LS605", _SYMBOL, _MESSAGE)


def _is_called_policy(receiver: cst.BaseExpression) -> bool:
    return "policy" in last_name(receiver).lower()


def _made_by(program: Program, node: cst.BaseExpression) -> list[cst.Call]:
    """The calls that make a policy; none if anything else can make it."""
    sources = sources_of(program, node)
    calls = [one for one in sources if isinstance(one, cst.Call)]
    references = [program.by_node.get(call.func) for call in calls]
    is_policy = all(one is not None and one.legacy.returns_policy for one in references)
    return calls if is_policy and len(calls) == len(sources) else []


def _is_final(program: Program, calls: list[cst.Call]) -> bool:
    """Whether all calls are of the final API."""
    return all(program.by_node[call.func].legacy.is_final_path for call in calls)


RULE = Rule(
    codes={"LS605": "loss_scale of a policy"},
    summary="policies with a loss scale that is read, on the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    needs=needs,
    reports=reports,
    cases="""
        # not a hyperparameter with the same name
          from tensorflow.keras import mixed_precision

          print(hparams.loss_scale)

        # a read of the final policy's loss scale
        > manual: optimizer
          from tensorflow.keras import mixed_precision

          policy = mixed_precision.global_policy()
          print(policy.loss_scale)

        # on the shim where the loss scale of a policy is read
        > safe: has no loss scale
        - from tensorflow.keras.mixed_precision import experimental as prec
        + from tf_lossscale.keras.mixed_precision import experimental as prec

          prec.set_policy("mixed_float16")
          print(prec.global_policy().loss_scale)
    """,
)
