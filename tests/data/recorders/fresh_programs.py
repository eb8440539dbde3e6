"""Six more programs that were written after the rules of `compare` were fixed.

    tf-lossscale record [--disturb 2] FILE fresh_programs.py PROGRAM [original|shim]
    python fresh_programs.py PROGRAM IMPLEMENTATION FOLDER MISTAKE ...

They are run as those of `unseen_programs.py` are, which has what they share.
"""

import sys
from typing import Any, Callable, Dict, List, Sequence

import numpy as np
import tensorflow as tf
from unseen_programs import (
    IS_KERAS_3,
    RESTART,
    Loop,
    Run,
    Warmup,
    adam,
    batches,
    entropy,
    fitted,
    lose_slots,
    main,
    policy,
    scaled,
    set_weights,
    sgd,
)


def scale(run: Run, inner: Any, power: int, period: int) -> Any:
    """Returns the optimizer; two mistakes are another initial scale, and a longer period."""
    initial = run.either("initial", power - 2, power)
    return scaled(run, inner, 2.0**initial, run.either("period", 2 * period, period))


def without_compiling() -> Dict[str, Any]:
    return {"jit_compile": False} if IS_KERAS_3 else {}


def zeroed(run: Run, gradients: List[Any]) -> List[Any]:
    """Returns the gradients, or zeros for those that are not finite, so that no step is skipped."""
    if run.mistake != "zeroed":
        return gradients
    return [
        tf.where(tf.math.is_finite(gradient), gradient, tf.zeros_like(gradient))
        for gradient in gradients
    ]


def gan_fit(run: Run) -> None:
    """Two networks against each other in a `train_step` of one's own, with two optimizers."""
    layers, half = tf.keras.layers, policy("float16")
    make = [layers.Dense(32, "relu", dtype=half), layers.Dense(64, "sigmoid", dtype="float32")]
    judge = [layers.Dense(32, "relu", dtype=half), layers.Dense(1, dtype="float32")]

    def made(noise: Any) -> Any:
        return make[1](make[0](noise))

    def judged(images: Any) -> Any:
        return judge[1](judge[0](images))

    def judge_loss(images: Any, noise: Any) -> Any:
        real, fake = judged(images), judged(made(noise))
        return tf.reduce_mean(tf.square(real - 1.0)) + tf.reduce_mean(tf.square(fake))

    def make_loss(images: Any, noise: Any) -> Any:
        return tf.reduce_mean(tf.square(judged(made(noise)) - 1.0))

    judge_loss(tf.zeros([2, 64]), tf.zeros([2, 12]))
    of_judge, of_make = set_weights(run, judge), set_weights(run, make, 41)
    right = Run(run.implementation, "none")
    second_rate = run.either("second_rate", 0.0025, 0.002)
    first = Loop(
        run, scale(run, adam(run, run.either("rate", 0.0025, 0.002)), 17, 30), of_judge, judge_loss
    )
    second = Loop(right, scale(right, adam(right, second_rate), 20, 25), of_make, make_loss)

    class Gan(tf.keras.Model):  # type: ignore[misc]  # untyped base
        def train_step(self, data: Any) -> Any:
            images, noise = data
            gradients = zeroed(run, first.gradients(images, noise))
            first.apply(gradients)
            second.apply(second.gradients(images, noise))
            return {"finished": tf.constant(1.0)}  # Keras 3 needs one value

        def call(self, inputs: Any) -> Any:
            return judged(inputs)

    class Losing(tf.keras.callbacks.Callback):  # type: ignore[misc]  # untyped base
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if run.mistake == "restart" and batch == RESTART:
                lose_slots(first.optimizer)

    images, _ = map(np.concatenate, zip(*batches(run, 150, 24, [64])))
    noise = np.random.RandomState(5).uniform(-1.0, 1.0, [len(images), 12]).astype(np.float32)
    model = Gan()
    model.compile(**without_compiling())
    callbacks = [Losing()]
    model.fit(images, noise, batch_size=24, shuffle=False, verbose=0, callbacks=callbacks)


def mirrored(run: Run) -> None:
    """A convolution on two replicas, each of which takes its half of the batch."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    layers, half = tf.keras.layers, policy("float16")
    with strategy.scope():
        first = layers.Conv2D(8, 3, activation="relu", dtype=half)
        scores = layers.Dense(10, dtype="float32")

        def forward(x: Any, labels: Any) -> Any:
            state = first(x)
            return entropy(scores(tf.reshape(state, [-1, 288])), labels) / run.either(
                "sum", 1.0, 2.0
            )

        forward(tf.zeros([2, 8, 8, 1]), tf.zeros([2], tf.int64))
        variables = set_weights(run, [first, scores])
        inner = tf.keras.optimizers.SGD(
            run.either("rate", 0.06, 0.05),
            run.either("momentum", 0.0, 0.9),
            nesterov=run.mistake != "momentum",
        )
        optimizer = scale(run, inner, 18, 20)
    loop = Loop(run, optimizer, variables, forward)

    def on_replica(x: Any, labels: Any) -> None:
        place = tf.distribute.get_replica_context().replica_id_in_sync_group
        place = run.either("replica", 0, place)
        x, labels = (tf.reshape(part, [2, -1, *part.shape[1:]])[place] for part in (x, labels))
        loop.apply(zeroed(run, loop.gradients(x, labels)))

    @tf.function
    def step(x: Any, labels: Any, number: Any) -> None:
        strategy.run(on_replica, (x, labels))

    loop.train(step, batches(run, 140, 32, [8, 8, 1]))


def gru_stateful(run: Run) -> None:
    """A recurrent layer that keeps its state between batches, in `fit`, computed in float32."""
    layers = tf.keras.layers
    inputs = tf.keras.Input(batch_shape=[32, 8, 8])
    keeps = run.mistake != "state"
    state = layers.GRU(24, stateful=keeps)(inputs)
    model = tf.keras.Model(inputs, layers.Dense(10)(state))
    set_weights(run, model.layers)
    steps = run.either("schedule", 400, 40)
    rate = tf.keras.optimizers.schedules.ExponentialDecay(run.either("rate", 0.12, 0.1), steps, 0.8)
    fitted(run, model, scale(run, sgd(run, rate), 12, 40), 150, [8, 8], **without_compiling())


def eager_bfloat16(run: Run) -> None:
    """Residual layers in an eager loop that clips each gradient, computed in bfloat16."""
    layers, half = tf.keras.layers, policy("bfloat16")
    dense = [layers.Dense(32, dtype=half) for _ in range(3)]
    scores = layers.Dense(10, dtype="float32")

    def forward(x: Any, labels: Any) -> Any:
        state = dense[0](x)
        for layer in dense[1:]:
            state = state + tf.nn.relu(layer(state))
        return entropy(scores(state), labels)

    forward(tf.zeros([2, 64]), tf.zeros([2], tf.int64))
    variables = set_weights(run, [*dense, scores])
    optimizer = scale(run, tf.keras.optimizers.Adagrad(run.either("rate", 0.06, 0.05)), 15, 40)
    loop = Loop(run, optimizer, variables, forward)

    def step(x: Any, labels: Any, number: Any) -> None:
        gradients = loop.gradients(x, labels)
        if run.mistake != "clip":
            gradients = [tf.clip_by_norm(gradient, 0.2) for gradient in gradients]
        loop.apply(gradients)

    loop.train(step, batches(run, 140, 24, [64]))


def accumulated_clipped(run: Run) -> None:
    """Gradients of three parts of a batch, added up in one function, and then clipped together."""
    layers, half = tf.keras.layers, policy("float16")
    hidden = [layers.Dense(size, "tanh", dtype=half) for size in (40, 32)]
    scores = layers.Dense(10, dtype="float32")

    def forward(x: Any, labels: Any) -> Any:
        return entropy(scores(hidden[1](hidden[0](x))), labels)

    forward(tf.zeros([2, 64]), tf.zeros([2], tf.int64))
    variables = set_weights(run, [*hidden, scores])
    inner = tf.keras.optimizers.RMSprop(
        run.either("rate", 0.0012, 0.001), 0.9, run.either("momentum", 0.0, 0.5)
    )
    loop = Loop(run, scale(run, inner, 20, 25), variables, forward)
    parts = run.either("lost_part", 2, 3)

    @tf.function
    def step(x: Any, labels: Any, number: Any) -> None:
        pieces = list(zip(tf.split(x, 3), tf.split(labels, 3)))[:parts]
        found = [loop.gradients(*piece) for piece in pieces]
        sums = [tf.add_n(list(gradients)) for gradients in zip(*found)]
        sums = zeroed(run, [total / run.either("sum", 1.0, 3.0) for total in sums])
        if run.mistake != "clip":
            sums, _ = tf.clip_by_global_norm(sums, 0.5)
        loop.apply(sums)

    loop.train(step, batches(run, 150, 24, [64]))


def transformer_fit(run: Run) -> None:
    """Two blocks of a transformer in `fit`: warm-up, decay of the weights, clipping by Keras."""
    layers, half = tf.keras.layers, "mixed_float16"
    tf.keras.mixed_precision.set_global_policy(half)  # for the layers that the attention makes
    inputs = tf.keras.Input([8, 8])
    decay = None if run.mistake == "decay" else tf.keras.regularizers.L2(1e-3)
    state = layers.Dense(16, dtype=half)(inputs)
    for _ in range(2):
        attention = layers.MultiHeadAttention(2, 8, dtype=half)
        state = layers.LayerNormalization(dtype=half)(state + attention(state, state))
        wide = layers.Dense(32, "gelu", kernel_regularizer=decay, dtype=half)(state)
        state = state + layers.Dense(16, kernel_regularizer=decay, dtype=half)(wide)
    state = layers.GlobalAveragePooling1D(dtype=half)(state)
    model = tf.keras.Model(inputs, layers.Dense(10, dtype="float32")(state))
    set_weights(run, model.layers)
    rate = Warmup(run.either("rate", 0.0072, 0.006))
    options = {} if run.mistake == "clip" else {"global_clipnorm": 0.6}
    optimizer = scale(run, adam(run, rate, **options), 17, 30)
    fitted(run, model, optimizer, 160, [8, 8], **without_compiling())


PROGRAMS: Dict[str, Callable[[Run], None]] = {
    program.__name__: program
    for program in (
        *(gan_fit, mirrored, gru_stateful),
        *(eager_bfloat16, accumulated_clipped, transformer_fit),
    )
}
COMMON = ("rate", "restart", "weights", "order", "half", "initial", "period")
SCALING = ("not_scaled", "not_unscaled", "frozen")
MISTAKES: Dict[str, Sequence[str]] = {
    "gan_fit": (*COMMON, *SCALING, "momentum", "zeroed", "second_rate", "epsilon"),
    "mirrored": (*COMMON, *SCALING, "momentum", "zeroed", "replica", "sum"),
    "gru_stateful": (*COMMON, "momentum", "state", "schedule", "sum"),
    "eager_bfloat16": (*COMMON, *SCALING, "clip"),
    "accumulated_clipped": (*COMMON, *SCALING, "momentum", "zeroed", "clip", "lost_part", "sum"),
    "transformer_fit": (*COMMON, "momentum", "epsilon", "clip", "decay", "sum"),
}


def two_devices() -> None:
    """Gives this process two devices, before TensorFlow uses the first."""
    cpu = tf.config.experimental.list_physical_devices("CPU")[0]
    device = tf.config.experimental.VirtualDeviceConfiguration()
    tf.config.experimental.set_virtual_device_configuration(cpu, [device, device])


if __name__ == "__main__":
    if sys.argv[1] == "mirrored":
        two_devices()
    main(PROGRAMS, MISTAKES, *sys.argv[1:])
