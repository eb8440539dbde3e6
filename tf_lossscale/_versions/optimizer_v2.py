"""How `OptimizerV2` of Keras 2 makes a step in each TensorFlow: its sums, clips and arguments."""

import enum
from typing import Any, Dict, Optional, Sequence

from tf_lossscale._types import Operation, Optimizer, Pair, Pairs
from tf_lossscale._versions.base import has
from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.keras_optimizers import overrides
from tf_lossscale._versions.releases import Since
from tf_lossscale._versions.replicas import already_summed


class Sums(enum.Enum):
    """Where a step of the original loss-scale optimizer sums the gradients of the replicas."""

    # Up to 2.1: `_distributed_apply` of the inner optimizer always does.
    IN_DISTRIBUTED_APPLY = enum.auto()
    # 2.2 to 2.4: the inner `apply_gradients` does, unless an argument turns it off.
    IN_APPLY_GRADIENTS = enum.auto()
    # From 2.5 on: the loss-scale optimizer does, before it tests the gradients.
    BEFORE_THE_TEST = enum.auto()


def _where_sums_are() -> Sums:
    if has(Since.LEGACY_AGGREGATES_FIRST):
        return Sums.BEFORE_THE_TEST
    if has(Since.LEGACY_ACCEPTS_SUMS):
        return Sums.IN_APPLY_GRADIENTS
    return Sums.IN_DISTRIBUTED_APPLY


SUMS = _where_sums_are()

COMPUTES_WITH_TAPE = has(Since.LEGACY_COMPUTES_WITH_TAPE)

# Up to 2.3, `minimize` clips the scaled gradients; `apply_gradients` never clips.
CLIPS_WHEN_APPLIED = has(Since.LEGACY_CLIPS_WHEN_APPLIED)

READS_RATE_BEFORE_IT_SETS = has(Since.LEGACY_READS_RATE_BEFORE_IT_SETS)

# Before, the inner optimizer is a child of the loss-scale optimizer in checkpoints.
SAVES_ONE_OBJECT = has(Since.LEGACY_SAVES_ONE_OBJECT)


def apply_gradients(
    inner: Optimizer,
    pairs: Sequence[Pair],
    name: Optional[str],
    aggregate: bool,
) -> Optional[Operation]:
    """Calls `apply_gradients` of an `OptimizerV2`, or its override, as this TensorFlow does.

    Args:
      inner: the optimizer.
      pairs: pairs of a gradient and its variable.
      name: name for the operation, or None.
      aggregate: whether it has to sum the gradients over the replicas.
    """
    if SUMS is Sums.IN_DISTRIBUTED_APPLY:
        with already_summed([] if aggregate else [inner]):
            return inner.apply_gradients(pairs, name)
    kwargs: Dict[str, Any] = {"experimental_aggregate_gradients": aggregate}
    if has(Since.LEGACY_GETS_NAME_BY_KEYWORD):
        return inner.apply_gradients(pairs, name=name, **kwargs)
    return inner.apply_gradients(pairs, name, **kwargs)


def has_own_aggregation(family: KerasFamily, optimizer: Optimizer) -> bool:
    """Returns whether an `OptimizerV2` sums gradients in its own way, as Horovod's do."""
    given = getattr(optimizer, "gradient_aggregator", None)
    module = getattr(given, "__module__", None) or ""
    if given is not None and module.split(".")[0] != family.package:
        return True
    return overrides(family, optimizer, "_aggregate_gradients", "_transform_unaggregated_gradients")


def has_own_transformation(family: KerasFamily, optimizer: Optimizer) -> bool:
    """Returns whether an `OptimizerV2` changes gradients in its own way before it applies them."""
    given = getattr(optimizer, "gradient_transformers", None)
    return bool(given) or overrides(family, optimizer, "_transform_gradients")


def aggregate_gradients(optimizer: Optimizer, pairs: Sequence[Pair]) -> Pairs:
    """Sums gradients as an `OptimizerV2` of TensorFlow 2.2 or later does when it applies them.

    The methods are private, but optimizers such as Horovod's override them. So they must be called:
    a sum of our own would leave out what the override does.
    """
    if not has(Since.LEGACY_AGGREGATES_PAIRS):
        variables = [variable for _, variable in pairs]
        return list(zip(optimizer._aggregate_gradients(pairs), variables))
    return list(optimizer._aggregate_gradients(optimizer._transform_unaggregated_gradients(pairs)))
