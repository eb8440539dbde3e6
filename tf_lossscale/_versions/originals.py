"""Finds the original symbols of TensorFlow and Keras, also after `install()` replaced them.

This module does not import TensorFlow, because `install()` runs before TensorFlow is imported.
"""

from typing import Any, List, Optional, Tuple

from tf_lossscale._versions.api_modules import attribute_dicts

__all__ = ["forget_replaced", "note_replaced", "original"]

_replaced: List[Tuple[Any, str, Any]] = []
"""Owner, attribute name and original value of each replaced attribute, oldest first."""


def note_replaced(owner: Any, name: str, value: Any) -> None:
    """Remembers the value of an attribute before `install()` replaces it.

    Args:
      owner: an API module, or the wrapper of one.
      name: the name of the attribute.
      value: the original value.
    """
    _replaced.append((owner, name, value))


def forget_replaced() -> None:
    """Forgets all values that were noted; called by `uninstall()`."""
    _replaced.clear()


def original(namespace: Any, name: str) -> Optional[Any]:
    """Returns the original value of a path, also after `install()` replaced it; None if missing.

    Args:
      namespace: an API module, the wrapper of one, or None.
      name: the name of the attribute.
    """
    if namespace is None:
        return None
    # First, because reading the attribute may import our class, whose module may be the caller.
    replaced = _replaced_value(namespace, name)
    return getattr(namespace, name, None) if replaced is None else replaced


def _replaced_value(namespace: Any, name: str) -> Optional[Any]:
    # A module and its wrapper count as one owner: they share dictionaries.
    own = {id(each) for each in attribute_dicts(namespace)}
    for owner, attribute, value in _replaced:
        if attribute == name and own.intersection(id(each) for each in attribute_dicts(owner)):
            return value
    return None
