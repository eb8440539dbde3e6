"""What to look at next where gradients are not finite: sentences for records and monitors."""

import math
from typing import Optional

WITHOUT_EFFECT = 2.0**100
"""A loss scale that no scaled gradient of float16 survives."""
MINIMUM = 1.0
"""The smallest dynamic loss scale, except in Keras 3's own class and where programs lower it."""

FORWARD_PASS = (
    "look at the forward pass: tfls.monitoring.find_nonfinite_layer(model, inputs) names the Keras "
    "layer, tf.debugging.enable_check_numerics() (in a Session "
    "tf.compat.v1.add_check_numerics_ops()) the operation"
)
SCALES_NO_LOSS = (
    "no loss was scaled through the optimizer: unless the program multiplies it by the loss scale "
    "itself, call get_scaled_loss() (in Keras 3 scale_loss(), with v1 optimizers minimize() or "
    "compute_gradients())"
)
NOT_SEEN = (
    "no gradient was seen that was not finite: either they were not examined (--no-norm), or it "
    "happened in another worker or inside the inner optimizer"
)
NO_PROBLEM = "nothing points to a problem with the loss scale"
BELOW_WORKING = "skips continued below a scale that worked"
MIXED_FLOAT16 = (
    "mixed_float16 is on and nothing scales the loss, so small gradients become 0: wrap the "
    "optimizer in tfls.keras.mixed_precision.LossScaleOptimizer, and scale the loss with it where "
    "a loop of the program computes it"
)


def of_gradients(
    first: str, count: Optional[int], variables: int, last: Optional[str] = None
) -> str:
    """Returns whether to look at the forward pass or at one variable.

    `first` is the first of `variables` whose gradient was not finite, `last` the last one, and
    `count` is how many of them there were; None if that is unknown.
    """
    if count is not None and count == variables > 1:
        return f"no gradient was finite in a skipped step, so {FORWARD_PASS}"
    if count == 1 and variables > 1:
        return (
            f"only the gradient of {first} was not finite, so look at its backward pass: at "
            "operations such as a root, a logarithm or a division at 0"
        )
    if count is None or variables == 1:
        return f"look at the backward pass of {first} and at what it is computed from"
    if last is not None:
        return (
            f"{count} of {variables} gradients were not finite, from {first} to {last}, so look at "
            f"the backward pass of {last} and of what comes after it in the forward pass"
        )
    return (
        f"{count} of {variables} gradients were not finite, so look at the backward pass of "
        f"{first} and the variables after it, up to the last one that "
        "tfls.monitoring.find_nonfinite(grads_and_vars) lists"
    )


def doubt_of(steps: str) -> str:
    """Returns what steps that were not applied can mean, if no more is known."""
    return (
        f"not applied: {steps}. Either the gradients were too large for the loss scale, or they "
        "are infinite or NaN with any loss scale"
    )


def of_minimum(scale: float, minimum: float = MINIMUM) -> str:
    """Returns what to say of a loss scale that is at its minimum, or below the usual one."""
    where = f"stuck at its minimum, {scale:g}" if scale >= minimum else f"down to {scale:g}"
    return f"the loss scale is {where}"


def without_effect(scale: float) -> str:
    """Returns what it means that the loss scale has grown without a skipped step."""
    return (
        f"the loss scale has grown to 2^{math.log2(scale):.0f} without a skipped step, so scaling "
        "has no effect: either the loss is not scaled before its gradients are computed, or the "
        "model computes in float32 and needs no loss scale"
    )
