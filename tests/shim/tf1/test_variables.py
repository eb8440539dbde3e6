"""`variables()` of the v1 optimizers has the loss scale, which Keras initializes in graph mode."""

import numpy as np
import pytest
import recorded
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
mp = tfls.contrib.mixed_precision
X = np.array([[1.0, 2.0], [0.5, 0.25]], "float32")
KERAS_2 = [kind.keras for kind in recorded.kinds() if kind.name == "legacy"]


class Halving(mp.LossScaleManager):
    """A manager of a program, whose variables are attributes of any kind."""

    def __init__(self):
        self.scale = tf1.Variable(1024.0, trainable=False, name="scale")
        self.counts = [tf1.Variable(0, trainable=False, name="count")]
        self.more = {"last": tf1.Variable(True, trainable=False, name="last")}

    def get_loss_scale(self):
        return self.scale

    def update_loss_scale(self, finite_grads):
        scale = tf1.where(finite_grads, self.scale.read_value(), self.scale.read_value() / 2)
        return tf.group(
            self.scale.assign(scale),
            self.counts[0].assign_add(1),
            self.more["last"].assign(finite_grads),
        )


class Wrapping(mp.LossScaleManager):
    """A manager that passes on what another one does, and refers to itself."""

    def __init__(self):
        self.manager = exponential()
        self.me = self

    def get_loss_scale(self):
        return self.manager.get_loss_scale()

    def update_loss_scale(self, finite_grads):
        return self.manager.update_loss_scale(finite_grads)


def exponential(namespace=mp):
    return namespace.ExponentialUpdateLossScaleManager(1024.0, 2, 1, 2.0, 0.5)


OF_EXPONENTIAL = ["loss_scale", "good_steps", "bad_steps"]
MANAGERS = {
    "exponential": (exponential, OF_EXPONENTIAL),
    "fixed": (lambda: mp.FixedLossScaleManager(1024.0), []),
    "own": (Halving, ["scale", "count", "last"]),
    "wrapping": (Wrapping, OF_EXPONENTIAL),
}
if support.IS_TF1:
    ORIGINAL = support.contrib_namespaces()["original"]
    MANAGERS["original"] = (lambda: exponential(ORIGINAL), OF_EXPONENTIAL)


def optimizers(inner):
    """Functions that make each optimizer around `inner`, with the names of its own variables."""
    v1 = tfls.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer
    found = {"v1": (lambda: v1(inner(), "dynamic"), ["current_loss_scale", "good_steps"])}
    for name, (manager, variables) in MANAGERS.items():
        found[name] = (lambda make=manager: mp.LossScaleOptimizer(inner(), make()), variables)
    return found


NAMES = list(optimizers(None))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("keras", KERAS_2)
@pytest.mark.parametrize("name", NAMES)
def test_keras_trains_in_graph_mode(name, keras):
    """As reported in tensorflow/tensorflow#29130 and #37965, where `variables()` was missing."""
    make, _ = optimizers(lambda: tf1.train.MomentumOptimizer(0.125, 0.5))[name]
    weights = []
    for optimizer in (make, lambda: tf1.train.MomentumOptimizer(0.125, 0.5)):
        with tf.Graph().as_default(), tf1.Session().as_default():
            dense = keras.layers.Dense(
                1, use_bias=False, kernel_initializer="ones", input_shape=(2,)
            )
            model = keras.Sequential([dense])
            model.compile(optimizer(), "mse")
            model.fit(X, np.zeros([2, 1]), batch_size=1, epochs=2, verbose=0, shuffle=False)
            weights.append(model.get_weights()[0].ravel().tolist())
    assert weights[0] == weights[1] != [1.0, 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_order(name):
    make, own = optimizers(lambda: tf1.train.MomentumOptimizer(0.125, 0.5))[name]
    with tf.Graph().as_default():
        make()  # variables of another graph do not count
    with support.graph():
        variable = tf1.get_variable("v", initializer=[1.0])
        optimizer = make()
        optimizer.minimize(tf.reduce_sum(variable))
        names = [variable.op.name for variable in optimizer.variables()]
        assert names == ["v/Momentum", *own]
        saved = {variable.op.name for variable in tf1.global_variables()}
        assert saved == {"v", *names}
        outer = tfls.tpu.CrossShardOptimizer(optimizer)
        assert [variable.op.name for variable in outer.variables()] == names


@pytest.mark.parametrize("name", NAMES)
def test_in_eager_mode(name):
    with support.eager():
        make, own = optimizers(lambda: tf1.train.MomentumOptimizer(0.125, 0.5))[name]
        optimizer = make()
        variable = tf.compat.v2.Variable([1.0], name="v")
        optimizer.minimize(lambda: tf.reduce_sum(variable), var_list=[variable])
        names = [variable.name.split(":")[0].split("/")[-1] for variable in optimizer.variables()]
        # In eager mode, the names of slots are numbered through the whole process.
        assert names[0].startswith("Momentum")
        assert names[1:] == own


def test_a_manager_of_two_optimizers_counts_once():
    with support.graph():
        manager = exponential()
        inner = mp.LossScaleOptimizer(support.sgd(), manager)
        outer = mp.LossScaleOptimizer(inner, manager)
        assert [variable.op.name for variable in outer.variables()] == OF_EXPONENTIAL
