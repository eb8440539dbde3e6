"""Public classes whose instances belong to the Keras of the optimizer that they wrap.

`LossScaleOptimizer(inner)` cannot be one class: Keras 2 and Keras 3 each want a subclass of their
own base, and both may be loaded. So a call of the public class makes an instance of a *concrete*
class, a subclass of the public one and of what the Keras of `inner` knows, built at the first use.
All rows of the isinstance table then hold by plain inheritance.
"""

import importlib
import inspect
from typing import Any, Dict, Tuple

from tf_lossscale._keras.arguments import check_inner
from tf_lossscale._versions import KerasFamily, keras_family, register_loss_scale_optimizer

__all__ = ["PublicClass", "concrete_class"]

_BEHAVIOURS = {"legacy": "legacy", "new": "new_style", "keras3": "keras3"}

_concrete: Dict[Tuple[Any, str, Any], Any] = {}


class PublicClass(type):
    """Metaclass of the public classes: a call of one answers with an instance of a concrete one.

    Attributes:
      inner_argument: name of the argument that is the inner optimizer.
    """

    inner_argument: str
    _family: Any = None
    _public: Any = None

    @property
    def __signature__(cls) -> inspect.Signature:
        return _signature(cls)  # and not that of `__call__`

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes an instance for the inner optimizer among the arguments."""
        if cls._family is None:
            cls = concrete_class(cls, check_inner(_find_inner(cls, args, kwargs)))
        return type.__call__(cls, *args, **kwargs)


def _signature(cls: Any) -> inspect.Signature:
    signature = inspect.signature(cls.__init__)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _find_inner(cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    # The constructor of a user's subclass may have other names, in another order.
    for candidate in (*args, *kwargs.values()):
        if keras_family(candidate) is not None:
            return candidate
    return _signature(cls).bind(*args, **kwargs).arguments.get(cls.inner_argument)


def concrete_class(public: Any, family: KerasFamily) -> Any:
    """Returns the class of `public` over the optimizers of `family`.

    Args:
      public: a public class, or a subclass that a user made of one.
      family: that of the inner optimizer.
    """
    key = (public, family.kind, family.base)
    if key not in _concrete:
        _concrete[key] = _build(public, family)
    return _concrete[key]


def _build(public: Any, family: KerasFamily) -> Any:
    module: Any = importlib.import_module("tf_lossscale._keras." + _BEHAVIOURS[family.kind])
    bases: Tuple[Any, ...]
    parent = public.__bases__[0]
    if "role" not in vars(public):  # a user's subclass
        bases = (public, concrete_class(parent, family))
        return _new_class(public.__name__, bases, {}, public, family)
    if public.role == "experimental":
        bases = (public, concrete_class(parent, family))
        known = family.installed_experimental
    else:
        bases = (module.Behaviour, public)
        known = family.installed_final or family.installed_experimental
    if known is not None and not any(issubclass(base, known) for base in bases):
        bases += (known,)
    if not any(issubclass(base, family.base) for base in bases):
        bases += (family.base,)
    names = module.class_names(family)
    register_loss_scale_optimizer(family.package, _root_of(public))
    namespace = {} if public.role == "experimental" else module.namespace(family, bases)
    return _new_class(names[public.role], bases, namespace, public, family)


def _root_of(public: Any) -> Any:
    return next(each for each in public.__mro__ if getattr(each, "role", None) == "final")


def _new_class(
    name: str, bases: Tuple[Any, ...], namespace: Dict[str, Any], public: Any, family: KerasFamily
) -> Any:
    metaclasses: list = []
    for base in bases:
        for metaclass in type(base).__mro__:
            if metaclass not in metaclasses:
                metaclasses.append(metaclass)
    most_derived = tuple(
        each
        for each in metaclasses
        if not any(other is not each and issubclass(other, each) for other in metaclasses)
    )
    metaclass = most_derived[0]
    if len(most_derived) > 1:
        metaclass = type("PublicClass", most_derived, {})
    body = dict(namespace, _family=family, _public=public, __doc__=public.__doc__)
    body["__qualname__"] = name
    # Keras writes the module and the name of a class into model files. With those of its own class,
    # that one can read what ours wrote, in a process that knows nothing of ours.
    known = family.installed_final or family.installed_experimental
    body["__module__"] = known.__module__ if "role" in vars(public) else public.__module__
    return metaclass(name, bases, body)
