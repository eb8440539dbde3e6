"""Keeps the policies of a program on the shim that reads `policy.loss_scale`.

The final policy (TensorFlow 2.4) has no loss scale; reading the attribute raises an
AttributeError. The shim's experimental policies have it, on every TensorFlow, and `compile` uses
it. In a program that sets or makes experimental policies, `global_policy()` of the final API, and a
parameter or an attribute that is called a policy, may return one of them.

In any other program, a read of the loss scale of a final policy fails on every TensorFlow, and is
reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.tree import last_name
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, When

__all__ = ["RULE"]

_SYMBOL = "Policy.loss_scale"
_WHY = "the final policy has no loss scale"
_ABSENT = "policies of the final API have no loss scale, in any TensorFlow: "
_READ = _ABSENT + "read the loss_scale of the optimizer where it is made"
_DYNAMIC = _ABSENT + 'write "dynamic" for the loss scale'
_DEFAULT = _ABSENT + "leave the argument out, because dynamic scaling is the default"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The reads on what is an experimental policy, or may be one of another file."""
    for node, receiver in program.mentions.reads_of("loss_scale"):
        made_by = _made_by(program, receiver)
        when = When.IF_EXPERIMENTAL_POLICY
        if made_by and not _are_final(program, made_by):
            yield Obstacle.of_policies(node, "LS605", _SYMBOL, _WHY)
        elif _may_be_experimental(program, receiver, made_by):
            yield Obstacle.of_policies(node, "LS605", _SYMBOL, _WHY, when)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each read on what is certainly a final policy."""
    for node, receiver in program.mentions.reads_of("loss_scale"):
        made_by = _made_by(program, receiver)
        if not made_by or not _are_final(program, made_by):
            continue
        if not (
            decision.has_experimental_policy and _may_be_experimental(program, receiver, made_by)
        ):
            yield Proposal.report(node, "LS605", _SYMBOL, _guidance(program, node))


def _may_be_experimental(
    program: Program, receiver: cst.BaseExpression, made_by: list[cst.Call]
) -> bool:
    """Whether a policy is one that another place has set, or is only called a policy."""
    if made_by:
        return all(_name_of(program, call) == "global_policy" for call in made_by)
    return "policy" in last_name(receiver).lower()


def _guidance(program: Program, node: cst.CSTNode) -> str:
    """What to write in the place of a loss scale that no policy has."""
    for place in [node, *program.values.reads_of(node)]:
        argument = program.parents.get(place)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        reference = program.by_node.get(call.func) if isinstance(call, cst.Call) else None
        if reference is not None and reference.legacy.is_keras_optimizer:
            return _DYNAMIC if reference.legacy.is_experimental_optimizer else _DEFAULT
    return _READ


def _made_by(program: Program, node: cst.BaseExpression) -> list[cst.Call]:
    """The calls that make a policy; none if anything else can make it."""
    sources = program.values.sources_of(node)
    calls = [source for source in sources if isinstance(source, cst.Call)]
    references = [program.by_node.get(call.func) for call in calls]
    is_policy = all(
        reference is not None and reference.legacy.returns_policy for reference in references
    )
    return calls if is_policy and len(calls) == len(sources) else []


def _name_of(program: Program, call: cst.Call) -> str:
    return program.by_node[call.func].legacy.name


def _are_final(program: Program, calls: list[cst.Call]) -> bool:
    """Whether all calls are of the final API."""
    return all(program.by_node[call.func].legacy.is_of_final_api for call in calls)


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
