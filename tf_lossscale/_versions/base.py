"""The installed TensorFlow, its version, and helpers for all other modules."""

import contextlib
import importlib
from typing import Any, Callable, Tuple, TypeVar

from tf_lossscale._versions.releases import FIRST_WITH_KERAS_3, SUPPORTED

_Function = TypeVar("_Function", bound=Callable[..., Any])

_INSTALL_HINT = (
    "tf_lossscale needs TensorFlow ({}), which is not installed here. Install it "
    "with `pip install 'tf-lossscale[tf]'`, or `pip install tensorflow-cpu` on a machine without a "
    "GPU; on TensorFlow {}.{} and later add `tf-keras` if your code uses Keras 2."
).format(SUPPORTED, *FIRST_WITH_KERAS_3["tensorflow"][:2])


def _import_tensorflow() -> Any:
    """Imports TensorFlow, with an error that says how to install it if it is missing."""
    try:
        import tensorflow
    except ImportError as error:
        if getattr(error, "name", None) == "tensorflow":
            raise ImportError(_INSTALL_HINT, name="tensorflow") from error
        raise  # TensorFlow is installed but broken: its own message is more helpful
    if not hasattr(tensorflow, "__version__"):
        # Python treats an empty folder of that name as a package, too.
        found = getattr(tensorflow, "__file__", None) or list(getattr(tensorflow, "__path__", []))
        raise ImportError(
            f"The `tensorflow` that is imported is not TensorFlow, but {found}. {_INSTALL_HINT}",
            name="tensorflow",
        )
    return tensorflow


tf: Any = _import_tensorflow()

_VERSION = tuple(int(number) for number in tf.__version__.split(".")[:2])

tf1: Any = tf.compat.v1


def has(since: Tuple[int, int]) -> bool:
    """Returns whether the installed TensorFlow has a behavior, a row of `releases.Since`."""
    return since <= _VERSION


def first_module(*names: str) -> Any:
    """Imports the first of several modules that exists: private modules move between versions."""
    for name in names:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise ImportError(
        f"tensorflow {tf.__version__} has none of the modules {', '.join(names)}; tf_lossscale "
        f"supports {SUPPORTED}"
    )


# `tf.where` of TensorFlow 1.15 is the old version, which logs a deprecation warning.
where: Any = tf.compat.v2.where

# AutoGraph converts what a `tf.function` calls, except TensorFlow itself. Our code replaces
# TensorFlow's and should not be converted either: public methods have this decorator.
do_not_convert: Callable[[_Function], _Function] = tf.autograph.experimental.do_not_convert
