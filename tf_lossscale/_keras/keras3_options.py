"""The options of Keras 3's base class, which a wrapper leaves to its inner optimizer."""

from typing import Any

__all__ = ["OPTIONS", "InnerOption"]


class InnerOption:
    """An option of Keras 3's base class that is the inner optimizer's.

    The base class reads its options when it makes its variables; the wrapper itself has none set,
    so that its variables are those of the installed class.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, wrapper: Any, owner: Any = None) -> Any:
        if wrapper is None:
            return self
        if wrapper.__dict__.get("_forwards_options"):
            return getattr(wrapper.inner_optimizer, self.name)
        return wrapper.__dict__.get("_own_options", {}).get(self.name)

    def __set__(self, wrapper: Any, value: Any) -> None:
        if wrapper.__dict__.get("_forwards_options"):
            setattr(wrapper.inner_optimizer, self.name, value)
        else:
            wrapper.__dict__.setdefault("_own_options", {})[self.name] = value


OPTIONS = (
    "clipnorm",
    "clipvalue",
    "ema_momentum",
    "ema_overwrite_frequency",
    "global_clipnorm",
    "gradient_accumulation_steps",
    "use_ema",
    "weight_decay",
)
