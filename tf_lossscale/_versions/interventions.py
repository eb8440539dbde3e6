"""Everything that this package replaces in classes and modules that are not its own.

Keras has no public way to choose the class in which `Model.compile` wraps an optimizer, and
TensorFlow has none to add a name to its namespaces. This is replaced:

* The method by which a Keras model takes its optimizer (`CompileHook`). Reason: under a policy of
  Keras 2, `compile` makes an optimizer with the methods of Keras 2, and with the loss scale of the
  policy. Scope: as long as a policy exists that the program made or set by a name of the shim
  (`serve`), or an installation whose loss-scale class replaces Keras's. `uninstall()` ends both.
* Attributes of the modules of TensorFlow's and Keras's API (`Attributes`). Reason: `install()` puts
  removed names back under `tensorflow`. Scope: from `install()` to `uninstall()`.
* `Graph._last_id` (`exclude_from_seeds`), in TensorFlow 1.15 to 2.2. Reason: it is the seed of
  random operations, which the operations of a record or the monitor must not change. Scope: as long
  as a graph exists that has such operations.

Two modules replace methods through functions that end it: `watching.py` methods of Sessions,
functions and variables while a recording runs, `layers.py` the call of layers within
`find_nonfinite_layer` and `keras_callback(explain=True)`. `_recorder/originals.py` replaces those
of the recorded classes, from `recording.start` to `recording.stop`.

Importing this package, class tests and steps change none of these: `test_install.py` compares the
attributes before and after each. Nothing here imports TensorFlow, because `install()` runs before
TensorFlow is imported.
"""

import contextlib
import functools
import importlib
import inspect
import sys
import threading
import weakref
from types import ModuleType
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from tf_lossscale._types import Class, Graph, Method, Model, Optimizer
from tf_lossscale._versions.originals import TENSORFLOW_ROOTS, attribute_dicts, replaced


class Scaling(NamedTuple):
    """What `compile` does with the optimizer of one model."""

    # Wraps an optimizer in our class; returns None for one that it leaves to Keras. If there is no
    # such function, the optimizer is used as it is.
    wrap: Optional[Callable[[Optimizer], Optional[Optimizer]]]


Choose = Callable[[Model, bool], Optional[Scaling]]
"""Returns the `Scaling` of a model; None if Keras decides.

The second argument is whether models without a policy of the shim are concerned, too.
"""

COMPILERS = frozenset(
    f"{top}.engine.{module}"
    for top in (
        *("keras", "keras.src", "tf_keras.src"),
        *(f"{root}.python.keras" for root in TENSORFLOW_ROOTS),
    )
    for module in ("training", "training_v1")
) | {"keras.src.trainers.trainer"}
"""The modules whose classes define `compile`, in all versions."""


class _Method(NamedTuple):
    """A method by which a model takes its optimizer."""

    cls: str  # the class that defines it
    name: str
    replacement: "Callable[[CompileHook, Any], Any]"


class CompileHook:
    """The replaced method of one class of Keras.

    The replacement is called with the model. So the decision depends on the policy of this model,
    at each `compile`. Where `choose` leaves it to Keras, Keras's own method runs unchanged.
    """

    def __init__(self, module: ModuleType, method: _Method, choose: Choose) -> None:
        self.reasons: Set[str] = set()
        self._choose = choose
        self._module = module
        self._cls = vars(module)[method.cls]
        self._name = method.name
        self._original = vars(self._cls)[method.name]
        self._replacement = method.replacement(self, self._original)
        setattr(self._cls, method.name, self._replacement)

    def undo(self) -> None:
        # If a program has wrapped the replacement, it stays there, and leaves all to Keras.
        self.reasons.clear()
        if vars(self._cls).get(self._name) is self._replacement:
            setattr(self._cls, self._name, self._original)

    def get_optimizer(self, identifier: object) -> Optimizer:
        """Returns what Keras makes of an optimizer, its name or its configuration."""
        return vars(self._module)["optimizers"].get(identifier)

    def scaling_of(self, model: Model) -> Optional[Scaling]:
        """Returns what this model does with its optimizer; None if Keras decides."""
        return self._choose(model, INSTALLED in self.reasons) if self.reasons else None


def _eager_keras_2(hook: CompileHook, original: Method) -> Method:
    """`compile` of TensorFlow 2.2 and later calls it with an optimizer, or a structure of them."""

    @functools.wraps(original)
    def _get_optimizer(model: Model, optimizer: Optimizer) -> Optimizer:
        scaling = hook.scaling_of(model)
        if scaling is None:
            return original(model, optimizer)
        wrap = scaling.wrap

        def chosen(given: Optimizer) -> Optimizer:
            found = hook.get_optimizer(given)
            if wrap is None:
                return found
            wrapped = wrap(found)
            return original(model, found) if wrapped is None else wrapped

        return sys.modules["tensorflow"].nest.map_structure(chosen, optimizer)

    return _get_optimizer


def _graph_keras_2(hook: CompileHook, original: Method) -> Method:
    """`compile` calls it in TensorFlow 1.15, and in the v1 mode of later versions of Keras 2."""

    @functools.wraps(original)
    def _set_optimizer(model: Model, optimizer: Optimizer) -> None:
        scaling = hook.scaling_of(model)
        if scaling is None:
            original(model, optimizer)
            return
        if isinstance(optimizer, (list, tuple)):
            model.optimizer = _unscaled_optimizers(hook, scaling, optimizer)
            return
        found = hook.get_optimizer(optimizer)
        wrapped = found if scaling.wrap is None else scaling.wrap(found)
        if wrapped is None:
            original(model, optimizer)
        else:
            model.optimizer = wrapped

    return _set_optimizer


def _unscaled_optimizers(
    hook: CompileHook, scaling: Scaling, given: Iterable[Optimizer]
) -> List[Optimizer]:
    """Returns the optimizers of a model that has several, which Keras never wraps in graph mode.

    Raises:
      ValueError: the policy has a loss scale. Keras raises one, too, for policies that it knows to
        have a loss scale.
    """
    if scaling.wrap is not None:
        raise ValueError(
            "compile() was given several optimizers for a model whose dtype policy has a loss "
            "scale: in graph mode, pass one optimizer, or set a policy without a loss scale."
        )
    return [hook.get_optimizer(optimizer) for optimizer in given]


def _keras_3(hook: CompileHook, original: Method) -> Method:
    """Keras 3 has no method between `compile` and the class that it wraps in."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def compile(model: Model, *args: object, **kwargs: object) -> None:
        scaling = hook.scaling_of(model)
        try:
            given = signature.bind(model, *args, **kwargs)
        except TypeError:
            scaling = None  # Keras refuses the arguments
        if scaling is None:
            original(model, *args, **kwargs)
            return
        given.apply_defaults()
        arguments = given.arguments
        if not arguments["auto_scale_loss"]:
            original(model, *args, **kwargs)
            return
        arguments["optimizer"] = optimizer = hook.get_optimizer(arguments["optimizer"])
        wrapped = optimizer if scaling.wrap is None else scaling.wrap(optimizer)
        if wrapped is None:
            original(*given.args, **given.kwargs)
            return
        arguments["auto_scale_loss"] = False
        original(*given.args, **given.kwargs)
        # Not as an argument: a model file contains the arguments, and the policy at the time when
        # it is loaded decides how they are wrapped.
        model.optimizer = wrapped

    return compile


_METHODS = (
    _Method("Trainer", "compile", _keras_3),
    _Method("BaseTrainer", "compile", _keras_3),  # its name from Keras 3.16 on
    _Method("Model", "_get_optimizer", _eager_keras_2),
    _Method("Model", "_set_optimizer", _graph_keras_2),
)

INSTALLED, POLICY = "installed", "policy"
"""The reasons for a hook."""

_lock = threading.RLock()
_hooks: Dict[str, CompileHook] = {}
"""By the name of the module that defines the class."""
_served: List["weakref.ref[Any]"] = []
"""One reference for each mark of a policy, while a policy with this mark exists."""


def hook_compile(module: ModuleType, reason: str, choose: Choose) -> None:
    """Lets `compile` of the class in a module of `COMPILERS` use what `choose` returns.

    Raises:
      RuntimeError: the class has none of the methods that are known here.
    """
    with _lock:
        hook = _hooks.get(module.__name__)
        if hook is None:
            hook = _hooks[module.__name__] = CompileHook(module, _method_of(module), choose)
        hook.reasons.add(reason)


def _method_of(module: ModuleType) -> _Method:
    for method in _METHODS:
        if method.name in vars(vars(module).get(method.cls, object)):
            return method
    raise RuntimeError(_UNKNOWN.format(module.__name__))


_UNKNOWN = (
    "{} of this Keras version chooses the optimizer of a model in a way that tf_lossscale does not "
    "know, so compile() would ignore the loss scale of the policy. Set the policy by "
    "tf.keras.mixed_precision.set_global_policy, and wrap the optimizer before compile(): "
    "tf_lossscale.keras.mixed_precision.LossScaleOptimizer(optimizer)."
)


def is_compile_hooked(reason: str) -> bool:
    """Returns whether `compile` of a Keras is hooked for this reason."""
    with _lock:
        return any(reason in hook.reasons for hook in _hooks.values())


def unhook_compile(reason: Optional[str] = None) -> None:
    """Ends the hooks for this reason, or for every reason."""
    with _lock:
        for name, hook in list(_hooks.items()):
            hook.reasons -= {INSTALLED, POLICY} if reason is None else {reason}
            if not hook.reasons:
                _hooks.pop(name, None)  # the garbage collector may have ended it meanwhile
                hook.undo()
        if reason is None:
            _served.clear()


def serve(mark: object, package: str, choose: Choose) -> None:
    """Hooks `compile` of a Keras package for as long as `mark` exists, which policies hold.

    It can be called again, because `uninstall()` may have ended the hook.
    """
    if any(reference() is mark for reference in list(_served)):
        return
    modules = list(_compilers_of(package))  # before the lock, because it imports modules
    if not modules:
        raise RuntimeError(_UNKNOWN.format(package))
    with _lock:
        _served.append(weakref.ref(mark, _ended))
        for module in modules:
            hook_compile(module, POLICY, choose)


def _ended(reference: Any) -> None:
    if sys.is_finalizing():
        return
    with _lock:
        _served[:] = [other for other in _served if other is not reference]
        if not _served:
            unhook_compile(POLICY)


def _compilers_of(package: str) -> Iterator[Class]:
    """Imports the modules of a Keras package that define `compile`.

    Keras itself imports one of them only when the first model of the v1 mode is made.
    """
    for name in sorted(COMPILERS):
        if name.split(".")[0] == package:
            with contextlib.suppress(ImportError):
                yield importlib.import_module(name)


_excluding: Set["weakref.ref[Any]"] = set()
"""References to the graphs with operations that their seeds do not count."""
_seed_property: List[Tuple[Any, Any, Any]] = []
"""While there are such graphs: the class of graphs, its own property, and our property."""


def exclude_from_seeds(cls: Class, graph: Graph, count: Callable[[Graph], int]) -> None:
    """Lets random operations of a graph take their seeds from `count(graph)`.

    TensorFlow takes them from the private property `Graph._last_id`, and uses it for nothing else.
    For other graphs, `count` must return what that property does.

    Args:
      cls: `tf.compat.v1.Graph`.
      graph: the graph.
      count: returns the number of operations that the seeds count.
    """
    with _lock:
        if not _seed_property:
            _seed_property.append((cls, vars(cls)["_last_id"], property(count)))
            cls._last_id = _seed_property[0][2]
        _excluding.add(weakref.ref(graph, _end_of_graph))


def _end_of_graph(reference: Any) -> None:
    if sys.is_finalizing():
        return
    with _lock:
        _excluding.discard(reference)
        if _excluding or not _seed_property:
            return
        cls, original, ours = _seed_property.pop()
        if vars(cls).get("_last_id") is ours:
            cls._last_id = original


_MISSING = object()


class Attributes:
    """The attributes of API modules that one installation has changed."""

    def __init__(self) -> None:
        self._bound: List[Tuple[str, object]] = []  # name and value of each attribute that was set
        self._earlier: List[Tuple[Any, str, Any]] = []  # owner, name and value before the change
        self._earlier_names: Dict[int, Set[str]] = {}  # by the `id` of a dictionary of attributes

    def note(self, module: ModuleType, names: Iterable[str]) -> None:
        """Remembers which of `names` a module had when it was first seen.

        Some of our symbols are TensorFlow's objects under another path, so the value of an
        attribute does not show whether we set it.
        """
        for attributes in attribute_dicts(module):
            earlier_names = {name for name in names if name in attributes}
            self._earlier_names.setdefault(id(attributes), earlier_names)

    def bind(self, owner: Any, name: str, value: object) -> None:
        self.remember(owner, name)
        self._bound.append((name, value))
        setattr(owner, name, value)

    def bind_lazily(self, module: ModuleType, load: Mapping[str, Callable[[], object]]) -> None:
        """Binds names to what these functions return, which are called when a name is read.

        Our classes import Keras, and a module may be a part of a Keras that is being imported.
        """
        for name in load:
            self.remember(module, name)
            _forget(module, name)
        earlier, listed = vars(module).get("__getattr__"), vars(module).get("__dir__")

        def module_getattr(name: str) -> object:
            if name in load:
                value = load[name]()
                self._bound.append((name, value))  # a wrapper of the module caches it
                return value
            if earlier is not None:
                return earlier(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        self.bind(module, "__getattr__", module_getattr)
        names = listed or (lambda: vars(module))
        self.bind(module, "__dir__", lambda: sorted({*names(), *load}))

    def remember(self, owner: Any, name: str) -> None:
        """Remembers the value of an attribute before it is changed."""
        found = [attributes[name] for attributes in attribute_dicts(owner) if name in attributes]
        self._earlier.append((owner, name, found[-1] if found else _MISSING))
        if found:
            replaced.append((owner, name, found[-1]))

    def changed(self) -> List[Tuple[Any, str, bool]]:
        """Returns the owner and name of each attribute, and whether the owner lacked it before."""
        return [(owner, name, earlier is _MISSING) for owner, name, earlier in self._earlier]

    def undo(self, modules: Iterable[ModuleType]) -> None:
        """Restores all of them. `modules` may have cached copies of our symbols."""
        for owner, name, earlier in reversed(self._earlier):
            if earlier is _MISSING:
                _forget(owner, name)
            else:
                setattr(owner, name, earlier)
        for module in modules:
            for attributes in attribute_dicts(module):
                earlier_names = self._earlier_names.get(id(attributes), set())
                for name, value in self._bound:
                    if name not in earlier_names and attributes.get(name, _MISSING) is value:
                        del attributes[name]
        replaced.clear()


def _forget(owner: Any, name: str) -> None:
    """Removes an attribute of an API module, also from the cache of its wrapper."""
    for attributes in attribute_dicts(owner):
        attributes.pop(name, None)
