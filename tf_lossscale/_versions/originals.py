"""What TensorFlow and Keras have under a path, also where `install()` put a class of ours there.

It imports nothing of TensorFlow, so that `install()` can use it before TensorFlow is imported.
"""

from typing import Any, List, Optional, Tuple

from tf_lossscale._versions.api_modules import attribute_dicts

__all__ = ["forget_replaced", "note_replaced", "original"]

_replaced: List[Tuple[Any, str, Any]] = []
"""Owner, attribute and earlier value of all that is replaced now, oldest first."""


def note_replaced(owner: Any, name: str, value: Any) -> None:
    """Remembers what an attribute was before `install()` replaced it.

    Args:
      owner: an API module, or the wrapper of one.
      name: the attribute.
      value: what it was.
    """
    _replaced.append((owner, name, value))


def forget_replaced() -> None:
    """Forgets all that was noted, for `uninstall()`."""
    _replaced.clear()


def original(namespace: Any, name: str) -> Optional[Any]:
    """Returns what TensorFlow has under a path, also where `install()` put ours there, or None.

    Args:
      namespace: an API module, the wrapper of one, or None.
      name: the attribute.
    """
    if namespace is None:
        return None
    # First, because a look at the path itself may import ours, which may be what asks.
    replaced = _replaced_value(namespace, name)
    return getattr(namespace, name, None) if replaced is None else replaced


def _replaced_value(namespace: Any, name: str) -> Optional[Any]:
    # A wrapper of a module and the module itself are one owner: they share dictionaries.
    own = {id(each) for each in attribute_dicts(namespace)}
    for owner, attribute, value in _replaced:
        if attribute == name and own.intersection(id(each) for each in attribute_dicts(owner)):
            return value
    return None
