"""The check between workers at the beginning of a step: that all are at the same step.

The devices of a collective find each other by its key. If workers assigned keys while tracing, the
keys would differ as soon as one worker traces once more than the others. And a key does not depend
on what is summed, so a vector could be added to a scalar. Therefore each step begins with a
collective that always has the same key and shape. In it, every replica contributes a row of
numbers: which line of the program calls, what for, and with which shapes. If the rows differ, every
replica sees this, and all raise the same error. If they are equal, the sums get keys that depend
only on their shapes.

The steps of a worker run one after the other, so only one step uses these keys at any time.

In a Session, all workers should have built the same graph. There each sum has its own keys, from
when it was built, and its own check under one of them. Several checks can run at the same time, so
a replica that sees a mismatch must not fail immediately. Its failure would abort its other checks,
the workers in those would fail too, and a worker that still had to receive something from one of
them would wait forever. So every replica waits before it fails, long enough for all replicas to see
the mismatch themselves.
"""

import os
import sys
import time
import zlib
from types import FrameType
from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_lossscale._core.shards import CHECK_KEY, group_key, sum_key
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.graphs import outermost_graph
from tf_lossscale._versions.replicas import (
    KEYS_AT_RUN_TIME,
    advance,
    collective_reduce,
    host_of,
)

__all__ = [
    "Call",
    "CallSite",
    "Step",
    "call_site",
    "check_between_workers",
    "has_several_workers",
    "step_of",
    "sum_together",
    "workers_are_checked",
]

# Packages whose frames lie between the user's line and ours, and modules that call functions that
# are passed to them, because the threads of replicas begin there.
_LIBRARIES = frozenset({"keras", "tensorflow", "tensorflow_core", "tensorflow_estimator"})
_LIBRARIES |= {"contextlib", "functools", "tf_keras", "tf_lossscale", "threading"}
_GENERATED = "__autograph_generated_file"


class CallSite(NamedTuple):
    """A line of the program.

    Attributes:
      place: its function and its file, without the directory, which may differ between workers.
      line: its number; 0 if no user code calls, as when a strategy runs TensorFlow's own function.
    """

    place: str
    line: int

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}"


class Call(NamedTuple):
    """A call in the user's program.

    Attributes:
      what: the symbol that is called, as text that is equal on all workers.
      site: the line that calls it.
    """

    what: str
    site: CallSite


def call_site() -> CallSite:
    """Returns the innermost line that is not in TensorFlow, Keras or this package."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    if frame is None:
        return CallSite("no file", 0)
    name, function = os.path.basename(frame.f_code.co_filename), frame.f_code.co_name
    if name.startswith(_GENERATED):
        name = "code by AutoGraph"  # the file has another name in each process
    return CallSite(f"{name}, in {function}", frame.f_lineno)


def _is_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in _LIBRARIES


# float32 holds whole numbers exactly up to here.
_EXACT = 1 << 24

# A prime; numbers that stand for shapes are smaller.
_MODULUS = (1 << 29) - 3
_FACTOR = 1000003
_RANKS = 255  # TensorFlow's tensors have fewer dimensions
_WEIGHTS = [pow(_FACTOR, power, _MODULUS) for power in range(1, _RANKS + 1)]
_SHOWN = 8

# Seconds for which a replica in a Session waits before it fails. The others see the mismatch within
# milliseconds, or later on busy machines.
_GRACE = 10.0

_MESSAGE = (
    "The workers are at different steps of CrossShardOptimizer or cross_replica_sum, so nothing "
    "was added up. This worker is at: "
)

_ADVICE = (
    "One row for each replica follows: [line, number of the call, number of the shapes, number of "
    "the shapes known while tracing]. Rows must be equal. Where lines or calls differ, the workers "
    "call in another order; where shapes differ, they pass tensors of other shapes; where only the "
    "last number does, a tf.function without an input_signature was traced for other shapes. Rows: "
)


class Step(NamedTuple):
    """What all workers must have in common.

    Attributes:
      row: float32 of shape `[3]`: the line, a number for the rest of the call, and a number for the
        shapes.
      text: string of shape `[]`: the same as text, for the error.
    """

    row: Any
    text: Any


def has_several_workers(strategy: Any) -> bool:
    """Returns whether some replicas run in other processes."""
    return len(strategy.extended.worker_devices) < strategy.num_replicas_in_sync


def workers_are_checked(strategy: Any) -> bool:
    """Returns whether steps begin with a check: with several workers, outside Sessions."""
    return has_several_workers(strategy) and outermost_graph() is None


@do_not_convert
def step_of(call: Call, groups: Sequence[Any], values: Sequence[Any]) -> Step:
    dtypes = [value.dtype.base_dtype.name for value in values]
    what, site = call
    number = zlib.crc32(f"{what} {site.place} {groups} {dtypes}".encode()) % _EXACT
    numbers = [site.line, number, _number_of(values) % _EXACT]
    row = tf.stack([tf.cast(number, tf.float32) for number in numbers])
    shown = [f"{dtype}{value.shape}" for dtype, value in zip(dtypes, values)][:_SHOWN]
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return Step(row, tf.constant(f"{what} at {site}, with {', '.join(shown)}{more}"))


@do_not_convert
def sum_together(
    step: Step, values: Sequence[Any], strategy: Any, index: int, groups: Sequence[Sequence[int]]
) -> List[Any]:
    """Builds the step of one replica in a function: the check, then the sums over its group.

    For no values, the result is one tensor that is computed after the check.
    """
    devices = strategy.extended.worker_devices
    device = devices[index % len(devices)]
    members = next(list(group) for group in groups if index in group)
    # On the member's own device, even if the surrounding code sets another: two members on one
    # device would wait for each other.
    with tf1.device(None), tf1.device(device):
        with tf.control_dependencies([advance(device)]):
            results = [check_between_workers(step, values, strategy, index, device, CHECK_KEY)]
        if values:
            with tf.control_dependencies(results):
                results = [
                    _sum(value, position, strategy, members)
                    for position, value in enumerate(values)
                ]
        with tf.control_dependencies(results), tf.control_dependencies([advance(device)]):
            return [tf.identity(result) for result in results]


def _sum(value: Any, position: int, strategy: Any, members: List[int]) -> Any:
    what = zlib.crc32(f"{value.dtype.base_dtype.name} {position} {members}".encode())
    if KEYS_AT_RUN_TIME:
        key = tf.cast(sum_key((what + _number_of([value])) % _MODULUS), tf.int32)
    else:
        key = sum_key(zlib.crc32(f"{what} {value.shape}".encode()) % _MODULUS)
    # In its own scope: TensorFlow may merge the collectives of one scope, which overwrites their
    # inputs up to 2.4.
    with tf1.name_scope(None, "replica_sum"):
        return collective_reduce(value, len(members), group_key(strategy, members), key)


def check_between_workers(
    step: Step, values: Sequence[Any], strategy: Any, index: int, device: str, check_key: int
) -> Any:
    """Returns a bool scalar, True, that is computed when all replicas are at the same step."""
    replicas = strategy.num_replicas_in_sync
    shapes = str([str(value.shape) for value in values])
    traced = 0 if KEYS_AT_RUN_TIME else zlib.crc32(shapes.encode()) % _EXACT
    with tf1.name_scope(None, "check_between_workers"):
        row = tf.concat([step.row, [float(traced)]], axis=0)
        own = tf.expand_dims(tf.one_hot(index, replicas), 1) * tf.expand_dims(row, 0)
        key = group_key(strategy, list(range(replicas)))
        rows = collective_reduce(own, replicas, key, check_key)
        same = tf.reduce_all(tf.equal(rows, rows[:1]))
        with tf1.device(host_of(device)):
            waited = [] if outermost_graph() is None else [_wait_unless(same)]
            with tf.control_dependencies(waited):
                check = tf.raw_ops.Assert(
                    condition=same,
                    data=[_MESSAGE, step.text, _ADVICE, rows],
                    summarize=4 * replicas,
                )
        with tf.control_dependencies([check]):
            return tf.identity(same)


def _wait_unless(same: Any) -> Any:
    """Returns a tensor that is computed immediately if `same` is true, else after `_GRACE`."""

    def wait() -> Any:
        time.sleep(_GRACE)
        return np.bool_(False)

    return tf.cond(same, lambda: tf.constant(True), lambda: tf.numpy_function(wait, [], tf.bool))


def _number_of(values: Sequence[Any]) -> Any:
    """Returns a number, or an int64 scalar, that represents the shapes of `values`."""
    number: Any = 0
    for value in values:
        number = (number * _FACTOR + _number_of_shape(value)) % _MODULUS
    return number


def _number_of_shape(value: Any) -> Any:
    if value.shape.is_fully_defined():
        dims = value.shape.as_list()
        terms = [(dim + 1) * weight % _MODULUS for dim, weight in zip(dims, _WEIGHTS)]
        return (sum(terms) + len(dims)) % _MODULUS
    shape = tf.shape(value, out_type=tf.int64)
    weights = tf.constant(_WEIGHTS, tf.int64)[: tf.size(shape)]
    terms = (shape + 1) * weights % _MODULUS
    return (tf.reduce_sum(terms) + tf.size(shape, out_type=tf.int64)) % _MODULUS
