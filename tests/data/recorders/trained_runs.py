"""Trains small float16 networks, correctly or with one deliberate mistake, and records the runs.

    python trained_runs.py FOLDER session|loop|fit original|shim CASE ...

A CASE is `MODEL/MISTAKE/STEPS`, such as `dense/none/300`; its record is FOLDER/MODEL-MISTAKE.jsonl.
The digits, their order and the initial weights are the same in every version. The loss scale starts
too high, and grows every 20 steps until the next overflow, so that all runs skip steps.
"""

import os
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples"))

import tensorflow as tf  # noqa: E402
from digits_data import batches  # noqa: E402

import tf_lossscale as tfls  # noqa: E402

tf1 = tf.compat.v1
TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
BATCH = 64
CLIP = 4.0


class Case(NamedTuple):
    """A run to train: the model, the mistake (or "none") and the number of steps."""

    model: str
    mistake: str = "none"
    steps: int = 300


# What each mistake changes.
MISTAKES = {
    "rate": "learning rate 1.2 times as large",
    "period": "loss scale grows every 10 steps in place of 20",
    "ratio": "loss scale changes by the factor 4 in place of 2",
    "initial": "initial loss scale half as large",
    "order": "data in another order",
    "weights": "other initial weights",
    "unscaled_loss": "loss not scaled",
    "twice": "gradients unscaled twice",
    "clip": "gradients clipped before they are unscaled",
    "replica": "gradients of one of two replicas ignored",
}
# The Keras classes always double and halve.
MISTAKES_OF = {
    style: tuple(each for each in MISTAKES if each != without)
    for style, without in (("session", "initial"), ("loop", "ratio"), ("fit", "ratio"))
}
MODELS = ("dense", "conv", "text")
SIZES: Dict[str, List[Tuple[int, ...]]] = {
    "dense": [(64, 32), (32,), (32, 10), (10,)],
    "conv": [(3, 3, 1, 8), (8,), (128, 10), (10,)],
    "text": [(17, 8), (8, 16), (16, 16), (16,), (16, 10), (10,)],
}
RATES = {"dense": 0.02, "conv": 0.01, "text": 0.02}


def weights(case: Case) -> List[np.ndarray]:
    """Returns the initial weights."""
    random = np.random.RandomState(1 if case.mistake == "weights" else 0)
    return [
        (random.randn(*size) * np.sqrt(1.0 / np.prod(size[:-1]))).astype(np.float32)
        if len(size) > 1
        else np.zeros(size, np.float32)
        for size in SIZES[case.model]
    ]


def data(case: Case) -> Iterator[Tuple[np.ndarray, np.ndarray]]:
    """Yields the batches, in the form that the model takes."""
    for images, digits in batches(case.steps, BATCH, 1 if case.mistake == "order" else 0):
        if case.model == "dense":
            images = images.reshape([-1, 64])
        elif case.model == "text":  # a text of 16 words, from a vocabulary of 17
            blocks = images.reshape([-1, 4, 2, 4, 2]).mean(axis=(2, 4))
            images = np.round(blocks * 16).astype(np.int32).reshape([-1, 16])
        yield images, digits


class Settings(NamedTuple):
    """The numbers of a run."""

    rate: float
    initial_scale: float
    period: int
    ratio: float


def settings(case: Case) -> Settings:
    """Returns the numbers of a run, with its mistake."""
    return Settings(
        RATES[case.model] * (1.2 if case.mistake == "rate" else 1.0),
        2.0**21 if case.mistake == "initial" else 2.0**22,
        10 if case.mistake == "period" else 20,
        4.0 if case.mistake == "ratio" else 2.0,
    )


def mean_loss(losses: Any, mistake: str) -> Any:
    """Returns the mean of the losses of a batch, of which each replica has one half."""
    if mistake != "replica":
        return tf.reduce_mean(losses)
    mine, ignored = tf.split(losses, 2)
    return (tf.reduce_mean(mine) + tf.stop_gradient(tf.reduce_mean(ignored))) / 2.0


# -------------------------------------------------------------------------------------- Sessions


def logits_of(model: str, inputs: Any, variables: List[Any]) -> Any:
    """Returns the float32 logits of a network that calculates in float16."""
    halves = [tf.cast(each, tf.float16) for each in variables]
    if model == "text":
        embedding, kernel, recurrent, bias, dense, bias_of_dense = halves
        words = tf.unstack(tf.gather(embedding, inputs), 16, axis=1)
        state = tf.zeros([BATCH, 16], tf.float16)
        for word in words:
            state = tf.tanh(tf.matmul(word, kernel) + tf.matmul(state, recurrent) + bias)
        return tf.cast(tf.matmul(state, dense) + bias_of_dense, tf.float32)
    kernel, bias, dense, bias_of_dense = halves
    x = tf.cast(inputs, tf.float16)
    if model == "conv":
        x = tf.nn.conv2d(x, kernel, strides=[1, 2, 2, 1], padding="SAME")
        x = tf.reshape(tf.nn.relu(x + bias), [BATCH, 128])
    else:
        x = tf.nn.relu(tf.matmul(x, kernel) + bias)
    return tf.cast(tf.matmul(x, dense) + bias_of_dense, tf.float32)


def train_in_session(case: Case, implementation: str) -> None:
    """Trains with the contrib class."""
    numbers = settings(case)
    if implementation == "original":
        from tensorflow.contrib import mixed_precision as contrib
    else:
        contrib = tfls.contrib.mixed_precision
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        sizes = {"dense": [BATCH, 64], "conv": [BATCH, 8, 8, 1], "text": [BATCH, 16]}
        kind = tf.int32 if case.model == "text" else tf.float32
        inputs = tf1.placeholder(kind, sizes[case.model])
        digits = tf1.placeholder(tf.int32, [BATCH])
        variables = [
            tf1.get_variable(f"w{number}", initializer=value)
            for number, value in enumerate(weights(case))
        ]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=digits, logits=logits_of(case.model, inputs, variables)
        )
        loss = mean_loss(losses, case.mistake)
        inner = (
            tf1.train.AdamOptimizer(numbers.rate / 4)
            if case.model == "text"
            else tf1.train.MomentumOptimizer(numbers.rate, 0.9)
        )
        manager = contrib.ExponentialUpdateLossScaleManager(
            numbers.initial_scale, numbers.period, 2, numbers.ratio, 1 / numbers.ratio
        )
        optimizer = contrib.LossScaleOptimizer(inner, manager)
        scale = manager.get_loss_scale()
        if case.mistake == "clip":
            gradients = tf.gradients(loss * scale, variables)
            clipped, _ = tf.clip_by_global_norm(gradients, CLIP)
            gradients = [each / scale for each in clipped]
        else:
            if case.mistake == "unscaled_loss":
                gradients = tf.gradients(loss, variables)
            else:
                gradients = [each for each, _ in optimizer.compute_gradients(loss, variables)]
            if case.mistake == "twice":
                gradients = [each / scale for each in gradients]
            gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
        step = optimizer.apply_gradients(zip(gradients, variables))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for images, labels in data(case):
                session.run(step, {inputs: images, digits: labels})


# ----------------------------------------------------------------------------------------- Keras


def keras_version() -> int:
    """Returns the version of `tf.keras`."""
    return 3 if getattr(tf.keras, "__version__", "2").startswith("3") else 2


def loss_scale_optimizer(case: Case, implementation: str, may_be_adam: bool) -> Any:
    """Returns the wrapped optimizer: TensorFlow's class, or ours."""
    numbers = settings(case)
    if case.model == "text" and may_be_adam:
        inner = tf.keras.optimizers.Adam(numbers.rate / 4)
    else:
        inner = tf.keras.optimizers.SGD(numbers.rate, momentum=0.9)
    precision = getattr(tf.keras, "mixed_precision", None)
    if implementation == "original" and TF_VERSION < (2, 4):
        dynamic = tf1.train.experimental.DynamicLossScale(numbers.initial_scale, numbers.period)
        return precision.experimental.LossScaleOptimizer(inner, dynamic)
    cls = precision.LossScaleOptimizer if implementation == "original" else None
    cls = cls or tfls.keras.mixed_precision.LossScaleOptimizer
    return cls(inner, initial_scale=numbers.initial_scale, dynamic_growth_steps=numbers.period)


def network(case: Case, outer: Any = None) -> Any:
    """Returns the Keras model, in float16; `outer` is a subclass of `Model` to use."""
    layers = tf.keras.layers
    policy = "mixed_float16"
    if TF_VERSION < (2, 4):
        policy = tf.keras.mixed_precision.experimental.Policy(policy, loss_scale=None)
    elif TF_VERSION < (2, 8):
        policy = tf.keras.mixed_precision.Policy(policy)
    if case.model == "text":
        inputs = tf.keras.Input([16], BATCH, dtype="int32")
        x = layers.Embedding(17, 8, dtype=policy)(inputs)
        x = layers.SimpleRNN(16, unroll=True, dtype=policy)(x)
    elif case.model == "conv":
        inputs = tf.keras.Input([8, 8, 1], BATCH)
        x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu", dtype=policy)(inputs)
        x = layers.Reshape([128], dtype=policy)(x)
    else:
        inputs = tf.keras.Input([64], BATCH)
        x = layers.Dense(32, activation="relu", dtype=policy)(inputs)
    x = layers.Dense(10, dtype=policy)(x)
    x = layers.Activation("linear", dtype="float32")(x)
    model = (outer or tf.keras.Model)(inputs, x)
    model.set_weights(weights(case))
    return model


def update(case: Case, optimizer: Any, model: Any, images: Any, digits: Any, clip: bool) -> None:
    """One step of a custom loop, with the mistake."""
    like_keras_3 = not hasattr(optimizer, "get_unscaled_gradients")
    scale_loss = optimizer.scale_loss if like_keras_3 else optimizer.get_scaled_loss
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=digits, logits=model(images, training=True)
        )
        loss = mean_loss(losses, case.mistake)
        scaled = loss if case.mistake == "unscaled_loss" else scale_loss(loss)
    variables = model.trainable_variables
    gradients = tape.gradient(scaled, variables)
    if case.mistake == "clip":
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
    if case.mistake == "twice":
        scale = optimizer.dynamic_scale if like_keras_3 else optimizer.loss_scale
        scale = tf.convert_to_tensor(scale() if callable(scale) else scale)
        gradients = [tf.convert_to_tensor(each) / scale for each in gradients]
    if like_keras_3:
        optimizer.apply(gradients, variables)
        return
    gradients = optimizer.get_unscaled_gradients(gradients)
    if clip and case.mistake != "clip":
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
    optimizer.apply_gradients(list(zip(gradients, variables)))


def train_in_loop(case: Case, implementation: str) -> None:
    """Trains with a custom loop in a `tf.function`."""
    tf.keras.backend.clear_session()
    model = network(case)
    optimizer = loss_scale_optimizer(case, implementation, may_be_adam=True)

    @tf.function
    def step(images: Any, digits: Any) -> None:
        update(case, optimizer, model, images, digits, clip=True)

    for images, digits in data(case):
        step(tf.constant(images), tf.constant(digits))


def train_by_fit(case: Case, implementation: str) -> None:
    """Trains with `fit`; mistakes within the step are those of an own `train_step`."""
    tf.keras.backend.clear_session()
    # The class of Keras 3 does not count the skipped steps for Adam (known differences).
    optimizer = loss_scale_optimizer(case, implementation, may_be_adam=False)

    class WithOwnStep(tf.keras.Model):  # type: ignore[misc]
        def train_step(self, batch: Any) -> Dict[str, Any]:
            update(case, optimizer, self, *batch, clip=False)
            return {"loss": tf.constant(0.0)}

    in_step = case.mistake in ("unscaled_loss", "twice", "clip", "replica")
    model = network(case, WithOwnStep if in_step else None)
    if in_step and keras_version() == 3:
        optimizer.build(model.trainable_variables)  # it has no scale before
    options: Dict[str, Any] = {"jit_compile": False} if keras_version() == 3 else {}
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, **options)
    images, digits = zip(*data(case))
    model.fit(
        np.concatenate(images), np.concatenate(digits), batch_size=BATCH, shuffle=False, verbose=0
    )


STYLES: Dict[str, Callable[[Case, str], None]] = {
    "session": train_in_session,
    "loop": train_in_loop,
    "fit": train_by_fit,
}


def record(path: str, style: str, implementation: str, case: Case) -> None:
    """Records a run."""
    tfls.recording.start(path)
    try:
        STYLES[style](case, implementation)
    finally:
        tfls.recording.stop()


def main(arguments: List[str]) -> Optional[str]:
    """Records the runs that the command line names."""
    if len(arguments) < 4 or arguments[1] not in STYLES:
        return __doc__
    folder, style, implementation = arguments[:3]
    os.makedirs(folder, exist_ok=True)
    for text in arguments[3:]:
        model, mistake, steps = text.split("/")
        path = os.path.join(folder, f"{model}-{mistake}.jsonl")
        record(path, style, implementation, Case(model, mistake, int(steps)))
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
