"""The installed TensorFlow, its version, and helpers for all other modules."""

import contextlib
import functools
import importlib
from typing import Any, Callable, Iterator, Sequence, Tuple, TypeVar

from tf_lossscale._types import Method
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


@contextlib.contextmanager
def overridden(owners: Sequence[object], method: str, function: Method) -> Iterator[None]:
    """Replaces a method of each owner by a function that also gets the method, within the block.

    Blocks may be nested or overlap, because the replicas of a process take turns while a step is
    built: the method is restored when the last block is left.
    """
    saved = "_tfls_overrides_of_" + method
    for owner in owners:
        own = vars(owner)
        own.setdefault(saved, []).append({method: own[method]} if method in own else {})
        if len(own[saved]) == 1:
            # As Python binds it: a program may have replaced it in the object itself.
            own[method] = functools.partial(function, getattr(owner, method, None))
    try:
        yield
    finally:
        for owner in owners:
            own = vars(owner)
            first = own[saved].pop()
            if not own[saved]:
                del own[saved], own[method]
                own.update(first)
