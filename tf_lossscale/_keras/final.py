"""`tf.keras.mixed_precision.LossScaleOptimizer` of TensorFlow 2.4, on every Keras.

Keras 2 and Keras 3 each require a loss-scale optimizer to have their own base class. Keras 2 has
two such base classes since TensorFlow 2.11, and two versions of Keras may be loaded at once.
Therefore each kind has an *implementation*: a class whose bases are one of our wrappers and the
installed classes. The public class derives from the implementation for the optimizers of
`tf.keras`. An instance that wraps another kind of optimizer has a *derived class*: a subclass of
the public class, with the implementation for that kind in its method resolution order instead of
the first one. docs/keras.md describes the resulting `isinstance`.
"""

import copyreg
import functools
import inspect
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from tf_lossscale._core.same_class import SameClass
from tf_lossscale._import_hook import Subscriber, subscribe
from tf_lossscale._keras.keras2 import Keras2Wrapper, forwards
from tf_lossscale._keras.keras3 import Keras3Wrapper
from tf_lossscale._keras.legacy import OptimizerV2Wrapper
from tf_lossscale._types import Class, Method
from tf_lossscale._versions import files
from tf_lossscale._versions.base import do_not_convert
from tf_lossscale._versions.keras import (
    KERAS_PACKAGES,
    KerasFamily,
    KerasKind,
    default_family,
    loaded_families,
    loaded_keras_packages,
)
from tf_lossscale._versions.private_hooks import refuse_uncalled

_WRAPPERS = {
    KerasKind.LEGACY: OptimizerV2Wrapper,
    KerasKind.NEW: Keras2Wrapper,
    KerasKind.KERAS_3: Keras3Wrapper,
}


class OneKind(SameClass):
    """Metaclass that keeps only one implementation in the method resolution order.

    A derived class lists the public class first, and then the implementation that replaces the one
    the public class has. So the last implementation in the usual order is the one that is kept.
    """

    _family: KerasFamily  # of each class

    def __init__(cls, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        kinds = {KerasKind.LEGACY, KerasKind.NEW, cls._family.kind}
        refuse_uncalled(cls, *[kind.value for kind in kinds])

    def mro(cls) -> List[type]:
        """Puts one implementation into the order of classes: that of the last base class.

        A subclass of our public class for another kind of inner optimizer has two, that of the
        default kind and its own. The methods of both would mix.
        """
        order = type.mro(cls)
        implementations = [base for base in order if "_is_implementation" in vars(base)]
        if len(implementations) < 2:
            return order
        own = implementations[-1].__mro__
        others = {base for other in implementations[:-1] for base in other.__mro__} - {object}
        place = order.index(implementations[0])
        before = [base for base in order[:place] if base not in own]
        after = [base for base in order[place:] if base not in own and base not in others]
        # `object` must come last.
        return [*before, *own[:-1], *after, object]

    @property
    def __signature__(cls) -> inspect.Signature:
        # `inspect` would otherwise report the signature of `__call__`.
        signature = inspect.signature(cls.__init__)  # type: ignore[misc] # a subclass may change it
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def originals(cls) -> Iterable[Optional[Class]]:
        """Returns the installed classes of the same name and role, of every loaded Keras."""
        public = vars(cls).get("_derived_from", cls)
        if "role" not in vars(public):
            return  # a user's subclass
        for family in loaded_families() if public is cls else [cls._family]:
            # Up to TensorFlow 2.3 Keras had only the experimental class, which is both.
            if public.role == "experimental" or family.installed_final is None:
                yield family.installed_experimental
            else:
                yield family.installed_final if public is cls else family.installed_class

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        """Makes an instance, without requirements on the arguments.

        Since TensorFlow 2.9, the metaclass of the installed classes requires the inner optimizer as
        an argument, which the constructor of a subclass need not take.
        """
        return type.__call__(cls, *args, **kwargs)


@functools.lru_cache(maxsize=None)
def _implementation(family: KerasFamily) -> Class:
    """Returns our wrapper for a family, derived from what Keras tests for: its classes.

    The loss-scale class of that Keras and the base class of its optimizers. No method of these runs
    on a wrapper of Keras 2: `forwards` replaces them.
    """
    wrapper: Class = _WRAPPERS[family.kind]
    bases: Tuple[Class, ...] = (wrapper,)
    for installed in (family.installed_class, family.base):
        if installed is not None and not any(issubclass(base, installed) for base in bases):
            bases += (installed,)
    namespace: Dict[str, Any] = {}
    if family.kind is not KerasKind.KERAS_3:
        namespace = forwards(family.base, bases)
    namespace.update(_family=family, _is_implementation=True, _class_for=classmethod(_class_for))
    namespace.update(__doc__=wrapper.__doc__, __module__=__name__)
    name = wrapper.__name__.replace("Wrapper", "Implementation")
    return _metaclass_of(bases)(name, bases, namespace)


def _metaclass_of(bases: Sequence[Class]) -> Class:
    """Returns a metaclass that is compatible with all bases, creating one if needed."""
    given = list(dict.fromkeys([OneKind, *map(type, bases)]))
    most_derived = []
    for metaclass in given:
        others = [other for other in given if other is not metaclass]
        if not any(issubclass(other, metaclass) for other in others):
            most_derived.append(metaclass)
    return most_derived[0] if len(most_derived) == 1 else _combined(tuple(most_derived))


@functools.lru_cache(maxsize=None)
def _combined(metaclasses: Tuple[type, ...]) -> Class:
    metaclass = type("OneKind", metaclasses, {})
    copyreg.pickle(metaclass, _reduce_class)  # `pickle` looks up the exact class, not its bases
    return metaclass


def _reduce_class(cls: Class) -> Union[str, Tuple[Method, Tuple[Any, ...]]]:
    """Returns what `pickle` stores for a class; derived classes are not module attributes."""
    public = vars(cls).get("_derived_from")
    return str(cls.__qualname__) if public is None else (_class_for, (public, cls._family))


copyreg.pickle(OneKind, _reduce_class)


def _class_for(cls: Class, family: KerasFamily) -> Class:
    public = vars(cls).get("_derived_from", cls)
    # The name is written to model files. A class without a role of its own is a user's.
    name = family.installed_name(public.role) if "role" in vars(public) else public.__name__
    is_same = public._family == family and public.__name__ == name
    return public if is_same else _derived(public, family, name)


@functools.lru_cache(maxsize=None)
def _derived(public: Class, family: KerasFamily, name: str) -> Class:
    """Returns a class like `public` whose instances wrap optimizers of this family, made once.

    For ours, its name and module are those of Keras's class, which files contain. For a user's
    subclass, files are registered under the name of that subclass.
    """
    is_ours = "role" in vars(public)
    bases = (public,) if public._family == family else (public, _implementation(family))
    body = {
        "_derived_from": public,
        "__doc__": public.__doc__,
        "__module__": public.__module__,
        "__qualname__": name if is_ours else public.__qualname__,
    }
    if is_ours:  # call the methods directly, not through the dispatchers
        own = _implementation(family)
        body.update((method, inspect.getattr_static(own, method)) for method in _DIRECT)
    cls = _metaclass_of(bases)(name, bases, body)
    if public._family != family:
        _dispatch_unbound_calls(LossScaleOptimizer)
    if is_ours:
        files.register_loss_scale_optimizer(family.package, LossScaleOptimizer)
        files.serialize_as(family, cls, name)
    else:
        files.share_registration(family.keras, public, cls)
    return cls


def _dispatch_unbound_calls(public: Class) -> None:
    """Makes `LossScaleOptimizer.apply_gradients(optimizer, ...)` work for every kind."""
    for name in _DIRECT:
        if name not in vars(public):
            setattr(public, name, _dispatcher(public, name))


_DIRECT = ("apply_gradients", "get_config", "get_scaled_loss", "get_unscaled_gradients", "minimize")


def _dispatcher(public: Class, name: str) -> Method:
    @functools.wraps(getattr(public, name))
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        return getattr(super(public, self), name)(*args, **kwargs)

    return do_not_convert(method)


def serialized_like_the_installed(cls: Class) -> Class:
    """Decorates a public class: gives it the name that the installed class has in model files."""
    family: KerasFamily = cls._family
    if (
        family.kind is not KerasKind.NEW
    ):  # for these, instances have a derived class, as in Keras itself
        cls.__name__ = family.installed_name(cls.role)
        files.serialize_as(family, cls, cls.__name__)
    elif cls.role == "final":
        _dispatch_unbound_calls(cls)
    return cls


def with_installed_experimental(public: Class) -> Class:
    """Returns `public`, or a subclass that also derives from the installed experimental class."""
    installed = public._family.installed_experimental
    if installed is None or issubclass(public, installed):
        return public
    bases = (public, installed)
    body = {"__doc__": public.__doc__, "__module__": __name__}
    return _metaclass_of(bases)("LossScaleOptimizer", bases, body)


if TYPE_CHECKING:  # an import, which the reference follows to the methods
    from tf_lossscale._keras.legacy import OptimizerV2Wrapper as _Implementation
else:
    _Implementation = _implementation(default_family())


@serialized_like_the_installed
class LossScaleOptimizer(_Implementation):
    """An optimizer that applies loss scaling, to keep small float16 gradients from becoming zero.

    Stands for `tf.keras.mixed_precision.LossScaleOptimizer` as TensorFlow 2.4 documents it, for
    Keras 2 and Keras 3 optimizers.

    The loss is multiplied by a scale before the gradients are computed, and the gradients are
    divided by it before they are applied. A dynamic scale doubles after `dynamic_growth_steps`
    consecutive steps with finite gradients, unless the doubled value would not be finite. A step
    with a non-finite gradient on any replica is skipped: weights and slots keep their values,
    `iterations` still counts the step, and the scale is halved, but not below 1, or below the
    further argument `minimum_scale`, which is passed by keyword. A fixed scale skips no step.

    State: the state of `inner_optimizer`, and two non-trainable variables of shape `[]`:

    * `loss_scale` (float32), which reads as a tensor: the scale. It begins at `initial_scale` and
      is never reset. Its name in checkpoints is `current_loss_scale`; on Keras 3, `dynamic_scale`.
    * `dynamic_counter` (int64): finite steps since the last change of the scale or the last skipped
      step. Either resets it to 0. Its name in checkpoints is `good_steps`; on Keras 3,
      `step_counter`.

    A fixed scale has no counter (`dynamic_counter` is None) and stores nothing on Keras 2.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
      ...     tf.keras.optimizers.SGD(0.5), initial_scale=8.0)
      >>> for factor in (1.0, float("inf")):  # the second step is skipped
      ...     with tf.GradientTape() as tape:
      ...         scaled_loss = optimizer.get_scaled_loss(weight * factor)
      ...     gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled_loss, [weight]))
      ...     step = optimizer.apply_gradients(zip(gradients, [weight]))
      >>> float(weight.numpy()), float(optimizer.loss_scale), int(optimizer.iterations.numpy())
      (0.5, 4.0, 2)

    Args:
      inner_optimizer: a Keras optimizer, which must not be a loss-scale optimizer or already be
        wrapped in one.
      dynamic: whether the scale changes during training; False for a fixed scale.
      initial_scale: the initial scale, or the fixed scale; `2 ** 15` if None.
      dynamic_growth_steps: finite steps in a row before the scale doubles; 2000 if None.

    For an optimizer of Keras 3, the constructor also takes `name`, as Keras 3's class does.

    Raises:
      TypeError: `inner_optimizer` is not a Keras optimizer, or is a LossScaleOptimizer; or
        `dynamic` is not a bool.
      ValueError: `inner_optimizer` is already wrapped; `dynamic_growth_steps` is below 1; or
        `dynamic` is False, and `initial_scale` is missing or `dynamic_growth_steps` is not None.
    """

    role = "final"


class _Registration(Subscriber):
    """Registers our class with each Keras, until `uninstall()` if `install()` came before it.

    A model file contains the class name of its optimizer, and Keras looks it up in the custom
    objects first. So our class must be registered before the first file is read, which may be
    before its first instance is created. A program may also import a second Keras
    (`import tf_keras`) after our class was loaded. We never import a Keras for this; the import
    hook reports each one.
    """

    def is_of_interest(self, name: str) -> bool:
        return name in KERAS_PACKAGES

    def imported(self, name: str, module: ModuleType) -> None:
        if name in loaded_keras_packages():
            files.register_loss_scale_optimizer(name, LossScaleOptimizer)

    def pause(self) -> None:
        for package in loaded_keras_packages():
            files.unregister_loss_scale_optimizer(package, LossScaleOptimizer)

    def resume(self) -> None:
        for package in loaded_keras_packages():
            files.register_loss_scale_optimizer(package, LossScaleOptimizer)


_registration = _Registration()
_registration.resume()
subscribe(_registration)
