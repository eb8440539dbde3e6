"""The dotted paths of modules, which can be relative ones such as `..` or `.amp`."""

from __future__ import annotations

__all__ = ["below"]


def below(module: str, name: str) -> str:
    """The path of a name in a module.

    >>> below("pkg.amp", "Wrap"), below("..", "amp")
    ('pkg.amp.Wrap', '..amp')
    """
    return f"{module}{name}" if module.endswith(".") else f"{module}.{name}"
