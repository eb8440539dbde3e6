"""`all_finite` is right for every dtype, shape and mode, in each of its implementations."""

import numpy as np
import pytest
import support
import tensorflow as tf

from tf_lossscale._core import finite

tf1 = tf.compat.v1
INF, NAN = float("inf"), float("nan")
DTYPES = [tf.float16, tf.bfloat16, tf.float32, tf.float64]


def cases(dtype):
    big = float(dtype.max)
    return [
        ([], True),
        (2.0, True),
        (NAN, False),
        ([1.0, INF], False),
        ([-INF] * 3, False),
        ([INF, -INF], False),
        ([big] * 3, True),  # their sum overflows
        ([-big] * 3, True),
        ([big, -big, big, NAN], False),
        ([1e-40] * 1000, True),
        ([0.0] * 50000 + [NAN] + [0.0] * 77, False),
        ([[[1.0, -2.0]], [[0.0, -INF]]], False),
    ]


def tensors(values, dtype):
    return [
        tf.cast(tf.constant(values, tf.float64), dtype),
        None,
        tf.constant([1.0]),
        tf.IndexedSlices(tf.constant([2.0]), tf.constant([0])),
    ]


def eager(build):
    with support.eager():
        return [flag.numpy() for flag in build()]


def function(build):
    with support.eager():
        return [flag.numpy() for flag in tf.function(build)()]


def compiled(build):
    with support.eager():
        return [flag.numpy() for flag in tf.function(build, jit_compile=True)()]


def in_session(build):
    with support.graph() as session:
        return session.run(build())


MODES = [eager, function, in_session] + ([compiled] if support.TF_VERSION >= (2, 5) else [])


@pytest.mark.sampled(4, each="dtype")
@pytest.mark.parametrize("has_gpu", [False, True], ids=["", "gpu"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES, ids=[dtype.name for dtype in DTYPES])
def test_every_dtype_and_mode(mode, dtype, has_gpu, monkeypatch):
    if has_gpu:  # float16 is added up there
        monkeypatch.setattr(tf.config.experimental, "list_physical_devices", lambda kind: [kind])
    table = cases(dtype)
    got = mode(lambda: [finite.all_finite(tensors(values, dtype)) for values, _ in table])
    assert [bool(flag) for flag in got] == [finite for _, finite in table]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES, ids=[dtype.name for dtype in DTYPES])
def test_each_of_several_gradients_of_the_same_shape(mode, dtype):
    """Small ones are tested together, also with others of another dtype."""

    def flag(bad):
        gradients = [tf.cast(tf.fill([2, 3], float(index == bad)), dtype) for index in range(4)]
        gradients = [gradient / (1.0 - gradient) for gradient in gradients]  # 1 / 0, or 0 / 1
        return finite.all_finite([*gradients, tf.ones([2, 3]), tf.ones([3, 2], dtype), tf.ones([])])

    got = mode(lambda: [flag(bad) for bad in range(5)])
    assert [bool(value) for value in got] == [False, False, False, False, True]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_test_is_finite(mode):
    assert mode(lambda: [finite.all_finite([]), finite.all_finite([None])]) == [True, True]


@pytest.mark.parametrize("mode", [eager, function, in_session])
@pytest.mark.parametrize("dtype", [tf.int32, tf.complex64])
def test_other_dtypes_are_type_errors(mode, dtype):
    with pytest.raises(TypeError, match="float"):
        mode(lambda: [finite.all_finite([tf.constant(1.0), tf.zeros([2], dtype)])])


def test_unknown_shapes():
    with support.graph() as session:
        value = tf1.placeholder(tf.float32)
        flag = finite.all_finite([value])
        assert session.run(flag, {value: np.ones([2, 3])})
        assert not session.run(flag, {value: [INF]})


@pytest.mark.parametrize("size", [7, 50000])
def test_a_gradient_is_read_again_only_where_a_sum_is_not_finite(size):
    """`docs/cost.md`: in a Session; by how many operations that run."""
    with support.graph() as session:
        gradients = [tf1.placeholder(tf.float32, [size]) for _ in range(2)]
        flag = finite.all_finite(gradients)
        readers = {consumer.name for consumer in gradients[0].consumers()}

        def reads(value):
            metadata = tf1.RunMetadata()
            options = tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE)
            values = {gradient: np.full([size], value) for gradient in gradients}
            session.run(flag, values, options, metadata)
            stats = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
            return len(readers & {node.node_name for node in stats})

        assert [reads(value) for value in (1.0, INF, float(tf.float32.max))] == [1, 2, 2]
