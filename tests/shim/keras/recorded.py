"""The optimizers for replaying recordings: the original and our classes, for each inner kind.

A *kind* is what the installed TensorFlow and Keras offer as inner optimizers: `legacy` (Keras 2
`OptimizerV2`), `new` (Keras 2 from 2.11 on), `keras3`. A *subject* is a loss-scale class over one
kind, the original or ours, under names and arguments that are the same for all.
"""

import importlib
import importlib.util
import json
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import pytest
import support
import tensorflow as tf

import tf_lossscale as tfls

TF = support.TF_VERSION


def keras_version() -> str:
    return str(importlib.import_module("keras").__version__)


eagerly = support.eager
LOSS_SCALES = {"tf": tf.compat.v1.train.experimental, "tfls": tfls.compat.v1.train.experimental}
_DEFAULTS = (2.0**15, 2000)


class Kind(NamedTuple):
    """A kind of inner optimizer: its name, its Keras and the namespace of its classes."""

    name: str
    keras: Any
    optimizers: Any


class Subject(NamedTuple):
    """A loss-scale class over one kind: `api` is experimental, final or keras3 (the installed)."""

    kind: Kind
    api: str
    who: str

    @property
    def _mixed_precision(self) -> Any:
        owner = tfls if self.who == "ours" else self.kind
        return owner.keras.mixed_precision

    @property
    def cls(self) -> Any:
        if self.api == "keras3":
            return self.kind.optimizers.LossScaleOptimizer
        if self.api == "experimental":
            return self._mixed_precision.experimental.LossScaleOptimizer
        return self._mixed_precision.LossScaleOptimizer

    def dynamic_loss_scale(self, scale: float, period: float, multiplier: float = 2.0) -> Any:
        owner = tfls if self.who == "ours" else tf
        return owner.compat.v1.train.experimental.DynamicLossScale(scale, period, multiplier)

    def __str__(self) -> str:
        return "-".join((self.who, self.api, self.kind.name))

    def counterpart(self) -> "Subject":
        """Ours for an original."""
        return self._replace(who="ours", api="final" if self.api == "keras3" else self.api)

    def inner(self, name: str, **arguments: Any) -> Any:
        return getattr(self.kind.optimizers, name)(**arguments)

    def dynamic(self, inner: Any, scale: float = _DEFAULTS[0], period: float = _DEFAULTS[1]) -> Any:
        if self.api == "experimental":
            return self.cls(inner, self.dynamic_loss_scale(scale, period))
        if self.api == "keras3":
            return self.cls(inner, initial_scale=scale, dynamic_growth_steps=period)
        return self.cls(inner, True, scale, period)

    def fixed(self, inner: Any, scale: float) -> Any:
        if self.api == "experimental":
            return self.cls(inner, scale)
        return self.cls(inner, False, scale)

    def scale_and_counter(self, optimizer: Any) -> Tuple[Any, Any]:
        """The tensors or variables of the loss scale and of its counter (None if it is fixed)."""
        if self.api == "keras3":
            return optimizer.dynamic_scale, optimizer.step_counter
        scale = scale_of(optimizer)
        if self.api == "experimental" and TF < (2, 4):
            return scale, getattr(optimizer.loss_scale, "_num_good_steps", None)
        return scale, optimizer.dynamic_counter

    def read(self, optimizer: Any) -> Tuple[float, Optional[int], int]:
        """The loss scale, its counter and the iterations, as Python numbers (eager only)."""
        scale, counter = self.scale_and_counter(optimizer)
        return (
            float(scale.numpy()),
            None if counter is None else int(counter.numpy()),
            int(optimizer.iterations.numpy()),
        )

    def step(self, optimizer: Any, variables: List[Any], gradients: List[Any]):
        """A step with these true gradients, dense ones or None, in the style of the class."""
        if self.api == "keras3":
            if not optimizer.built:
                optimizer.build(variables)
            scale = tf.convert_to_tensor(optimizer.dynamic_scale)
            optimizer.apply([gradient * scale for gradient in gradients], variables)
            return
        scale = self.scale_and_counter(optimizer)[0]
        scaled = [None if gradient is None else gradient * scale for gradient in gradients]
        unscaled = optimizer.get_unscaled_gradients(scaled)
        optimizer.apply_gradients(list(zip(unscaled, variables)))

    def minimize(
        self,
        optimizer: Any,
        variables: List[Any],
        loss_of: Callable[[List[Any]], Any],
        style: str = "",
    ) -> Any:
        """A step of a custom loop in the style of a class, this one's if none is named.

        Returns the loss, which `loss_of` makes of what a tape watches of the variables.
        """
        as_keras_3 = (style or self.api) == "keras3"
        sources = [gradient_source(variable) for variable in variables]
        with tf.GradientTape() as tape:
            loss = loss_of(sources)
            scaled = (optimizer.scale_loss if as_keras_3 else optimizer.get_scaled_loss)(loss)
        gradients = tape.gradient(scaled, sources)
        if as_keras_3:
            optimizer.apply(gradients, variables)
        else:
            unscaled = optimizer.get_unscaled_gradients(gradients)
            optimizer.apply_gradients(list(zip(unscaled, variables)))
        return loss

    def refuses_multiplier(self) -> bool:
        """Whether the class takes no multiplier but 2, as the originals from 2.4 on."""
        return self.api != "experimental" or (self.who == "original" and TF >= (2, 4))


def _installed(name: str) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def kinds() -> List[Kind]:
    """The kinds of inner optimizers that are installed, also where Keras 2 and 3 stand together."""
    if TF < (2, 16):
        keras_2 = tf.keras
    else:
        keras_2 = _installed("tf_keras")
    found = []
    if keras_2 is not None and TF < (2, 11):
        found.append(Kind("legacy", keras_2, keras_2.optimizers))
    elif keras_2 is not None:
        found.append(Kind("legacy", keras_2, keras_2.optimizers.legacy))
        found.append(Kind("new", keras_2, keras_2.optimizers))
    if TF >= (2, 16):
        keras_3 = importlib.import_module("keras")
        found.append(Kind("keras3", keras_3, keras_3.optimizers))
    return found


def default_kind() -> str:
    """The kind of the optimizers of `tf.keras`."""
    if hasattr(tf.keras, "Operation"):
        return "keras3"
    return "new" if TF >= (2, 11) else "legacy"


def is_trackable(kind: Kind) -> bool:
    """Whether checkpoints have this kind of optimizers: all but those of Keras 3.0."""
    return hasattr(kind.optimizers.Optimizer, "_lookup_dependency")


def has_keras_format(kind: Kind) -> bool:
    """Whether this Keras saves models with such an optimizer as `.keras`, and loads them."""
    first = (2, 15) if kind.name == "legacy" else (2, 13)
    return first <= TF


def ours() -> List[Subject]:
    """Our two classes over every kind."""
    return [Subject(kind, api, "ours") for kind in kinds() for api in ("experimental", "final")]


def with_own_step() -> List[Subject]:
    """Ours, without the experimental class where it shares the step of the final one."""
    return [subject for subject in ours() if subject.api == "final" or TF < (2, 4)]


def originals() -> List[Subject]:
    """The classes that the installed Keras has, over each of its kinds."""
    subjects = []
    for kind in kinds():
        if kind.name == "keras3":
            subjects.append(Subject(kind, "keras3", "original"))
            continue
        mixed_precision = kind.keras.mixed_precision
        experimental = getattr(mixed_precision, "experimental", None)
        if hasattr(experimental, "LossScaleOptimizer"):
            subjects.append(Subject(kind, "experimental", "original"))
        if hasattr(mixed_precision, "LossScaleOptimizer"):
            subjects.append(Subject(kind, "final", "original"))
    return subjects


def experimental() -> List[Subject]:
    """The experimental class of the installed Keras, if it has one, and ours, over every kind."""
    return [subject for subject in originals() + ours() if subject.api == "experimental"]


def with_loss_scales(subjects: List[Subject]) -> List[Any]:
    """Parameters `subject` and `scales`: ours are also given TensorFlow's own loss scales."""
    return [
        pytest.param(subject, LOSS_SCALES[owner], id=f"{subject}-{owner}")
        for subject in subjects
        for owner in (("tf",) if subject.who == "original" else ("tf", "tfls"))
    ]


def chosen(request: Any, parameter: str) -> List[Any]:
    """The values of a parameter in those cases of the fixture that run, each of them once."""
    values = [
        item.callspec.params[parameter]
        for item in request.session.items
        if item.module is request.module
        and request.fixturename in item.fixturenames
        and not item.get_closest_marker("skip")  # pytest skips a test that has no case here
    ]
    return [value for index, value in enumerate(values) if value not in values[:index]]


def make_variable(kind: Kind, value: Any, name: str, dtype: str = "float32") -> Any:
    """A variable of the Keras that `kind` belongs to, a resource variable in Keras 2."""
    if kind.name == "keras3":
        return kind.keras.Variable(value, dtype=dtype, name=name)
    return tf.compat.v2.Variable(value, dtype=dtype, name=name)


def gradient_source(variable: Any) -> Any:
    """What a `GradientTape` watches of a variable: Keras 3 keeps TensorFlow's inside."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def scale_of(optimizer: Any) -> Any:
    """The current loss scale as a plain tensor: in ours, the experimental class's is called."""
    scale = optimizer.loss_scale
    return scale() if callable(scale) else scale


def below_100(scales: Any, seen: Optional[List[Any]] = None) -> Any:
    """A loss scale that applies gradients below 100, finite or not, and counts all steps.

    `seen` gets the number of local values of each gradient that `update` is given.
    """

    class Below100(scales.LossScale):
        def __init__(self, scale: float = 4.0):
            super().__init__()
            self._first = scale
            self._scale = self._add_weight("scale", scale, tf.float32)

        def __call__(self) -> Any:
            return tf.convert_to_tensor(self._scale)

        def update(self, grads: Any) -> Any:
            local = tf.distribute.get_strategy().experimental_local_results
            if seen is not None:
                seen.append([len(local(gradient)) for gradient in grads])
            parts = [part for gradient in grads for part in local(gradient)]
            largest = [tf.reduce_max(tf.abs(part)) for part in parts]
            with tf.control_dependencies(largest):  # which were unscaled with the old scale
                update = self._scale.assign(self._scale + 1.0)
            return update, tf.reduce_max(tf.stack(largest)) < 100.0

        def get_config(self) -> Dict[str, Any]:
            return {"scale": self._first}

    return Below100


def number(value: Any) -> float:
    """A Python number, a tensor or a variable as a number (eager only)."""
    return float(value.numpy() if hasattr(value, "numpy") else value)


def is_ours(optimizer: Any) -> bool:
    """Whether our class made it, which may be named like Keras's and be an instance of it."""
    return any(cls.__module__.startswith("tf_lossscale.") for cls in type(optimizer).__mro__)


def variables_of(optimizer: Any) -> List[Any]:
    """The variables of an optimizer: a property or a method."""
    return optimizer.variables() if callable(optimizer.variables) else optimizer.variables


def load(*path: str) -> Dict[str, Any]:
    with open(os.path.join(support.DATA, *path)) as file:
        return json.load(file)
