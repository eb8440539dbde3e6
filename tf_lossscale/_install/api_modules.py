"""Decides by its name whether a module of TensorFlow or Keras may need our symbols.

TensorFlow's public API is a tree of modules, and one process contains several such trees:
`tf.train` is `tensorflow._api.v2.train`, `import tensorflow.train` creates a second module from the
same file, `compat.v1` is a third tree, and Keras has its own, which is loaded late. So `install()`
does not walk TensorFlow's attributes; it recognizes every module of such a tree by its name
(`namespace_of`).
"""

from typing import List, Optional

from tf_lossscale import _paths
from tf_lossscale._versions.originals import API_ROOTS, COMPILERS, tf_keras_is_in_use

__all__ = [
    "is_of_interest",
    "is_private",
    "join",
    "namespace_of",
    "namespaces_below",
    "private_below",
]

# Modules of TensorFlow itself on every version, above some of `_paths.PRIVATE`.
TENSORFLOW_HAS = ("python", "python.keras", "python.keras.mixed_precision")


def namespace_of(module_name: str) -> Optional[str]:
    """Returns which namespace a module of TensorFlow's or Keras's API is, by its name.

    >>> namespace_of("tensorflow._api.v2.train")
    'train'
    >>> namespace_of("keras._tf_keras.keras.mixed_precision")
    'keras.mixed_precision'

    Args:
      module_name: such as `tensorflow._api.v2.train`.

    Returns:
      `train`; the empty string for the top; None if the module is not part of the API, or the
      namespace has none of our symbols.
    """
    if module_name.startswith("tf_keras") and not tf_keras_is_in_use():
        return None  # our policies are based on `tf.keras`
    for root, namespace in API_ROOTS:
        if module_name == root:
            return namespace
        if module_name.startswith(root + "."):
            found = join(namespace, module_name[len(root) + 1 :])
            known = found in _paths.NAMESPACES or found in _paths.VIEWS or namespaces_below(found)
            return found if known else None
    return None


def namespaces_below(namespace: str) -> List[str]:
    """Returns the namespaces directly below one.

    >>> namespaces_below("contrib")
    ['mixed_precision', 'tpu']

    Args:
      namespace: TensorFlow's path without `tf.`; the empty string for the top.
    """
    prefix = join(namespace, "")
    return sorted(
        {
            each[len(prefix) :].split(".")[0]
            for each in [*_paths.NAMESPACES, *_paths.VIEWS]
            if each.startswith(prefix)
        }
    )


def is_private(module_name: str) -> bool:
    """Returns whether a module has no public name, but exposes our symbols, or has one below it.

    >>> is_private("tensorflow.contrib.mixed_precision.python.loss_scale_manager")
    True
    >>> is_private("tensorflow.contrib.mixed_precision")
    False

    Args:
      module_name: such as `tensorflow.contrib.tpu.python`.
    """
    root, _, namespace = module_name.partition(".")
    return root == "tensorflow" and (namespace in _paths.PRIVATE or bool(private_below(namespace)))


def private_below(namespace: str) -> List[str]:
    """Returns the modules without a public name directly below one without a public name.

    >>> private_below("contrib.tpu.python")
    ['ops', 'tpu']

    Args:
      namespace: TensorFlow's path without `tf.`.
    """
    prefix = namespace + "."
    below = [each[len(prefix) :] for each in _paths.PRIVATE if each.startswith(prefix)]
    if namespace in _paths.NAMESPACES or namespaces_below(namespace) or namespace in TENSORFLOW_HAS:
        return []
    return sorted({each.split(".")[0] for each in below})


def is_of_interest(module_name: str) -> bool:
    """Returns whether `install()` may have to change a module, or to supply it."""
    return (
        module_name in COMPILERS or namespace_of(module_name) is not None or is_private(module_name)
    )


def join(namespace: str, child: str) -> str:
    """Returns the path of `child` below a namespace; the empty string is the top."""
    return namespace + "." + child if namespace else child
