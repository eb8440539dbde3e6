"""Which releases of TensorFlow and Keras have which Keras API. Imports nothing of TensorFlow.

`tf.keras` is Keras 3 from TensorFlow 2.16 on, unless the environment variable TF_USE_LEGACY_KERAS
has one of the values below; then it is Keras 2, from the package tf-keras.
"""

__all__ = ["FIRST_WITH_KERAS_3", "LAST_WITH_KERAS_2", "LEGACY_KERAS", "LEGACY_KERAS_VALUES"]

LAST_WITH_KERAS_2 = {"tensorflow": (2, 15, 1), "keras": (2, 15, 0)}
"""The last releases with Keras 2, as (major, minor, patch)."""

FIRST_WITH_KERAS_3 = {"tensorflow": (2, 16, 0), "keras": (3, 0, 0)}
"""The first releases with Keras 3."""

LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
"""The environment variable that selects Keras 2 for `tf.keras`."""

LEGACY_KERAS_VALUES = ("1", "true", "True")
"""The values that select it; TensorFlow ignores all others."""
