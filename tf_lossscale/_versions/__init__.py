"""All that is known about versions of TensorFlow and Keras, and the private modules that we need.

Nothing else compares versions or imports a private module of TensorFlow; each private name here
says why there is no public one.
"""

from tf_lossscale._versions.base import (
    TF_VERSION,
    module_dicts,
    not_converted,
    original,
    tf,
    tf1,
    where,
)
from tf_lossscale._versions.checkpoints import (
    LEGACY_KEEPS_INNER_APART,
    Trackable,
    TrackableReference,
    asked_by_checkpoint,
)
from tf_lossscale._versions.graph_rewrite import (
    graph_rewrite_is_on,
    mixed_policy_is_set,
    plain_session_exists,
    set_graph_rewrite,
)
from tf_lossscale._versions.graphs import (
    call_round_by_round,
    current_loop,
    in_control_flow,
    in_loop_of_session,
    in_xla_context,
    keep_conditional_whole,
)
from tf_lossscale._versions.keras import (
    KERAS_PACKAGES,
    KerasFamily,
    calling_keras,
    deserialize_optimizer,
    is_keras_object,
    keras_family,
    keras_packages,
    loaded_keras,
    loaded_keras_packages,
    policy_of_layer,
    register_loss_scale_optimizer,
)
from tf_lossscale._versions.keras_2 import (
    LEGACY_AGGREGATES_ALWAYS,
    LEGACY_CLIPS_WHEN_APPLIED,
    aggregate_gradients,
    asked_by_compile,
    show_to_keras_session,
)
from tf_lossscale._versions.keras_3 import (
    keras_3_can_be_given_sums,
    keras_3_is_given_sums,
    keras_3_takes_sums,
)
from tf_lossscale._versions.replicas import (
    already_summed,
    estimator_scales_loss,
    graph_of_all_replicas,
    has_own_sum,
    local_replica_started_eagerly,
    map_replicas,
    per_replica,
    replica_id,
    replicas_of_workers_before,
    sum_is_off,
    supports_merge_call,
)
from tf_lossscale._versions.tpu import in_tpu_replication, tpu_shards

__all__ = [
    "KERAS_PACKAGES",
    "LEGACY_AGGREGATES_ALWAYS",
    "LEGACY_CLIPS_WHEN_APPLIED",
    "LEGACY_KEEPS_INNER_APART",
    "TF_VERSION",
    "KerasFamily",
    "Trackable",
    "TrackableReference",
    "aggregate_gradients",
    "already_summed",
    "asked_by_checkpoint",
    "asked_by_compile",
    "call_round_by_round",
    "calling_keras",
    "current_loop",
    "deserialize_optimizer",
    "estimator_scales_loss",
    "graph_of_all_replicas",
    "graph_rewrite_is_on",
    "has_own_sum",
    "in_control_flow",
    "in_loop_of_session",
    "in_tpu_replication",
    "in_xla_context",
    "is_keras_object",
    "keep_conditional_whole",
    "keras_3_can_be_given_sums",
    "keras_3_is_given_sums",
    "keras_3_takes_sums",
    "keras_family",
    "keras_packages",
    "loaded_keras",
    "loaded_keras_packages",
    "local_replica_started_eagerly",
    "map_replicas",
    "mixed_policy_is_set",
    "module_dicts",
    "not_converted",
    "original",
    "per_replica",
    "plain_session_exists",
    "policy_of_layer",
    "register_loss_scale_optimizer",
    "replica_id",
    "replicas_of_workers_before",
    "set_graph_rewrite",
    "show_to_keras_session",
    "sum_is_off",
    "supports_merge_call",
    "tf",
    "tf1",
    "tpu_shards",
    "where",
]
