"""The options of Keras 3's base class, which a wrapper delegates to its inner optimizer."""

from typing import Any

__all__ = ["OPTIONS", "InnerOption"]


class InnerOption:
    """Descriptor of an option that is read from and set on the inner optimizer.

    While the base class creates the wrapper's variables, it must see no options set. Otherwise the
    wrapper would have more variables than the installed class.
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
