"""The private methods by which programs change TensorFlow's loss-scale and cross-shard classes.

A subclass can override a method that the class calls on itself, also a private one. Our classes
call these methods as well, with the same arguments and in the same order. Where they have no step
to which the method belongs, the class statement is an error that names it: an override must not be
lost silently. `tests/shim/test_private_hooks.py` reads the lists from the installed classes again,
and compares the calls.

Methods of `Trackable` are left out. TensorFlow calls them on our objects, too.
"""

import inspect
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from tf_lossscale._types import Class, Method
from tf_lossscale._versions.base import has
from tf_lossscale._versions.releases import Since

Version = Tuple[int, int]


class Hook(NamedTuple):
    """A method that a class of TensorFlow or Keras calls on itself."""

    name: str
    first: Version = (1, 15)  # the first and the last TensorFlow whose class calls it
    last: Optional[Version] = None  # None: it is called to this day
    instead: str = ""  # what a program can do; empty for a method that our class calls, too

    def exists(self) -> bool:
        """Returns whether the installed TensorFlow's class calls it, if it has the class."""
        return has(self.first) and (self.last is None or not has(_after(self.last)))


def _after(version: Version) -> Version:
    return (version[0], version[1] + 1)


# Keras 3 divides gradients, tests them and handles both results in methods of its own. Our class
# makes the step of Keras 2 there, in which several replicas agree.
_STEP_OF_KERAS_3 = "override apply() here, or in the class of the inner optimizer"

PRIVATE_HOOKS: Dict[str, Tuple[Hook, ...]] = {
    "contrib": (Hook("_down_scale", last=(1, 15)),),
    "contrib manager": (Hook("_reset_stats", last=(1, 15)),),
    "v1": (
        Hook("_scale_loss"),
        Hook("_unscale_grads"),
        Hook("_scale_grad"),
        Hook("_doing_dynamic_loss_scaling"),
        Hook("_distributed_apply"),
        Hook("_apply_gradients"),
    ),
    "loss scale": (Hook("_add_weight"),),
    "cross-shard": (Hook("_verify_and_get_subgroup_size"),),
    "legacy": (
        Hook("_compute_gradients"),
        Hook("_apply_gradients"),
        Hook("_raise_if_strategy_unsupported", first=(2, 2), last=(2, 7)),
        Hook(
            "_apply_gradients_cross_replica",
            last=(2, 4),
            instead="override apply_gradients(), or _apply_gradients() for one replica",
        ),
    ),
    "new": (Hook("_apply_gradients", first=(2, 8)),),
    "keras3": (
        Hook("_overwrite_variable_with_gradient", first=(2, 20)),  # from Keras 3.10 on
        Hook("check_finite", first=(2, 16), instead=_STEP_OF_KERAS_3),
        Hook("_tf_apply", first=(2, 16), instead=_STEP_OF_KERAS_3),
        Hook("_common_apply", first=(2, 16), instead=_STEP_OF_KERAS_3),
        Hook("_stateful_handle_finite_grads", first=(2, 16), instead=_STEP_OF_KERAS_3),
        Hook("_stateful_handle_non_finite_grads", first=(2, 16), instead=_STEP_OF_KERAS_3),
        Hook("_unscale_grads", first=(2, 22), instead=_STEP_OF_KERAS_3),  # from Keras 3.16 on
    ),
}
"""By the class: of contrib and v1; for Keras, by the kind of the inner optimizer."""

_OF_THE_CLASSES = ("tf_lossscale", "tensorflow", "tensorflow_core", "keras", "tf_keras")


def hooks_of(*kinds: str) -> List[Hook]:
    return [hook for kind in kinds for hook in PRIVATE_HOOKS[kind]]


def is_overridden(instance: object, methods: Mapping[str, Method]) -> bool:
    """Returns whether a subclass or the instance itself overrides one of `methods`.

    These are the methods of our class, by name, as it defines them. A program may also have
    replaced one in our class.
    """
    return any(
        getattr(type(instance), name) is not method or name in vars(instance)
        for name, method in methods.items()
    )


def last_arguments_of_step(is_legacy: bool) -> int:
    """Returns how many arguments `_apply_gradients` of a Keras class gets after the variables.

    They are the name of the step and, from TensorFlow 2.2 to 2.4, whether to sum over replicas.
    """
    if not is_legacy:
        return 0
    passes_sums = has(Since.LEGACY_ACCEPTS_SUMS) and not has(Since.LEGACY_AGGREGATES_FIRST)
    return 2 if passes_sums else 1


def count_of_positions(method: Method, usual: int) -> int:
    """Returns how many arguments a method takes by position; `usual` if that cannot be known.

    With that many, an override that was written for another version can be called.
    """
    code = getattr(inspect.unwrap(getattr(method, "__func__", method)), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return usual
    is_bound = hasattr(method, "__func__")
    return int(code.co_argcount) - is_bound


def refuse_uncalled(cls: Class, *kinds: str) -> None:
    """Raises a TypeError if a subclass overrides a method that our class does not call.

    Methods of later versions than the installed one are not known to the program. Those of earlier
    versions are, because it may have been written for them.
    """
    for hook in hooks_of(*kinds):
        if hook.instead and has(hook.first) and _is_a_programs(cls, hook.name):
            raise TypeError(
                f"{cls.__name__} overrides {hook.name}(), which the loss-scale optimizer of "
                f"tf_lossscale does not call: {hook.instead}."
            )


def _is_a_programs(cls: Class, name: str) -> bool:
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    return owner is not None and owner.__module__.split(".")[0] not in _OF_THE_CLASSES
