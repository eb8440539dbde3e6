"""A place in functions that call each other many times is examined once for each function."""

from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options


def test_many_paths_of_calls():
    """With 40 levels that each call the next one four times, there are 4 ** 40 paths."""
    levels = [
        f"def f{n}():\n    f{n + 1}(), f{n + 1}()\n    f{n + 1}(), f{n + 1}()\n" for n in range(40)
    ]
    last = "def f40():\n    return tf.tpu.CrossShardOptimizer\n"
    source = "\n\n".join(["import tensorflow as tf\n", *levels, last])
    result = transform(source.encode(), Options())
    assert result.error is None
    assert b"tf.compat.v1.tpu.CrossShardOptimizer" in result.source
