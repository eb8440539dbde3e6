"""What functions do with a tensor in control flow of Python, which AutoGraph converts."""

from typing import Any

import tensorflow as tf
from tensor_uses import Uses


def _if(x: Any) -> Any:
    if x > 1.0:
        result = x * 2.0
    else:
        result = 0.0
    return result


def _if_returns(x: Any) -> Any:
    if x == 8.0:
        return x
    return x * 0.0


def _conditional(x: Any) -> Any:
    return x if x > 100.0 else x + 1.0


def _if_itself(x: Any) -> Any:
    result = 0.0
    if x:
        result = 1.0
    return result


def _not_and(x: Any) -> Any:
    return not (x > 1.0 and x < 9.0)


def _while(x: Any) -> Any:
    value = x
    while value > 1.0:
        value = value / 2.0
    return value


def _while_up_to(x: Any) -> Any:
    count = tf.constant(0.0)
    while count < x:
        count += 3.0
    return count


def _for(x: Any) -> Any:
    total = tf.constant(0.0)
    for number in tf.range(3.0):
        total += number * x
    return total


def _for_carries(x: Any) -> Any:
    scale = x
    for _ in tf.range(2):
        scale = scale * 2.0
    return scale


def _for_breaks(x: Any) -> Any:
    total = tf.constant(0.0)
    for number in tf.range(10.0):
        if number > x:
            break
        total = number
    return total


def _for_over_dataset(x: Any) -> Any:
    total = tf.constant(0.0)
    for number in tf.data.Dataset.range(3):
        total += tf.cast(number, tf.float32) * x
    return total


def _assert(x: Any) -> Any:
    assert x > 1.0, "message"
    return x + 1.0


def _print(x: Any) -> Any:
    print("scale", x)
    return x + 1.0


def _builtins(x: Any) -> Any:
    return [abs(x), float(x), int(x), max(x, 9.0), min(x, 9.0)]


def _call_of_a_function(x: Any) -> Any:
    def helper(value: Any, scale: Any = x) -> Any:
        if value > scale:
            return value
        return scale * 1.0

    return helper(tf.constant(1.0)) + helper(x, 1.0)


def _list_append(x: Any) -> Any:
    values = []
    for _ in range(2):
        values.append(x)
    return tf.stack(values)


def _comprehension(x: Any) -> Any:
    return tf.stack([x * value for value in (1.0, 2.0)])


def _augmented(x: Any) -> Any:
    x += 1.0
    x /= 3.0
    return x


def _lambda(x: Any) -> Any:
    return (lambda value: value * x)(2.0)


def _try(x: Any) -> Any:
    try:
        return x * 1.0
    finally:
        tf.debugging.assert_equal(x, 8.0)


def _ternary_of_none(x: Any) -> Any:
    return 1.0 if x is None else x * 1.0


CONVERTED: Uses = {
    function.__name__[1:]: function
    for function in [
        *(_if, _if_returns, _conditional, _if_itself, _not_and, _while, _while_up_to, _for),
        *(_for_carries, _for_breaks, _for_over_dataset, _assert, _print, _builtins),
        *(_call_of_a_function, _list_append, _comprehension, _augmented, _lambda, _try),
        *(_ternary_of_none,),
    ]
}
