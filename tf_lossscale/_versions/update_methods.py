"""The methods of optimizers that update variables without the decision of a loss-scale optimizer.

Optimizers that wrap another one call them on it, for each variable: Lookahead, MovingAverage and
SWA of tensorflow-addons, and many that accumulate gradients. Around a loss-scale optimizer they
would apply gradients that nobody has tested, and the scale would never change. TensorFlow's classes
raise an error there. Other methods that such wrappers call, such as `_create_slots`, `_prepare` and
`get_slot`, work on TensorFlow's classes, and so on our classes.
"""

from typing import Dict, Tuple

UPDATE_METHODS: Dict[str, Tuple[str, ...]] = {
    "v1": (
        "_apply_dense",
        "_apply_sparse",
        "_apply_sparse_duplicate_indices",
        "_resource_apply_dense",
        "_resource_apply_sparse",
        "_resource_apply_sparse_duplicate_indices",
    ),
    "legacy": (
        "_distributed_apply",
        "_resource_apply_dense",
        "_resource_apply_sparse",
        "_resource_apply_sparse_duplicate_indices",
    ),
    "new": (
        "_apply_weight_decay",
        "_distributed_apply_gradients_fn",
        "_internal_apply_gradients",
        "_update_step",
        "_update_step_xla",
        "update_step",
    ),
    "keras3": (
        "_backend_apply_gradients",
        "_backend_update_step",
        "_distributed_tf_update_step",
        "update_step",
    ),
}
"""Of optimizers of TensorFlow 1, and of each kind of Keras optimizer."""
