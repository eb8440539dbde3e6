"""Random programs of one or two loss-scale optimizers, for a comparison of two classes.

A program is a list of steps. Each step has a style, written as programs of Keras 2 (or of Keras 3)
write it, and each of its parts is eager or a `tf.function` of its own. `run` executes a program
with given optimizers; the numbers of two runs can be compared.
"""

import random
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import tensorflow as tf

Numbers = List[List[float]]


class Step(NamedTuple):
    """One step of a program.

    Attributes:
      style: a key of `STYLES` or `KERAS_3_STYLES`.
      optimizer: the index of the optimizer that makes it.
      other: the index of an optimizer that only some styles use.
      where: "eager", "function" (one for the step) or "parts" (one for each part).
      factor: of the loss; infinity for a step that overflows.
      kept: whether a function of this style is made only once, and called again in later steps.
    """

    style: str
    optimizer: int
    other: int
    where: str
    factor: float
    kept: bool


class Program:
    """The weights and optimizers of a program, and the functions that it has made."""

    def __init__(self, optimizers: Sequence[Any], make_variable: Callable[..., Any]):
        self.optimizers = optimizers
        # Each optimizer has two weights of its own.
        self.weights = [
            [make_variable([1.0, 2.0]), make_variable([[3.0], [index + 1.0]])]
            for index in range(len(optimizers))
        ]
        self.factor = tf.Variable(1.0, trainable=False)
        self.functions: Dict[Any, Any] = {}
        for optimizer, weights in zip(optimizers, self.weights):
            if hasattr(optimizer, "build"):
                optimizer.build(weights)

    def sources(self, index: int) -> List[Any]:
        """What a tape watches of the weights: Keras 3 keeps TensorFlow's variables inside."""
        return [
            weight if isinstance(weight, tf.Variable) else weight.value
            for weight in self.weights[index]
        ]

    def loss(self, *indices: int) -> Any:
        """The loss of the weights of some optimizers."""
        terms = [
            tf.reduce_sum(tf.square(source)) * self.factor
            for index in indices
            for source in self.sources(index)
        ]
        return tf.add_n(terms)

    def part(self, step: Step, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a part of a step, in a function of its own if the step is made in parts."""
        if step.where != "parts":
            return function(*args)
        key = (step.style, name, step.optimizer, step.other)
        if key not in self.functions or not step.kept:
            self.functions[key] = tf.function(function, autograph=False)
        return self.functions[key](*args)

    def make(self, step: Step):
        self.factor.assign(step.factor)
        style = ALL_STYLES[step.style]
        if step.where != "function":
            style(self, step)
            return
        key = (step.style, step.optimizer, step.other)
        if key not in self.functions or not step.kept:

            def whole():
                style(self, step)

            self.functions[key] = tf.function(whole, autograph=False)
        self.functions[key]()

    def numbers(self) -> Numbers:
        return [
            [
                *[number for weight in self.weights[index] for number in _flat(weight)],
                float(optimizer.loss_scale),
                float(optimizer.iterations.numpy()),
            ]
            for index, optimizer in enumerate(self.optimizers)
        ]


def _flat(weight: Any) -> List[float]:
    return [float(number) for number in tf.reshape(weight, [-1]).numpy()]


def _gradients(program: Program, step: Step, scale: Callable[[Any], Any], *indices: int) -> Any:
    """The gradients of a loss that `scale` has scaled, with respect to the optimizers' weights."""

    def compute() -> Any:
        sources = [source for index in indices for source in program.sources(index)]
        with tf.GradientTape() as tape:
            scaled = scale(program.loss(*indices))
        return tape.gradient(scaled, sources)

    return program.part(step, f"gradients{indices}", compute)


def _unchanged(value: Any) -> Any:
    return value


def _apply(program: Program, step: Step, gradients: Sequence[Any], index: int):
    def apply(*given: Any):
        program.optimizers[index].apply_gradients(list(zip(given, program.weights[index])))

    program.part(step, f"apply{index}", apply, *gradients)


# Each style is a step of Keras 2. The mean of all weights must not depend on who scales.


def usual(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(program, step, optimizer.get_scaled_loss, step.optimizer)
    unscaled = program.part(
        step, "unscale", lambda *g: optimizer.get_unscaled_gradients(g), *scaled
    )
    _apply(program, step, unscaled, step.optimizer)


def in_one_function(program: Program, step: Step):
    """Scaled and unscaled in one function, applied in another one."""
    optimizer = program.optimizers[step.optimizer]

    def compute() -> Any:
        with tf.GradientTape() as tape:
            scaled = optimizer.get_scaled_loss(program.loss(step.optimizer))
        gradients = tape.gradient(scaled, program.sources(step.optimizer))
        return optimizer.get_unscaled_gradients(gradients)

    _apply(program, step, program.part(step, "both", compute), step.optimizer)


def accumulating(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    sums = None
    for _ in range(2):
        scaled = _gradients(program, step, optimizer.get_scaled_loss, step.optimizer)
        unscaled = optimizer.get_unscaled_gradients(scaled)
        sums = unscaled if sums is None else [a + b for a, b in zip(sums, unscaled)]
    _apply(program, step, [gradient * 0.5 for gradient in sums], step.optimizer)


def clipped(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(program, step, optimizer.get_scaled_loss, step.optimizer)
    unscaled = optimizer.get_unscaled_gradients(scaled)
    limited = [tf.clip_by_value(gradient, -1.0, 1.0) for gradient in unscaled]
    _apply(program, step, limited, step.optimizer)


def unscaled_by_hand(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(program, step, optimizer.get_scaled_loss, step.optimizer)
    factor = 1.0 / optimizer.loss_scale
    _apply(program, step, [gradient * factor for gradient in scaled], step.optimizer)


def scaled_by_hand(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(program, step, lambda loss: loss * optimizer.loss_scale, step.optimizer)
    _apply(program, step, optimizer.get_unscaled_gradients(scaled), step.optimizer)


def by_hand(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scale = tf.convert_to_tensor(optimizer.loss_scale)
    scaled = _gradients(program, step, lambda loss: loss * 8.0, step.optimizer)
    unscaled = [gradient / 8.0 + 0.0 * scale for gradient in scaled]
    _apply(program, step, unscaled, step.optimizer)


def not_scaled(program: Program, step: Step):
    gradients = _gradients(program, step, _unchanged, step.optimizer)
    _apply(program, step, gradients, step.optimizer)


def zeros(program: Program, step: Step):
    gradients = [tf.zeros_like(source) for source in program.sources(step.optimizer)]
    _apply(program, step, gradients, step.optimizer)


def zeros_and_set_weights(program: Program, step: Step):
    gradients = [tf.zeros_like(source) for source in program.sources(step.optimizer)]
    program.optimizers[step.optimizer].apply_gradients(
        list(zip(gradients, program.weights[step.optimizer]))
    )


def minimize(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    # The tape has to watch what is TensorFlow's; `minimize` does so with the variables it is given.
    optimizer.minimize(lambda: program.loss(step.optimizer), program.weights[step.optimizer])


def validated(program: Program, step: Step):
    """A loss that is scaled and then only looked at; then a step without scaling."""
    optimizer = program.optimizers[step.optimizer]
    program.part(step, "validate", lambda: optimizer.get_scaled_loss(program.loss(step.optimizer)))
    not_scaled(program, step)


def unscaled_by_the_other(program: Program, step: Step):
    """Scaled and unscaled by one optimizer, applied by another one."""
    other = program.optimizers[step.other]
    scaled = _gradients(program, step, other.get_scaled_loss, step.optimizer)
    unscaled = other.get_unscaled_gradients(scaled)
    _apply(program, step, unscaled, step.optimizer)


def one_loss_for_both(program: Program, step: Step):
    """One optimizer scales and unscales for both."""
    optimizer = program.optimizers[step.optimizer]
    indices = sorted({step.optimizer, step.other})
    scaled = _gradients(program, step, optimizer.get_scaled_loss, *indices)
    unscaled = optimizer.get_unscaled_gradients(scaled)
    for position, index in enumerate(indices):
        _apply(program, step, unscaled[2 * position : 2 * position + 2], index)


def two_losses(program: Program, step: Step):
    """Each optimizer scales its own loss; the steps are interleaved, as in adversarial training."""
    indices = sorted({step.optimizer, step.other})
    scaled = [
        _gradients(program, step, program.optimizers[index].get_scaled_loss, index)
        for index in indices
    ]
    for index, gradients in zip(indices, scaled):
        unscaled = program.optimizers[index].get_unscaled_gradients(gradients)
        _apply(program, step, unscaled, index)


STYLES: Dict[str, Callable[[Program, Step], None]] = {
    style.__name__: style
    for style in (
        *(usual, in_one_function, accumulating, clipped, unscaled_by_hand, scaled_by_hand),
        *(by_hand, not_scaled, zeros, zeros_and_set_weights, minimize, validated),
        *(unscaled_by_the_other, one_loss_for_both, two_losses),
    )
}

# Steps of Keras 3, which only optimizers of Keras 3 can make.


def fit(program: Program, step: Step):
    """What `fit` of Keras 3 does in one step."""
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(program, step, optimizer.scale_loss, step.optimizer)
    _apply(program, step, scaled, step.optimizer)


def scale_and_apply(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(program, step, optimizer.scale_loss, step.optimizer)

    def apply(*gradients: Any):
        optimizer.apply(list(gradients), program.weights[step.optimizer])

    program.part(step, "apply", apply, *scaled)


def scaled_with_dynamic_scale(program: Program, step: Step):
    optimizer = program.optimizers[step.optimizer]
    scaled = _gradients(
        program, step, lambda loss: loss * optimizer.dynamic_scale.value, step.optimizer
    )
    optimizer.apply(list(scaled), program.weights[step.optimizer])


def dynamic_scale_alone(program: Program, step: Step):
    """Scaled by hand with a name of Keras 3, in the place where the gradients are applied."""
    optimizer = program.optimizers[step.optimizer]
    with tf.GradientTape() as tape:
        loss = program.loss(step.optimizer) * optimizer.dynamic_scale.value
    gradients = tape.gradient(loss, program.sources(step.optimizer))
    optimizer.apply_gradients(list(zip(gradients, program.weights[step.optimizer])))


KERAS_3_STYLES: Dict[str, Callable[[Program, Step], None]] = {
    style.__name__: style
    for style in (fit, scale_and_apply, scaled_with_dynamic_scale, dynamic_scale_alone)
}
ALL_STYLES = {**STYLES, **KERAS_3_STYLES}


_WHERE = ("eager", "function", "parts")
# Programs seldom make a step of Keras 3 in parts, and then not beside steps of Keras 2.
_WHERE_KERAS_3 = (*["eager", "function"] * 10, "parts")


def random_program(seed: int, count: int, keras_3: bool = False) -> List[Step]:
    """A program of three to eight steps of `count` optimizers."""
    chance = random.Random(seed)
    names = sorted(ALL_STYLES if keras_3 else STYLES)
    steps = []
    for _ in range(chance.randint(3, 8)):
        style = chance.choice(names)
        steps.append(
            Step(
                style,
                optimizer=chance.randrange(count),
                other=chance.randrange(count),
                where=chance.choice(_WHERE_KERAS_3 if style in KERAS_3_STYLES else _WHERE),
                factor=chance.choice([1.0, 1.0, 0.5, float("inf")]),
                kept=chance.random() < 0.7,
            )
        )
    return steps


def run(program: Program, steps: Sequence[Step]) -> List[Numbers]:
    """The numbers of a program after each of its steps."""
    rows = []
    for step in steps:
        program.make(step)
        rows.append(program.numbers())
    return rows
