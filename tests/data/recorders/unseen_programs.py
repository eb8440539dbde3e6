"""Eight programs that were written after the rules of `compare` were fixed, to test these.

    tf-lossscale record [--disturb 5] FILE unseen_programs.py PROGRAM [original|shim|keras3]
    python unseen_programs.py PROGRAM IMPLEMENTATION FOLDER MISTAKE ...

The first command records a correct run: on an old version with TensorFlow's class, on a new one as
it was migrated. The second one records a run with each mistake, as FOLDER/PROGRAM-MISTAKE.jsonl.
Data, their order, dropout masks and the initial weights are the same in every version.
"""

import os
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples"))

import tensorflow as tf  # noqa: E402 - after the path is set
from digits_data import load  # noqa: E402 - likewise

import tf_lossscale as tfls  # noqa: E402 - likewise

tf1 = tf.compat.v1
TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
IS_KERAS_3 = getattr(getattr(tf, "keras", None), "__version__", "2").startswith("3")
RESTART = 100
"""At this step, the slots of the mistake `restart` are lost."""


class Run(NamedTuple):
    """What is trained: with which classes, and with which mistake, if any."""

    implementation: str
    mistake: str

    def either(self, mistake: str, wrong: Any, right: Any) -> Any:
        return wrong if self.mistake == mistake else right


def batches(run: Run, steps: int, size: int, form: Sequence[int]) -> Iterator[Tuple[Any, Any]]:
    images, digits = load()
    random = np.random.RandomState(run.either("order", 12, 11))
    order = np.concatenate(
        [random.permutation(len(images)) for _ in range(1 + steps * size // 1700)]
    )
    for step in range(steps):
        take = order[step * size : (step + 1) * size]
        if run.mistake == "half":
            take = np.concatenate([take[: size // 2]] * 2)
        yield images[take].reshape([size, *form]), digits[take].astype(np.int64)


def drawn(run: Run, shapes: Sequence[Sequence[int]], seed: int = 21) -> List[np.ndarray]:
    """Returns initial weights: zeros for vectors, which are biases."""
    random = np.random.RandomState(run.either("weights", seed + 1, seed))
    return [
        (random.randn(*shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)
        if len(shape) > 1
        else np.zeros(shape, np.float32)
        for shape in shapes
    ]


def entropy(scores: Any, labels: Any) -> Any:
    scores = tf.cast(scores, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    return tf.reduce_mean(losses)


# ------------------------------------------------------------------------------------------ Keras


def policy(dtype: str) -> Any:
    name = dtype if dtype == "float32" else "mixed_" + dtype
    if TF_VERSION < (2, 4):
        return tf.keras.mixed_precision.experimental.Policy(name, loss_scale=None)
    return tf.keras.mixed_precision.Policy(name) if TF_VERSION < (2, 8) else name


def scaled(run: Run, inner: Any, initial: float, period: int) -> Any:
    """Returns the optimizer with a dynamic loss scale."""
    if run.implementation == "original" and TF_VERSION < (2, 4):
        scale = tf1.train.experimental.DynamicLossScale(initial, period)
        return tf.keras.mixed_precision.experimental.LossScaleOptimizer(inner, scale)
    owner = tfls if run.implementation == "shim" else tf
    cls = owner.keras.mixed_precision.LossScaleOptimizer
    return cls(inner, initial_scale=initial, dynamic_growth_steps=period)


def adam(run: Run, rate: Any, **options: Any) -> Any:
    beta, epsilon = run.either("momentum", 0.0, 0.9), run.either("epsilon", 1e-4, 1e-7)
    return tf.keras.optimizers.Adam(rate, beta, 0.98, epsilon, **options)


def sgd(run: Run, rate: float) -> Any:
    return tf.keras.optimizers.SGD(rate, run.either("momentum", 0.0, 0.9))


def inner_of(optimizer: Any) -> Any:
    return getattr(optimizer, "inner_optimizer", None) or optimizer._optimizer


def set_weights(run: Run, layers: Sequence[Any], seed: int = 21) -> List[Any]:
    """Sets the weights that are matrices; returns all that are trained."""
    variables = [variable for layer in layers for variable in layer.trainable_variables]
    values = drawn(run, [tuple(variable.shape) for variable in variables], seed)
    for variable, value in zip(variables, values):
        if value.ndim > 1:
            variable.assign(value)
    return variables


def lose_slots(optimizer: Any) -> None:
    slots = inner_of(optimizer).variables
    for slot in slots() if callable(slots) else slots:
        if len(slot.shape):
            slot.assign(np.zeros(slot.shape, np.float32))


class Loop:
    """A custom training loop with one optimizer, in a `tf.function`."""

    def __init__(self, run: Run, optimizer: Any, variables: List[Any], forward: Callable) -> None:
        self.run, self.optimizer, self.variables, self.forward = run, optimizer, variables, forward

    def gradients(self, *inputs: Any) -> List[Any]:
        with tf.GradientTape() as tape:
            loss = self.forward(*inputs)
            if self.run.mistake != "not_scaled":
                loss = self.optimizer.get_scaled_loss(loss)
        found = tape.gradient(loss, self.variables)
        if self.run.mistake != "not_unscaled":
            found = self.optimizer.get_unscaled_gradients(found)
        if self.run.mistake == "frozen":
            found[2] = tf.zeros_like(found[2])
        return list(found)

    def apply(self, gradients: List[Any]) -> None:
        self.optimizer.apply_gradients(list(zip(gradients, self.variables)))

    def train(self, step: Callable, data: Iterator[Tuple[Any, Any]]) -> None:
        for number, (x, labels) in enumerate(data):
            if self.run.mistake == "restart" and number == RESTART:
                lose_slots(self.optimizer)
            step(tf.constant(x), tf.constant(labels), tf.constant(number))


class Warmup(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A rate that rises for 40 steps, and then falls with the square root of the steps."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def __call__(self, step: Any) -> Any:
        place = tf.cast(step, tf.float32) + 1.0
        return self.rate * tf.minimum(place / 40.0, tf.sqrt(40.0 / place))

    def get_config(self) -> Dict[str, Any]:
        return {"rate": self.rate}


def attention_clipped(run: Run) -> None:
    """A block of a transformer: layer normalization, Adam with warm-up, clipping, weight decay."""
    layers, half = tf.keras.layers, policy("float16")
    embed, query, key, value = (layers.Dense(16, use_bias=False, dtype=half) for _ in range(4))
    norm = layers.LayerNormalization(dtype=half)
    wide, narrow = layers.Dense(48, "relu", dtype=half), layers.Dense(16, dtype=half)
    scores = layers.Dense(10, dtype="float32")

    def forward(x: Any, labels: Any) -> Any:
        state = embed(x)
        weights = tf.nn.softmax(tf.matmul(query(state), key(state), transpose_b=True) * 0.25)
        state = norm(state + tf.matmul(weights, value(state)))
        state = state + narrow(wide(state))
        return entropy(scores(tf.reduce_mean(state, axis=1)), labels)

    forward(tf.zeros([2, 8, 8]), tf.zeros([2], tf.int64))
    variables = set_weights(run, [embed, query, key, value, norm, wide, narrow, scores])
    rate = Warmup(run.either("rate", 0.012, 0.01))
    optimizer = scaled(run, adam(run, rate), 2.0**17, 30)
    loop = Loop(run, optimizer, variables, forward)

    @tf.function
    def step(x: Any, labels: Any, number: Any) -> None:
        gradients = loop.gradients(x, labels)
        if run.mistake != "clip":
            gradients, _ = tf.clip_by_global_norm(gradients, 0.7)
        decay = run.either("decay", 0.0, 1e-3)
        loop.apply([g + decay * tf.convert_to_tensor(v) for g, v in zip(gradients, variables)])

    loop.train(step, batches(run, 180, 24, [8, 8]))


def accumulated(run: Run) -> None:
    """A convolution whose gradients are accumulated over four batches in variables."""
    layers, half = tf.keras.layers, policy("float16")
    first = layers.Conv2D(6, 3, activation="relu", dtype=half)
    second = layers.Conv2D(12, 3, 2, activation="relu", dtype=half)
    scores = layers.Dense(10, dtype="float32")

    def forward(x: Any, labels: Any) -> Any:
        return entropy(scores(tf.reshape(second(first(x)), [-1, 48])), labels)

    forward(tf.zeros([2, 8, 8, 1]), tf.zeros([2], tf.int64))
    variables = set_weights(run, [first, second, scores])
    optimizer = scaled(run, sgd(run, run.either("rate", 0.06, 0.05)), 2.0**19, 25)
    loop = Loop(run, optimizer, variables, forward)
    sums = [tf.Variable(tf.zeros(variable.shape), trainable=False) for variable in variables]

    @tf.function
    def accumulate(x: Any, labels: Any) -> None:
        for total, gradient in zip(sums, loop.gradients(x, labels)):
            total.assign_add(gradient)

    @tf.function
    def apply() -> None:
        count = run.either("sum", 1.0, 4.0)
        loop.apply([total / count for total in sums])

    def step(x: Any, labels: Any, number: Any) -> None:
        parts = list(zip(tf.split(x, 4), tf.split(labels, 4)))
        for part in parts[: run.either("lost_part", 3, 4)]:
            accumulate(*part)
        apply()
        for total in sums:
            total.assign(tf.zeros(total.shape))

    loop.train(step, batches(run, 160, 32, [8, 8, 1]))


def two_optimizers(run: Run) -> None:
    """An encoder that momentum trains, and two heads that Adam trains, with a loss scale each."""
    layers, half = tf.keras.layers, policy("float16")
    encoder = [layers.Dense(size, "tanh", dtype=half) for size in (40, 24)]
    scores, code = layers.Dense(10, dtype="float32"), layers.Dense(64, dtype=half)

    def forward(x: Any, labels: Any) -> Any:
        state = encoder[1](encoder[0](x))
        error = tf.cast(code(state), tf.float32) - x
        return entropy(scores(state), labels) + 0.3 * tf.reduce_mean(tf.square(error))

    forward(tf.zeros([2, 64]), tf.zeros([2], tf.int64))
    body, heads = set_weights(run, encoder), set_weights(run, [scores, code], 31)
    correct = Run(run.implementation, "none")
    first = Loop(
        run, scaled(run, sgd(run, run.either("rate", 0.036, 0.03)), 2.0**20, 25), body, forward
    )
    other = Run(run.implementation, run.either("second_epsilon", "epsilon", "none"))
    rate = run.either("second_rate", 0.006, 0.005)
    second = Loop(correct, scaled(correct, adam(other, rate), 2.0**16, 40), heads, forward)

    @tf.function
    def step(x: Any, labels: Any, number: Any) -> None:
        of_body, of_heads = first.gradients(x, labels), second.gradients(x, labels)
        first.apply(of_body)
        second.apply(of_heads)

    first.train(step, batches(run, 160, 32, [64]))


def dropout_long(run: Run) -> None:
    """A deep network with dropout, whose masks every version draws alike, for 1,000 steps."""
    layers, half = tf.keras.layers, policy("float16")
    hidden = [layers.Dense(size, "relu", dtype=half) for size in (48, 48, 32)]
    scores = layers.Dense(10, dtype="float32")
    keep = run.either("dropout", 0.6, 0.75)

    def forward(x: Any, labels: Any, number: Any) -> Any:
        for place, layer in enumerate(hidden):
            x = layer(x)
            seed = tf.stack([tf.cast(number, tf.int32), place])
            drawn_values = tf.random.stateless_uniform([16, x.shape[-1]], seed)
            x = x * tf.cast(drawn_values < keep, x.dtype) / tf.cast(keep, x.dtype)
        return entropy(scores(x), labels)

    forward(tf.zeros([16, 64]), tf.zeros([16], tf.int64), 0)
    variables = set_weights(run, [*hidden, scores])
    rms = tf.keras.optimizers.RMSprop(
        run.either("rate", 0.0012, 0.001),
        0.95,
        run.either("momentum", 0.0, 0.6),
        run.either("epsilon", 1e-4, 1e-7),
    )
    loop = Loop(run, scaled(run, rms, 2.0**16, 50), variables, forward)

    @tf.function
    def step(x: Any, labels: Any, number: Any) -> None:
        loop.apply(loop.gradients(x, labels, number))

    loop.train(step, batches(run, 1000, 16, [64]))


def fitted(run: Run, model: Any, optimizer: Any, steps: int, form: List[int], **how: Any) -> None:
    loss = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, **({"reduction": "sum"} if run.mistake == "sum" else {})
    )
    model.compile(optimizer, loss, **how)
    x, labels = map(np.concatenate, zip(*batches(run, steps, 32, form)))

    class Losing(tf.keras.callbacks.Callback):  # type: ignore[misc]  # untyped base
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if run.mistake == "restart" and batch == RESTART:
                lose_slots(model.optimizer)

    model.fit(x, labels, batch_size=32, shuffle=False, verbose=0, callbacks=[Losing()])


def lstm_bfloat16(run: Run) -> None:
    """A recurrent layer of Keras in `fit`, computed in bfloat16."""
    layers, half = tf.keras.layers, policy("bfloat16")
    inputs = tf.keras.Input([8, 8])
    state = layers.LSTM(20, unroll=True, dtype=half)(inputs)
    state = layers.Dense(16, "tanh", dtype=half)(state)
    model = tf.keras.Model(inputs, layers.Dense(10, dtype="float32")(state))
    set_weights(run, model.layers)
    options = {} if run.mistake == "clip" else {"global_clipnorm": 0.5}
    optimizer = scaled(run, adam(run, run.either("rate", 0.0048, 0.004), **options), 2.0**15, 50)
    how: Dict[str, Any] = {"jit_compile": False} if IS_KERAS_3 else {}
    fitted(run, model, optimizer, 180, [8, 8], **how)


def xla_fit(run: Run) -> None:
    """A convolution with batch normalization in `fit`, compiled by XLA."""
    layers, half = tf.keras.layers, policy("float16")
    inputs = tf.keras.Input([8, 8, 1], 32)
    state = layers.Conv2D(8, 3, padding="same", dtype=half)(inputs)
    state = layers.Activation("relu", dtype=half)(layers.BatchNormalization(dtype=half)(state))
    state = layers.Conv2D(8, 3, 2, activation="relu", dtype=half)(state)
    state = layers.Flatten(dtype=half)(state)
    model = tf.keras.Model(inputs, layers.Dense(10, dtype="float32")(state))
    set_weights(run, model.layers)
    optimizer = scaled(run, sgd(run, run.either("rate", 0.024, 0.02)), 2.0**18, 25)
    fitted(run, model, optimizer, 160, [8, 8, 1], jit_compile=True)


# --------------------------------------------------------------------------------------- Sessions


class Graph(NamedTuple):
    """What a Session trains."""

    x: Any
    labels: Any
    operation: Any
    reset: Any


def session_optimizer(run: Run, inner: Any, initial: float, period: int, is_contrib: bool) -> Any:
    """Returns the optimizer, and what gives its loss scale."""
    if is_contrib:
        space = tfls.contrib.mixed_precision
        if run.implementation == "original":
            from tensorflow.contrib import mixed_precision as space
        manager = space.ExponentialUpdateLossScaleManager(initial, period, 2, 2.0, 0.8)
        return space.LossScaleOptimizer(inner, manager), manager.get_loss_scale
    space = tfls.compat.v1.mixed_precision
    if run.implementation == "original":
        space = tf1.train.experimental if TF_VERSION < (2, 4) else tf1.mixed_precision
    scale = space.DynamicLossScale(initial, period)
    return space.MixedPrecisionLossScaleOptimizer(inner, scale), scale


def session_step(
    run: Run, inner: Any, loss: Any, w: List[Any], clip: Optional[float], scale: Any
) -> Any:
    initial, period, is_contrib = scale
    optimizer, current = session_optimizer(run, inner, initial, period, is_contrib)
    gradients = [gradient for gradient, _ in optimizer.compute_gradients(loss, w)]
    if run.mistake == "not_unscaled":
        gradients = [gradient * current() for gradient in gradients]
    if run.mistake == "not_scaled":
        gradients = [gradient / current() for gradient in gradients]
    if run.mistake == "frozen":
        gradients[-2] = tf.zeros_like(gradients[-2])
    if clip and run.mistake != "clip":
        gradients = [tf.clip_by_norm(gradient, clip) for gradient in gradients]
    return optimizer.apply_gradients(list(zip(gradients, w)))


def in_session(run: Run, make: Callable[[], Graph], data: Iterator[Tuple[Any, Any]]) -> None:
    with tf.Graph().as_default():
        graph = make()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for step, (x, labels) in enumerate(data):
                if run.mistake == "restart" and step == RESTART:
                    session.run(graph.reset)
                session.run(graph.operation, {graph.x: x, graph.labels: labels})


def slots_of(variables: Sequence[Any]) -> Any:
    names = tuple(variable.name[:-2] + "/" for variable in variables)
    return tf1.variables_initializer(
        [variable for variable in tf1.global_variables() if variable.name.startswith(names)]
    )


def embedding_session(run: Run) -> None:
    """Embeddings with sparse gradients in a Session, computed in float32."""

    def make() -> Graph:
        x = tf1.placeholder(tf.float32, [32, 64])
        labels = tf1.placeholder(tf.int64, [32])
        shapes = [(64 * 17, 8), (8, 24), (24,), (24, 10), (10,)]
        w = [
            tf1.get_variable(f"w{number}", initializer=value)
            for number, value in enumerate(drawn(run, shapes))
        ]
        words = tf.cast(tf.round(x * 16.0), tf.int32) + 17 * tf.range(64)
        state = tf.reduce_sum(tf.nn.embedding_lookup(w[0], words), axis=1)
        state = tf.nn.relu(tf.matmul(state, w[1]) + w[2])
        loss = entropy(tf.matmul(state, w[3]) + w[4], labels)
        rate = run.either("rate", 0.024, 0.02)
        inner = tf1.train.MomentumOptimizer(rate, run.either("momentum", 0.0, 0.8))
        operation = session_step(run, inner, loss, w, None, (2.0**12, 40, False))
        return Graph(x, labels, operation, slots_of(w))

    in_session(run, make, batches(run, 200, 32, [64]))


def contrib_loop(run: Run) -> None:
    """A recurrent network in a `while_loop`, with gradients that are clipped one by one."""

    def make() -> Graph:
        x = tf1.placeholder(tf.float32, [32, 8, 8])
        labels = tf1.placeholder(tf.int64, [32])
        shapes = [(8, 24), (24, 24), (24,), (24, 10), (10,)]
        w = [
            tf1.get_variable(f"w{number}", initializer=value)
            for number, value in enumerate(drawn(run, shapes))
        ]
        half = [tf.cast(variable, tf.float16) for variable in w]
        rows = tf.cast(tf.transpose(x, [1, 0, 2]), tf.float16)

        def body(step: Any, state: Any) -> Tuple[Any, Any]:
            mixed = tf.matmul(rows[step], half[0]) + tf.matmul(state, half[1]) + half[2]
            return step + 1, tf.tanh(mixed)

        state = tf.zeros([32, 24], tf.float16)
        _, state = tf.while_loop(lambda step, _: step < 8, body, [tf.constant(0), state])
        loss = entropy(tf.matmul(state, half[3]) + half[4], labels)
        rate, beta = run.either("rate", 0.0036, 0.003), run.either("momentum", 0.0, 0.9)
        inner = tf1.train.AdamOptimizer(rate, beta, epsilon=run.either("epsilon", 1e-4, 1e-8))
        operation = session_step(run, inner, loss, w, 0.4, (2.0**19, 20, True))
        return Graph(x, labels, operation, slots_of(w))

    in_session(run, make, batches(run, 180, 32, [8, 8]))


PROGRAMS: Dict[str, Callable[[Run], None]] = {
    program.__name__: program
    for program in (
        *(attention_clipped, accumulated, two_optimizers, dropout_long),
        *(lstm_bfloat16, xla_fit, embedding_session, contrib_loop),
    )
}
COMMON = ("rate", "momentum", "restart", "weights", "order", "half")
SCALING = ("not_scaled", "not_unscaled", "frozen")
MISTAKES: Dict[str, Sequence[str]] = {
    "attention_clipped": (*COMMON, *SCALING, "epsilon", "clip", "decay"),
    "accumulated": (*COMMON, *SCALING, "sum", "lost_part"),
    "two_optimizers": (*COMMON, *SCALING, "second_rate", "second_epsilon"),
    "dropout_long": (*COMMON, *SCALING, "epsilon", "dropout"),
    "lstm_bfloat16": (*COMMON, "epsilon", "clip", "sum"),
    "xla_fit": (*COMMON, "sum"),
    "embedding_session": (*COMMON, *SCALING),
    "contrib_loop": (*COMMON, *SCALING, "epsilon", "clip"),
}


def main(
    programs: Dict[str, Callable[[Run], None]],
    mistakes_of: Dict[str, Sequence[str]],
    name: str,
    implementation: str = "original",
    folder: str = "",
    *mistakes: str,
) -> None:
    """Trains a program; with a folder, records a run with each mistake there."""
    if not folder:
        programs[name](Run(implementation, "none"))
        return
    os.makedirs(folder, exist_ok=True)
    for mistake in mistakes or mistakes_of[name]:
        tfls.recording.start(os.path.join(folder, f"{name}-{mistake}.jsonl"), overwrite=True)
        try:
            programs[name](Run(implementation, mistake))
        finally:
            tfls.recording.stop()


if __name__ == "__main__":
    main(PROGRAMS, MISTAKES, *sys.argv[1:])
