"""Values as JSON has them: without infinities and NaN, which many readers refuse."""

import math

from tf_lossscale._types import Json


def jsonable(value: object) -> Json:
    """Returns the value with strings for floats that are not finite, and lists for tuples.

    Named tuples become objects, with their fields as keys.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return value
