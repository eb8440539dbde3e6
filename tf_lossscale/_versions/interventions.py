"""Everything that this package replaces in classes, modules and hooks that are not its own.

`INTERVENTIONS` lists what, why, and from when to when. The classes and functions here do it, each
with its undo. Nothing else may: `tests/package/test_interventions.py` reads the source of both
packages. Importing this package, class tests and steps replace nothing, and the end of each scope
restores all: `tests/shim/install/test_untouched.py` compares the attributes of TensorFlow's and
Keras's classes and modules before and after. All was tried on the versions of `releases.RELEASES`.

Two hooks are in modules that can import nothing: `_import_hook.py` has the finder in
`sys.meta_path`, and `_cli/child/sitecustomize.py` the one that installs in the processes of `run`.

Nothing here imports TensorFlow, because `install()` runs before TensorFlow is imported.
"""

import contextlib
import dataclasses
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
    Sequence,
    Set,
    Tuple,
)

from tf_lossscale._types import Class, Graph, Method, Model, Optimizer
from tf_lossscale._versions.originals import (
    TENSORFLOW_ROOTS,
    attribute_dicts,
    is_wrapper,
    keeps_what_is_read,
    replaced,
)


class Intervention(NamedTuple):
    """One thing that is not ours and that is replaced for a time.

    Attributes:
      what: the class or module, and its attributes.
      reason: why; none of these has a public way.
      scope: from when to when. At its end, an undo restores what was there. `uninstall()` does so
        in any case, the others unless somebody else has replaced it since.
    """

    what: str
    reason: str
    scope: str


COMPILE = Intervention(
    "the method by which a Keras model takes its optimizer",
    "Under a policy of Keras 2, `compile` makes an optimizer with the methods of Keras 2, and with "
    "the loss scale of the policy.",
    "While a policy exists that the program made or set by a name of the shim, or an installation "
    "whose loss-scale class replaces Keras's. `uninstall()` ends both.",
)
API_NAMES = Intervention(
    "attributes of the modules of TensorFlow's and Keras's API, and modules that they lack",
    "`install()` puts removed names back under `tensorflow`.",
    "From `install()` to `uninstall()`.",
)
SEEDS_OF_GRAPHS = Intervention(
    "`Graph._last_id`, in TensorFlow 1.15 to 2.2",
    "It is the seed of random operations, which the operations of a record or the monitor must not "
    "change.",
    "While a graph exists that has such operations.",
)
NEW_SEEDS = Intervention(
    "`__init__` of graphs and of the context of eager mode",
    "`--seed` must seed each graph, also those that the program has not created yet.",
    "The whole process that `tf-lossscale run --seed` or `record --seed` starts.",
)
CALLS_OF_LAYERS = Intervention(
    "`__call__` of the base class of Keras layers",
    "All layers of a model call it, also those of nested models and those that a layer makes.",
    "Within `find_nonfinite_layer`, and within one batch with `keras_callback(explain=True)`.",
)
NEXT_BATCH = Intervention(
    "`train_function` of one model",
    "The batch after one that was not finite runs eagerly, so that its layers can be watched.",
    "Until that batch has run, or `fit` ends.",
)
CALLS_OF_FUNCTIONS = Intervention(
    "`__call__` of `tf.function` and of concrete functions",
    "Steps within a function are counted on the device, and read between two calls.",
    "From `recording.start` to `recording.stop`.",
)
RUNS_OF_SESSIONS = Intervention(
    "private methods of Sessions and of their callables, and `close`",
    "Steps within a graph are counted on the device, and read between two runs.",
    "From `recording.start` to `recording.stop`.",
)
VARIABLES = Intervention(
    "`__init__` of variables, the functions by which tapes and functions read one, and assignments",
    "`--disturb` changes each weight once, after it was initialized and before it is used.",
    "A recording with `--disturb`.",
)
RECORDED_STEPS = Intervention(
    "the methods of TensorFlow's and Keras's loss-scale classes, of their inner optimizers, and of "
    "the base classes of optimizers",
    "These classes report their steps to nobody.",
    "From `recording.start` to `recording.stop`.",
)
METHOD_OF_OPTIMIZER = Intervention(
    "a private method of one inner optimizer or strategy, such as `_all_reduce_sum_gradients`",
    "The gradients that it is given are summed already, which no argument says.",
    "One step.",
)
EXIT = Intervention(
    "`os._exit`, and the handlers of SIGTERM and SIGHUP",
    "The record of a process that ends without exit handlers must be complete.",
    "From `recording.start` to `recording.stop`.",
)
FINDER = Intervention(
    "a finder in `sys.meta_path`, in `_import_hook.py`",
    "Names are added to a module, and our classes registered with a Keras, once it was imported.",
    "From `install()`, `recording.start` or the import of our Keras classes on, as long as one of "
    "them waits for a module.",
)
BASES_IN_CONTRIB = Intervention(
    "`__bases__` of our class of `tf.contrib`, in TensorFlow 1.15",
    "Objects that were made before the program imported `tf.contrib`, which takes seconds, must "
    "pass class tests for TensorFlow's class.",
    "From the import of `tf.contrib` on. No class of TensorFlow is changed.",
)
CLASS_OF_LOSS_SCALE = Intervention(
    "`__class__` of one `LossScale` that a Keras optimizer was given",
    "TensorFlow 2.0 to 2.3 return that object as `loss_scale`, later versions return a tensor, and "
    "programs for either must run.",
    "As long as the object exists. No class is changed.",
)
METHODS_OF_SUBCLASS = Intervention(
    "the scaling methods that a user's subclass of our class defines",
    "A step on Keras 3 follows from which of these the program calls, also without `super`.",
    "From the class statement on.",
)
GRAPH_REWRITE = Intervention(
    "the switch of the mixed precision graph rewrite in a module of TensorFlow, before 2.6",
    "A Session reads it when it is created. TensorFlow's own functions set it in the same way.",
    "From `enable_mixed_precision_graph_rewrite` to `disable_mixed_precision_graph_rewrite`.",
)

INTERVENTIONS = (
    *(COMPILE, API_NAMES, SEEDS_OF_GRAPHS, NEW_SEEDS, CALLS_OF_LAYERS, NEXT_BATCH),
    *(CALLS_OF_FUNCTIONS, RUNS_OF_SESSIONS, VARIABLES, RECORDED_STEPS, METHOD_OF_OPTIMIZER),
    *(EXIT, FINDER, BASES_IN_CONTRIB, CLASS_OF_LOSS_SCALE, METHODS_OF_SUBCLASS, GRAPH_REWRITE),
)

_MISSING = object()
_lock = threading.RLock()


@dataclasses.dataclass
class _Replaced:
    """An attribute that is replaced now."""

    owner: Any
    name: str
    earlier: Any  # `_MISSING` if the owner only inherited it
    ours: Any


_in_effect: List[_Replaced] = []
"""Those of all `Replacements`, in the order in which they were replaced."""


class Replacements:
    """Attributes of classes and modules that are not ours, replaced until `undo`.

    Several can replace the same attribute, and end in any order, such as a recording and the
    monitor. A replacement that calls what it replaced may be called by a later one after its undo:
    it must do nothing more than that call when `is_active` is false.

    Attributes:
      is_active: whether `undo` has not been called.
    """

    def __init__(self, intervention: Intervention) -> None:
        self.intervention = intervention
        self.is_active = True
        self._replaced: List[_Replaced] = []

    def replace(self, owner: Any, name: str, ours: Any) -> None:
        """Replaces an attribute, also in subclasses that have a copy of it, as some of ours do."""
        with _lock:
            for place in _places_of(owner, name, vars(owner).get(name, _MISSING)):
                entry = _Replaced(place, name, vars(place).get(name, _MISSING), ours)
                setattr(place, name, ours)
                self._replaced.append(entry)
                _in_effect.append(entry)

    def has(self, owner: Any, name: str) -> bool:
        return any(entry.owner is owner and entry.name == name for entry in self._replaced)

    def undo(self) -> None:
        """Restores the attributes; one that somebody else has replaced since is left alone."""
        with _lock:
            self.is_active = False
            for entry in reversed(self._replaced):
                _in_effect.remove(entry)
                for later in _in_effect:
                    if later.earlier is entry.ours:
                        later.earlier = entry.earlier
                for place in _places_of(entry.owner, entry.name, entry.ours):
                    _restore(place, entry)
            self._replaced.clear()


def _places_of(owner: Any, name: str, value: Any) -> List[Any]:
    """Returns the owner of an attribute; of a class, also its subclasses with the same value."""
    if value is _MISSING or not inspect.isclass(owner):
        return [owner]
    found = [owner] if vars(owner).get(name, _MISSING) is value else []
    subclasses: List[type] = type.__subclasses__(owner)
    for subclass in subclasses:
        places = _places_of(subclass, name, value)
        found += [place for place in places if place not in found]
    return found


def _restore(owner: Any, entry: _Replaced) -> None:
    if vars(owner).get(entry.name, _MISSING) is not entry.ours:
        return
    if entry.earlier is _MISSING:
        delattr(owner, entry.name)
    else:
        setattr(owner, entry.name, entry.earlier)


def still_replaced() -> List[str]:
    """Returns what is replaced now, as `Class.method` or `module.name`, without API names."""
    with _lock:
        hooks = [(hook.cls, hook.name) for hook in _hooks.values()]
        seeds = [(cls, "_last_id") for cls, _, _ in _seed_property]
        others = [(entry.owner, entry.name) for entry in _in_effect]
        named = [(getattr(owner, "__name__", type(owner).__name__), name) for owner, name in others]
        named += [(cls.__name__, name) for cls, name in (*hooks, *seeds)]
        return sorted(f"{owner}.{name}" for owner, name in named)


@contextlib.contextmanager
def overridden(owners: Sequence[Any], method: str, function: Callable[..., Any]) -> Iterator[None]:
    """Replaces a method of each object by a function that also gets the method, within the block.

    See `METHOD_OF_OPTIMIZER`. Blocks may be nested or overlap, because the replicas of a process
    take turns while a step is built: the method is restored when the last block is left.
    """
    saved = "_tfls_overrides_of_" + method
    for owner in owners:
        own = vars(owner)
        own.setdefault(saved, []).append({method: own[method]} if method in own else {})
        if len(own[saved]) == 1:
            # As Python binds it: a program may have replaced it in the object itself.
            own[method] = functools.partial(function, getattr(owner, method, None))
    try:
        yield
    finally:
        for owner in owners:
            own = vars(owner)
            first = own[saved].pop()
            if not own[saved]:
                del own[saved], own[method]
                own.update(first)


def replace_in_object(owner: Any, name: str, ours: Any) -> Callable[[], None]:
    """Replaces an attribute of one object (see `NEXT_BATCH`); returns what restores it."""
    earlier = getattr(owner, name)
    setattr(owner, name, ours)

    def undo() -> None:
        if getattr(owner, name) is ours:
            setattr(owner, name, earlier)

    return undo


def set_bases(cls: Any, bases: Tuple[Any, ...]) -> None:
    """Gives our class other base classes (see `BASES_IN_CONTRIB`)."""
    cls.__bases__ = bases


def set_rewrite(module: Any, on: bool) -> None:
    """Sets the switch of the graph rewrite (see `GRAPH_REWRITE`)."""
    module.mixed_precision_graph_rewrite_is_enabled = on


def set_class(loss_scale: Any, cls: Any) -> None:
    """Gives a loss scale a subclass of its class (see `CLASS_OF_LOSS_SCALE`)."""
    loss_scale.__class__ = cls


def set_method(cls: Any, name: str, method: Any) -> None:
    """Replaces a method of a user's subclass of our class (see `METHODS_OF_SUBCLASS`)."""
    setattr(cls, name, method)


# `compile`: see `COMPILE`.


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
        self.cls = vars(module)[method.cls]
        self.name = method.name
        self._original = vars(self.cls)[method.name]
        self._replacement = method.replacement(self, self._original)
        setattr(self.cls, method.name, self._replacement)

    def undo(self) -> None:
        # If a program has wrapped the replacement, it stays there, and leaves all to Keras.
        self.reasons.clear()
        if vars(self.cls).get(self.name) is self._replacement:
            setattr(self.cls, self.name, self._original)

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

        import tensorflow  # it is loaded: a program calls `compile`

        return tensorflow.nest.map_structure(chosen, optimizer)

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


class Attributes:
    """The attributes of API modules that one installation has changed."""

    def __init__(self) -> None:
        self._bound: List[Tuple[str, object]] = []  # name and value of each attribute that was set
        self._earlier: List[Tuple[Any, str, Any]] = []  # owner, name and value before the change
        self._earlier_names: Dict[int, Set[str]] = {}  # by the `id` of a dictionary of attributes
        self._listed: List[Tuple[List[str], str]] = []  # names that were added to an `__all__`

    def note(self, module: ModuleType, names: Iterable[str]) -> None:
        """Remembers which of `names` a module had when it was first seen.

        Some of our symbols are TensorFlow's objects under another path, so the value of an
        attribute does not show whether we set it.
        """
        for attributes in attribute_dicts(module):
            earlier_names = {name for name in names if name in attributes}
            self._earlier_names.setdefault(id(attributes), earlier_names)

    def bind(self, owner: Any, name: str, value: object) -> None:
        """Sets an attribute of a module."""
        if keeps_what_is_read(owner) and name not in vars(owner):
            self.bind_lazily(owner, {name: lambda: value})
            return
        self._set(owner, name, value)
        self._list(owner, name)

    def _set(self, owner: Any, name: str, value: object) -> None:
        self.remember(owner, name)
        self._bound.append((name, value))
        _set_unlisted(owner, name, value)

    def _list(self, owner: Any, name: str) -> None:
        """Adds a name to what `from module import *` imports, if the module has a list of that."""
        listed = _names_listed(owner)
        if is_wrapper(owner) and name not in listed:
            listed.append(name)
            self._listed.append((listed, name))

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

        self._set(module, "__getattr__", module_getattr)
        names = listed or (lambda: vars(module))
        self._set(module, "__dir__", lambda: sorted({*names(), *load}))
        for name in load:
            self._list(module, name)

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
        """Restores all of them, also those that somebody else has set since.

        The last change is undone first, because the value before it may be ours. Only one
        installation exists at a time, so what `replaced` lists is all its own.

        Args:
          modules: loaded modules that may have copied our symbols, which are removed from them.
        """
        for owner, name, earlier in reversed(self._earlier):
            if earlier is _MISSING:
                _forget(owner, name)
            else:
                _set_unlisted(owner, name, earlier)
        for module in modules:
            for attributes in attribute_dicts(module):
                self._remove_copies(attributes)
        for listed, name in self._listed:
            if name in listed:
                listed.remove(name)
        replaced.clear()

    def _remove_copies(self, attributes: Dict[str, Any]) -> None:
        """Removes our symbols from what a module has, but none that it had before (see `note`)."""
        earlier_names = self._earlier_names.get(id(attributes), set())
        for name, value in self._bound:
            if name in earlier_names:
                continue
            is_ours = attributes.get(name, _MISSING) is value
            if is_ours:
                del attributes[name]


def _set_unlisted(module: Any, name: str, value: object) -> None:
    """Sets an attribute of a module whose wrapper, if it has one, must not list the name."""
    names = _names_listed(module)
    listed = list(names)
    setattr(module, name, value)
    names[:] = listed


def _names_listed(module: Any) -> List[str]:
    """The `__all__` of a module; an empty list if it has none, or a tuple."""
    listed = vars(module).get("__all__")
    return listed if isinstance(listed, list) else []


def _forget(owner: Any, name: str) -> None:
    """Removes an attribute of an API module, also from the cache of its wrapper."""
    for attributes in attribute_dicts(owner):
        attributes.pop(name, None)


class SuppliedModules:
    """The modules that one installation has put into `sys.modules`, by full name."""

    def __init__(self) -> None:
        self._modules: Dict[str, Any] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def add(self, module: Any) -> None:
        self._modules[module.__name__] = sys.modules[module.__name__] = module

    def undo(self) -> None:
        """Removes them, but none that somebody has put in their place."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
