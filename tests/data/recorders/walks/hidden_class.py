import numpy as np
import tensorflow as tf
from packaging.version import parse

if parse(tf.__version__) >= parse("2.4"):
    from tensorflow.keras.mixed_precision import LossScaleOptimizer
else:
    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as _Old

    def LossScaleOptimizer(opt):
        return _Old(opt, "dynamic")


opt = LossScaleOptimizer(tf.keras.optimizers.SGD(0.02))
r = np.random.RandomState(0)
w = tf.Variable(r.randn(8, 1).astype("float32") * 0.1)
true = r.randn(8, 1).astype("float32")


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, w) - y) ** 2)
        scaled = opt.get_scaled_loss(loss) if hasattr(opt, "get_scaled_loss") else loss
    grads = tape.gradient(scaled, [w])
    if hasattr(opt, "get_unscaled_gradients"):
        grads = opt.get_unscaled_gradients(grads)
    opt.apply_gradients(zip(grads, [w]))
    return loss


for _ in range(200):
    x = r.randn(32, 8).astype("float32")
    loss = train_step(x, x.dot(true))
print(f"loss {float(loss):.5f}")
