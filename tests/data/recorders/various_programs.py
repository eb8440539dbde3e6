"""Trains programs of many kinds, correctly or with one deliberate mistake, and records the runs.

    python various_programs.py FOLDER original|shim|keras3 [PROGRAM[@DTYPE]/MISTAKE[#DISTURBED] ...]

Without a list, all programs that this version of TensorFlow can train are recorded with all
mistakes. The dtype of the computation is float16 unless another one is named. With a number, the
run is disturbed as `record --disturb` does in the run of this number. A record is
FOLDER/PROGRAM@DTYPE-MISTAKE#DISTURBED.jsonl. Data, their order and the initial weights are the same
in every version.
"""

import os
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples"))

import tensorflow as tf  # noqa: E402 - after the path is set
from digits_data import load  # noqa: E402 - likewise

import tf_lossscale as tfls  # noqa: E402 - likewise
from tf_lossscale._recorder import session  # noqa: E402 - likewise
from tf_lossscale._records.destination import Destination  # noqa: E402 - likewise
from tf_lossscale._records.disturbed import SIZES, disturbance  # noqa: E402 - likewise

tf1 = tf.compat.v1
TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
BATCH, STEPS = 32, 240
SCHEDULE, RESTART, LATE = 90, 110, 70
"""At these steps the learning rate falls, slots are lost, and the order of the data changes."""

FIT_MISTAKES = ("rate", "momentum", "settings", "part", "order", "late", "weights", "period")
FIT_MISTAKES += ("schedule", "fixed", "sum", "clip")
MISTAKES = (*FIT_MISTAKES, "twice", "scaled", "half", "frozen", "restart", "decay")
"""What they are is in `tests/shim/recording/collected_runs.py`."""


_dtype = "float16"


def half(x: Any) -> Any:
    return tf.cast(x, _dtype)


def logits(x: Any, kernel: Any, bias: Any) -> Any:
    return tf.cast(tf.matmul(x, kernel) + bias, tf.float32)


def entropy(scores: Any, labels: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)


def two_layers(w: List[Any], x: Any) -> Any:
    return logits(tf.nn.relu(tf.matmul(half(x), w[0]) + w[1]), w[2], w[3])


def dense(w: List[Any], x: Any, labels: Any) -> Any:
    return entropy(two_layers(w, x), labels)


def convolution(w: List[Any], x: Any, labels: Any) -> Any:
    for kernel, bias in ((w[0], w[1]), (w[2], w[3])):
        x = tf.nn.conv2d(half(x), kernel, strides=[1, 2, 2, 1], padding="SAME")
        x = tf.nn.relu(x + bias)
    return entropy(logits(tf.reshape(x, [-1, 64]), w[4], w[5]), labels)


def gru(w: List[Any], x: Any, labels: Any) -> Any:
    state = tf.zeros([1, 16], _dtype) * half(x[:, 0, :1])
    for step in range(8):
        both = tf.concat([half(x[:, step]), state], 1)
        reset, keep = tf.split(tf.sigmoid(tf.matmul(both, w[0]) + w[1]), 2, 1)
        both = tf.concat([half(x[:, step]), reset * state], 1)
        state = keep * state + (1 - keep) * tf.tanh(tf.matmul(both, w[2]) + w[3])
    return entropy(logits(state, w[4], w[5]), labels)


def lstm(w: List[Any], x: Any, labels: Any) -> Any:
    state = cell = tf.zeros([1, 16], _dtype) * half(x[:, 0, :1])
    for step in range(8):
        both = tf.concat([half(x[:, step]), state], 1)
        take, new, keep, out = tf.split(tf.matmul(both, w[0]) + w[1], 4, 1)
        cell = tf.sigmoid(keep) * cell + tf.sigmoid(take) * tf.tanh(new)
        state = tf.sigmoid(out) * tf.tanh(cell)
    return entropy(logits(state, w[2], w[3]), labels)


def words(w: List[Any], x: Any, labels: Any) -> Any:
    x = tf.reduce_mean(tf.gather(w[0], x) + w[1], axis=1)
    return entropy(logits(tf.tanh(tf.matmul(x, w[2]) + w[3]), w[4], w[5]), labels)


def attention(w: List[Any], x: Any, labels: Any) -> Any:
    x = tf.gather(w[0], x) + w[1]
    query, key, value = (
        tf.reshape(tf.matmul(tf.reshape(x, [-1, 8]), w[i]), [-1, 16, 8]) for i in (2, 3, 4)
    )
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * 0.35)
    x = tf.reduce_mean(tf.nn.relu(x + tf.matmul(weights, value)), axis=1)
    return entropy(logits(x, w[5], w[6]), labels)


def autoencoder(w: List[Any], x: Any, labels: Any) -> Any:
    code = tf.tanh(tf.matmul(half(x), w[0]) + w[1])
    return tf.reduce_mean(tf.square(tf.sigmoid(logits(code, w[2], w[3])) - x), axis=1)


def residual(w: List[Any], x: Any, labels: Any) -> Any:
    x = tf.nn.conv2d(half(x), w[0], strides=[1, 2, 2, 1], padding="SAME") + w[1]
    y = tf.cast(x, tf.float32)
    mean, variance = tf.nn.moments(y, [0, 1, 2])
    y = half((y - mean) / tf.sqrt(variance + 1e-3))
    x = x + tf.nn.conv2d(tf.nn.relu(y), w[2], strides=[1, 1, 1, 1], padding="SAME")
    return entropy(logits(tf.reshape(tf.nn.relu(x), [-1, 128]), w[3], w[4]), labels)


class Program(NamedTuple):
    """A training program; `scale` holds the initial loss scale and the steps before growth."""

    style: str
    forward: Any
    shapes: List[Tuple[int, ...]]
    optimizer: str
    rate: float
    scale: Tuple[float, int] = (2.0**15, 2000)
    form: str = "flat"
    clip: float = 0.0
    decay: float = 0.0


DENSE: List[Tuple[int, ...]] = [(64, 32), (32,), (32, 10), (10,)]
CONV: List[Tuple[int, ...]] = [(3, 3, 1, 8), (8,), (3, 3, 8, 16), (16,), (64, 10), (10,)]
GRU: List[Tuple[int, ...]] = [(24, 32), (32,), (24, 16), (16,), (16, 10), (10,)]
LSTM: List[Tuple[int, ...]] = [(24, 64), (64,), (16, 10), (10,)]
WORDS: List[Tuple[int, ...]] = [(17, 8), (16, 8), (8, 16), (16,), (16, 10), (10,)]
ATTENTION: List[Tuple[int, ...]] = [(17, 8), (16, 8), (8, 8), (8, 8), (8, 8), (8, 10), (10,)]
AUTO: List[Tuple[int, ...]] = [(64, 16), (16,), (16, 64), (64,)]
RESIDUAL: List[Tuple[int, ...]] = [(3, 3, 1, 8), (8,), (3, 3, 8, 8), (128, 10), (10,)]
OFTEN = (2.0**18, 20)

PROGRAMS: Dict[str, Program] = {
    "contrib_dense": Program("contrib", dense, DENSE, "momentum", 0.05, (2.0**22, 20)),
    "contrib_conv": Program("contrib", convolution, CONV, "adam", 0.005, form="image", clip=5.0),
    "contrib_gru": Program("contrib", gru, GRU, "rmsprop", 0.005, OFTEN, "rows", 1.0),
    "contrib_parts": Program("contrib", dense, DENSE, "momentum", 0.02, decay=1e-3),
    "contrib_gan": Program("contrib", None, DENSE, "adam", 0.002),
    "v1_words": Program("v1", words, WORDS, "adagrad", 0.5, (2.0**20, 20), "words"),
    "v1_auto": Program("v1", autoencoder, AUTO, "momentum", 0.5, (2.0**12, 100), decay=1e-4),
    "keras_dense": Program("keras", dense, DENSE, "sgd", 0.1, (2.0**22, 20), clip=3.0),
    "keras_conv": Program("keras", convolution, CONV, "adam", 0.003, form="image", decay=1e-3),
    "keras_words": Program("keras", words, WORDS, "rmsprop", 0.003, OFTEN, "words"),
    "fit_dense": Program("fit", "dense", [], "momentum", 0.03, (2.0**20, 20)),
    "fit_words": Program("fit", "words", [], "adam", 0.005, form="words", clip=1.0),
    "contrib_residual": Program("contrib", residual, RESIDUAL, "nesterov", 0.02, form="image"),
    "v1_attention": Program("v1", attention, ATTENTION, "adam", 0.005, OFTEN, "words", 1.0),
    "keras_lstm": Program("keras", lstm, LSTM, "adam", 0.005, OFTEN, "rows", 1.0, 1e-3),
    "fit_conv": Program("fit", "conv", [], "rmsprop", 0.002, form="image"),
    "keras_auto": Program("keras", autoencoder, AUTO, "momentum", 0.5, (2.0**24, 20)),
    # Adam with its usual rate: the sign of a small gradient decides a whole step of a weight.
    "keras_adam": Program("keras", dense, DENSE, "adam", 0.001),
    "fit_adam": Program("fit", "mlp", [], "adam", 0.001),
    "fit_pool": Program("fit", "pool", [], "adam", 0.001, form="image"),
    "keras_gru": Program("keras", gru, GRU, "adam", 0.001, form="rows"),
    "fit_deep": Program("fit", "deep", [], "adam", 0.0005),
    # Sums of many random numbers, which float16 rounds more.
    "fit_noise": Program("fit", "mlp", [], "adam", 0.001, form="noise"),
    "fit_big": Program("fit", "big", [], "adam", 0.001, form="big"),
    "v1_noise": Program("v1", dense, DENSE, "momentum", 0.02, form="noise"),
    "keras_noise": Program("keras", dense, DENSE, "adam", 0.002, form="noise", clip=2.0),
    "keras_steps": Program("keras", lstm, LSTM, "momentum", 0.1, form="steps"),
    "fit_wide": Program("fit", "wide", [], "adam", 0.0003, form="noise"),
    "fit_stride": Program("fit", "stride", [], "momentum", 0.01, form="big"),
}


def initial_weights(shapes: Sequence[Any], mistake: str) -> List[np.ndarray]:
    random = np.random.RandomState(1 if mistake == "weights" else 0)
    return [
        (random.randn(*shape) * np.sqrt(1.0 / np.prod(shape[:-1]))).astype(np.float32)
        if len(shape) > 1
        else np.zeros(shape, np.float32)
        for shape in shapes
    ]


def batches(program: Program, mistake: str) -> Iterator[Tuple[np.ndarray, np.ndarray]]:
    images, digits = random_data(program.form) if program.form in NOISE else load()
    random = np.random.RandomState(1 if mistake == "order" else 0)
    order = np.concatenate([random.permutation(len(images)) for _ in range(8)])
    for step in range(STEPS):
        start = (step + 3 if mistake == "late" and step >= LATE else step) * BATCH
        take = order[start : start + BATCH]
        if mistake == "part" and program.style == "fit":
            take = np.concatenate([take[: BATCH // 2]] * 2)
        yield formed(images[take], program.form), digits[take]


NOISE = {"noise": (64,), "steps": (8, 8), "big": (28, 28, 1)}


def random_data(form: str) -> Tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(5)
    values = random.randn(1792, *NOISE[form]).astype(np.float32)
    flat = values.reshape([len(values), -1])
    return values, np.argmax(flat @ random.randn(flat.shape[1], 10), axis=1)


def formed(images: np.ndarray, form: str) -> np.ndarray:
    if form in ("flat", "rows"):
        return images.reshape([-1, 64] if form == "flat" else [-1, 8, 8])
    if form == "words":
        blocks = images.reshape([-1, 4, 2, 4, 2]).mean(axis=(2, 4))
        return np.round(blocks * 16).astype(np.int32).reshape([-1, 16])
    return images


def rate_at(program: Program, mistake: str, step: int) -> float:
    rate = program.rate * (1.1 if mistake == "rate" else 1.0)
    return rate * (0.3 if step >= SCHEDULE and mistake != "schedule" else 1.0)


def growth_steps(program: Program, mistake: str) -> int:
    return program.scale[1] // 2 if mistake == "period" else program.scale[1]


def mean_loss(program: Program, mistake: str, w: List[Any], x: Any, labels: Any) -> Any:
    if mistake == "part":
        x, labels = x[: BATCH // 2], labels[: BATCH // 2]
    losses = program.forward([half(weight) for weight in w], x, labels)
    if mistake != "half":
        return tf.reduce_mean(losses)
    mine, ignored = tf.split(losses, 2)
    return (tf.reduce_mean(mine) + tf.stop_gradient(tf.reduce_mean(ignored))) / 2.0


def changed(program: Program, mistake: str, gradients: List[Any], w: List[Any], scale: Any) -> Any:
    """Returns what the program applies of the unscaled gradients."""
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    if mistake == "twice":
        gradients = [gradient / scale for gradient in gradients]
    if mistake == "scaled":
        gradients = [gradient * scale for gradient in gradients]
    if mistake == "sum":
        gradients = [gradient * 4.0 for gradient in gradients]
    if mistake == "frozen":
        gradients[-2] = gradients[-2] * 0.0
    if program.clip:
        norm = program.clip * (0.3 if mistake == "clip" else 1.0)
        gradients, _ = tf.clip_by_global_norm(gradients, norm)
    elif mistake == "clip":
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    if program.decay and mistake != "decay":
        gradients = [gradient + program.decay * value for gradient, value in zip(gradients, w)]
    return gradients


# -------------------------------------------------------------------------------------- Sessions


def session_inner(program: Program, mistake: str, rate: Any) -> Any:
    train = tf1.train
    kind, lost, other = program.optimizer, mistake == "momentum", mistake == "settings"
    if kind in ("momentum", "nesterov"):
        nesterov = (kind == "nesterov") != other
        return train.MomentumOptimizer(rate, 0.0 if lost else 0.9, use_nesterov=nesterov)
    if kind == "adam":
        return train.AdamOptimizer(rate, 0.0 if lost else 0.9, 0.9 if other else 0.999)
    if kind == "rmsprop":
        return train.RMSPropOptimizer(rate, 0.99 if other else 0.9, 0.0 if lost else 0.5)
    return train.AdagradOptimizer(rate, 0.2 if other else 0.1)


def session_optimizer(program: Program, mistake: str, rate: Any, implementation: str) -> Any:
    inner = session_inner(program, mistake, rate)
    initial, period = program.scale[0], growth_steps(program, mistake)
    if program.style == "contrib":
        contrib = tfls.contrib.mixed_precision
        if implementation == "original":
            from tensorflow.contrib import mixed_precision as contrib
        if mistake == "fixed":
            manager = contrib.FixedLossScaleManager(initial)
        else:
            manager = contrib.ExponentialUpdateLossScaleManager(initial, period, 1, 2.0, 0.5)
        return contrib.LossScaleOptimizer(inner, manager), manager.get_loss_scale
    if implementation == "original":
        space = tf1.train.experimental if TF_VERSION < (2, 4) else tf1.mixed_precision
    else:
        space = tfls.compat.v1.mixed_precision
    scale = space.FixedLossScale(initial)
    if mistake != "fixed":
        scale = space.DynamicLossScale(initial, period)
    return space.MixedPrecisionLossScaleOptimizer(inner, scale), scale


def in_session(name: str, mistake: str, implementation: str) -> None:
    program = PROGRAMS[name]
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        rate = tf1.placeholder(tf.float32, [])
        x, labels = (
            tf1.placeholder(tf.as_dtype(array.dtype), array.shape)
            for array in next(batches(program, mistake))
        )
        if name == "contrib_gan":
            steps = gan_steps(program, mistake, implementation, x, rate)
        else:
            w = [
                tf1.get_variable(f"w{number}", initializer=value)
                for number, value in enumerate(initial_weights(program.shapes, mistake))
            ]
            optimizer, scale = session_optimizer(program, mistake, rate, implementation)
            if name == "contrib_parts":
                gradients = gradients_of_parts(program, mistake, optimizer, w, x, labels)
            else:
                loss = mean_loss(program, mistake, w, x, labels)
                gradients = [gradient for gradient, _ in optimizer.compute_gradients(loss, w)]
            gradients = changed(program, mistake, gradients, w, scale())
            steps = [optimizer.apply_gradients(zip(gradients, w))]
        trained = {variable.name for variable in tf1.trainable_variables()}
        slots = [
            variable
            for variable in tf1.global_variables()
            if any(variable.name.startswith(name[:-2] + "/") for name in trained)
        ]
        reset = tf1.variables_initializer(slots)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for step, (images, digits) in enumerate(batches(program, mistake)):
                feed = {x: images, labels: digits, rate: rate_at(program, mistake, step)}
                if mistake == "restart" and step == RESTART:
                    session.run(reset)
                for operation in steps:
                    session.run(operation, feed)


def gradients_of_parts(
    program: Program, mistake: str, optimizer: Any, w: List[Any], x: Any, labels: Any
) -> List[Any]:
    """The mean of the gradients of four parts of the batch."""
    parts = []
    for images, digits in zip(tf.split(x, 4), tf.split(labels, 4)):
        losses = program.forward([half(weight) for weight in w], images, digits)
        loss = tf.reduce_mean(losses)
        parts.append([gradient for gradient, _ in optimizer.compute_gradients(loss, w)])
    if mistake in ("half", "part"):
        parts = parts[:2]
    return [tf.add_n(list(gradients)) / float(len(parts)) for gradients in zip(*parts)]


def gan_steps(program: Program, mistake: str, implementation: str, real: Any, rate: Any) -> Any:
    """Two networks; the mistake is in the critic, which is recorded as the second optimizer."""
    random = np.random.RandomState(1 if mistake == "weights" else 0)

    def variables(prefix: str, shapes: List[Tuple[int, ...]]) -> List[Any]:
        return [
            tf1.get_variable(
                f"{prefix}{number}",
                initializer=(random.randn(*shape) * 0.2).astype(np.float32),
            )
            for number, shape in enumerate(shapes)
        ]

    def network(w: List[Any], x: Any) -> Any:
        return two_layers([half(weight) for weight in w], x)

    maker = variables("maker", [(64, 16), (16,), (16, 64), (64,)])
    critic = variables("critic", [(64, 16), (16,), (16, 1), (1,)])
    noise = tf.reverse(real, [0, 1])
    false = tf.sigmoid(network(maker, noise))

    def loss_of(scores: Any, truth: float) -> Any:
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=truth + 0 * scores, logits=scores)
        )

    makers = loss_of(network(critic, false), 1.0)
    critics = loss_of(network(critic, real), 1.0) + loss_of(network(critic, false), 0.0)
    steps = []
    for w, loss, which in ((maker, makers, "none"), (critic, critics, mistake)):
        own_rate = rate / 1.1 if which == "none" and mistake == "rate" else rate
        optimizer, scale = session_optimizer(program, which, own_rate, implementation)
        gradients = [gradient for gradient, _ in optimizer.compute_gradients(loss, w)]
        gradients = changed(program, which, gradients, w, scale())
        steps.append(optimizer.apply_gradients(zip(gradients, w)))
    return steps


# ----------------------------------------------------------------------------------------- Keras

KERAS_3 = getattr(getattr(tf, "keras", None), "__version__", "2").startswith("3")


def keras_optimizer(program: Program, mistake: str, implementation: str) -> Any:
    optimizers = tf.keras.optimizers
    kind, lost, other = program.optimizer, mistake == "momentum", mistake == "settings"
    rate = rate_at(program, mistake, 0)
    options: Dict[str, Any] = {}
    if program.style == "fit" and (program.clip or mistake == "clip"):
        options["clipnorm"] = (program.clip or 1.5) * (0.3 if mistake == "clip" else 1.0)
    if kind in ("sgd", "momentum"):
        momentum = 0.0 if lost else 0.9 if kind == "momentum" else 0.5
        inner = optimizers.SGD(rate, momentum, nesterov=other, **options)
    elif kind == "adam":
        inner = optimizers.Adam(rate, 0.0 if lost else 0.9, 0.9 if other else 0.999, **options)
    else:
        inner = optimizers.RMSprop(rate, 0.99 if other else 0.9, 0.0 if lost else 0.5, **options)
    initial, period = program.scale[0], growth_steps(program, mistake)
    if implementation != "shim" and TF_VERSION < (2, 4):
        space = tf.keras.mixed_precision.experimental
        scale = tf1.train.experimental.DynamicLossScale(initial, period)
        return space.LossScaleOptimizer(inner, initial if mistake == "fixed" else scale)
    cls = tfls.keras.mixed_precision.LossScaleOptimizer
    if implementation != "shim":
        cls = tf.keras.mixed_precision.LossScaleOptimizer
    if mistake == "fixed" and not KERAS_3:
        return cls(inner, dynamic=False, initial_scale=initial)
    period = 10**6 if mistake == "fixed" else period
    return cls(inner, initial_scale=initial, dynamic_growth_steps=period)


def set_rate(optimizer: Any, rate: float) -> None:
    inner = getattr(optimizer, "inner_optimizer", None) or optimizer._optimizer
    inner.learning_rate = rate


def scale_of(optimizer: Any) -> Any:
    scale = optimizer.dynamic_scale if KERAS_3 else optimizer.loss_scale
    return tf.convert_to_tensor(scale() if callable(scale) else scale)


def in_loop(name: str, mistake: str, implementation: str) -> None:
    program = PROGRAMS[name]
    tf.keras.backend.clear_session()
    make = tf.keras.Variable if KERAS_3 else tf.Variable
    variables = [make(value, name="w") for value in initial_weights(program.shapes, mistake)]
    optimizer = keras_optimizer(program, mistake, implementation)
    if KERAS_3:
        optimizer.build(variables)

    @tf.function
    def step(x: Any, labels: Any) -> None:
        w = [tf.convert_to_tensor(variable) for variable in variables]
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = mean_loss(program, mistake, w, x, labels)
            scaled = optimizer.scale_loss(loss) if KERAS_3 else optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, w)
        if KERAS_3:
            # It unscales in `apply`, so that clipping and decay must happen with the scale.
            scale = scale_of(optimizer)
            gradients = [tf.convert_to_tensor(gradient) / scale for gradient in gradients]
            gradients = changed(program, mistake, gradients, w, scale)
            optimizer.apply([gradient * scale for gradient in gradients], variables)
        else:
            gradients = optimizer.get_unscaled_gradients(gradients)
            gradients = changed(program, mistake, gradients, w, scale_of(optimizer))
            optimizer.apply_gradients(list(zip(gradients, variables)))

    for number, (x, labels) in enumerate(batches(program, mistake)):
        if number == SCHEDULE:
            set_rate(optimizer, rate_at(program, mistake, number))
        if mistake == "restart" and number == RESTART:
            inner = getattr(optimizer, "inner_optimizer", None) or optimizer._optimizer
            slots = inner.variables() if callable(inner.variables) else inner.variables
            for slot in slots:
                if len(slot.shape):
                    slot.assign(np.zeros(slot.shape, np.float32))
        step(tf.constant(x), tf.constant(labels))


def by_fit(name: str, mistake: str, implementation: str) -> None:
    program = PROGRAMS[name]
    tf.keras.backend.clear_session()
    layers = tf.keras.layers
    policy = _dtype if _dtype == "float32" else "mixed_" + _dtype
    if TF_VERSION < (2, 4):
        policy = tf.keras.mixed_precision.experimental.Policy(policy, loss_scale=None)
    elif TF_VERSION < (2, 8):
        policy = tf.keras.mixed_precision.Policy(policy)
    if program.forward == "words":
        inputs = tf.keras.Input([16], BATCH, dtype="int32")
        x = layers.Embedding(17, 8, dtype=policy)(inputs)
        x = layers.SimpleRNN(16, unroll=True, dtype=policy)(x)
    elif program.forward == "conv":
        inputs = tf.keras.Input([8, 8, 1], BATCH)
        x = layers.Conv2D(8, 3, strides=2, padding="same", dtype=policy)(inputs)
        x = layers.BatchNormalization(dtype=policy)(x)
        x = layers.Activation("relu", dtype=policy)(x)
        x = layers.Reshape([128], dtype=policy)(x)
    elif program.forward in ("pool", "big", "stride"):
        size, padding = (8, "same") if program.forward == "pool" else (28, "valid")
        inputs = tf.keras.Input([size, size, 1], BATCH)
        stride = 2 if program.forward == "stride" else 1
        x = layers.Conv2D(8, 3, stride, padding, activation="relu", dtype=policy)(inputs)
        x = layers.MaxPooling2D(dtype=policy)(x)
        x = layers.Conv2D(16, 3, activation="relu", dtype=policy)(x)
        x = layers.Dense(32, activation="relu", dtype=policy)(layers.Flatten(dtype=policy)(x))
    else:
        inputs = x = tf.keras.Input([64], BATCH)
        sizes, activation = {
            "mlp": ([64, 64], "relu"),
            "deep": ([64, 48, 32, 24], "tanh"),
            "wide": ([256], "tanh"),
        }.get(program.forward, ([32], "relu"))
        for size in sizes:
            x = layers.Dense(size, activation=activation, dtype=policy)(x)
    x = layers.Dense(10, dtype=policy)(x)
    model = tf.keras.Model(inputs, layers.Activation("linear", dtype="float32")(x))
    built = model.get_weights()
    drawn = initial_weights([weight.shape for weight in built], mistake)
    model.set_weights([b if b.ndim == 1 else d for b, d in zip(built, drawn)])
    optimizer = keras_optimizer(program, mistake, implementation)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, **({"reduction": "sum"} if mistake == "sum" else {})
    )
    model.compile(optimizer, loss, **({"jit_compile": False} if KERAS_3 else {}))

    class Schedule(tf.keras.callbacks.Callback):  # type: ignore[misc]  # untyped base
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch == SCHEDULE:
                set_rate(model.optimizer, rate_at(program, mistake, batch))

    x, labels = map(np.concatenate, zip(*batches(program, mistake)))
    options: Dict[str, Any] = {"batch_size": BATCH, "shuffle": False, "verbose": 0}
    model.fit(x, labels, callbacks=[Schedule()], **options)


STYLES = {"contrib": in_session, "v1": in_session, "keras": in_loop, "fit": by_fit}


def cases(implementation: str) -> Iterator[str]:
    """Yields what this version of TensorFlow can train."""
    for name, program in PROGRAMS.items():
        in_graph = program.style in ("contrib", "v1")
        if implementation == "original" and program.style == "contrib" and TF_VERSION >= (2, 0):
            continue
        if TF_VERSION < (2, 3) and not in_graph:
            continue
        if KERAS_3 and implementation == "original" and in_graph:
            continue
        yield f"{name}/none"
        for mistake in MISTAKES:
            unknown = mistake == "decay" and not program.decay
            unknown |= name == "contrib_gan" and mistake in ("half", "part", "restart")
            unknown |= name == "contrib_parts" and mistake == "part"
            unknown |= program.optimizer == "adagrad" and mistake == "momentum"
            unknown |= program.style == "fit" and mistake not in FIT_MISTAKES
            if not unknown:
                yield f"{name}/{mistake}"


def main(folder: str, implementation: str, *chosen: str) -> None:
    """Records the runs that the command line names."""
    global _dtype
    os.makedirs(folder, exist_ok=True)
    for case in chosen or cases(implementation):
        run, _, number = case.partition("#")
        program, mistake = run.split("/")
        name, _, dtype = program.partition("@")
        _dtype = dtype or "float16"
        destination = Destination(os.path.join(folder, case.replace("/", "-") + ".jsonl"), True)
        destination.hold()
        disturbed = None
        if number:
            disturbed = disturbance(run, int(number), SIZES[_dtype])
        session.start(destination, disturbed=disturbed)
        try:
            STYLES[PROGRAMS[name].style](name, mistake, implementation)
        finally:
            session.stop()
        print(case, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
