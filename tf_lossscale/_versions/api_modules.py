"""The modules of TensorFlow's and Keras's public API, and where they store attributes.

This module does not import TensorFlow, because `install()` runs before TensorFlow is imported.
"""

import os
from typing import Any, Dict, List, Tuple

__all__ = ["API_ROOTS", "attribute_dicts", "is_lazy_loader", "tf_keras_is_in_use"]

API_ROOTS: Tuple[Tuple[str, str], ...] = (
    ("tensorflow._api.v1", ""),
    ("tensorflow._api.v2", ""),
    ("tensorflow_core._api.v1", ""),
    ("tensorflow.python.keras.api._v1.keras", "keras"),
    ("tensorflow.python.keras.api._v2.keras", "keras"),
    ("keras._tf_keras.keras", "keras"),
    ("keras.api._v1.keras", "keras"),
    ("keras.api._v2.keras", "keras"),
    ("tf_keras.api._v1.keras", "keras"),
    ("tf_keras.api._v2.keras", "keras"),
    ("tf_keras", "keras"),
    ("keras", "keras"),  # `tf.compat.v2.keras` is Keras 3 itself
    ("tensorflow_core", ""),
    ("tensorflow", ""),
)
"""Names of the top modules of the API trees, in all versions, and the namespace of each."""


def attribute_dicts(module: Any) -> List[Dict[str, Any]]:
    """Returns the dictionaries that contain the attributes of an API module.

    TensorFlow 1.15 to 2.8 put some API modules behind a wrapper, which caches the attributes that
    were read. It does not clear its cache when the attribute is deleted.
    """
    dicts = [vars(module)]
    cache = dicts[0].get("_tfmw_attr_map")
    if isinstance(cache, dict):
        dicts.append(cache)
    wrapped = dicts[0].get("_tfmw_wrapped_module")
    return dicts if wrapped is None else dicts + attribute_dicts(wrapped)


def is_lazy_loader(module: Any) -> bool:
    """Returns whether this is a placeholder for a module that TensorFlow loads on first use.

    Reading its attributes would load it.
    """
    return type(module).__name__.endswith("LazyLoader")


def tf_keras_is_in_use() -> bool:
    """Returns whether `tf.keras` is the package tf_keras, without importing TensorFlow."""
    return os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True")
