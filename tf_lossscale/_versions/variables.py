"""Variables of the shim that no collection has, and what variables of programs have in common."""

import itertools
from typing import List, Sequence

import numpy as np

from tf_lossscale._types import DType, Operation, Session, Tensor, Variable
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import in_eager_mode

_counter = itertools.count(1)


class RawVariable:
    """A variable, initially 0, in the outermost graph or in eager mode.

    The methods that set it return the operation, None in eager mode. It is not a `tf.Variable`,
    which would join collections, and be copied for each replica of a strategy.
    """

    def __init__(self, shape: Sequence[int], dtype: DType = tf.int64) -> None:
        name = f"tf_lossscale_variable_{next(_counter)}"
        self._shape = list(shape)
        self._dtype = dtype
        with tf.init_scope():
            self.eager = bool(tf.executing_eagerly())
            self.handle = tf.raw_ops.VarHandleOp(
                dtype=dtype, shape=self._shape, container="", shared_name=name
            )
            if self.eager:
                self.initialize()
            else:  # now, because the graph may be finalized later
                self._is_initialized, self._read = self.is_initialized(), self.read()

    def is_initialized(self) -> Tensor:
        return tf.raw_ops.VarIsInitializedOp(resource=self.handle)

    def initialize(self) -> Operation:
        zeros = tf.zeros(self._shape, self._dtype)
        return tf.raw_ops.AssignVariableOp(resource=self.handle, value=zeros)

    def read(self) -> Tensor:
        value = tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._dtype)
        if not tf.executing_eagerly():
            value.set_shape(self._shape)
        return value

    def value(self, session: Session) -> np.ndarray:
        """Returns its value as an array, in eager mode or read by the Session of its graph."""
        if self.eager:
            with in_eager_mode():
                return self.read().numpy()
        is_initialized = session.run(self._is_initialized)
        return session.run(self._read) if is_initialized else np.zeros(self._shape, np.int64)

    def assign_add(self, value: Tensor) -> Operation:
        value = tf.convert_to_tensor(value, self._dtype)
        return tf.raw_ops.AssignAddVariableOp(resource=self.handle, value=value)

    def update(self, index: Tensor, value: Tensor) -> Operation:
        return tf.raw_ops.ResourceScatterUpdate(resource=self.handle, indices=index, updates=value)

    def capture(self) -> None:
        """Creates the input of the current function for this variable now, not on first use."""
        if not tf.executing_eagerly():
            graph = tf1.get_default_graph()
            if hasattr(graph, "capture"):
                graph.capture(self.handle)


def variable_name(variable: Variable) -> str:
    """Returns the name of a variable, in Keras 3 with the names of its layers."""
    name = variable.path if _is_of_keras_3(variable) else variable.name
    return str(name).split(":")[0]


def plain_variable(variable: Variable) -> Variable:
    """Returns the variable of TensorFlow in one of Keras 3; others as they are."""
    return variable.value if _is_of_keras_3(variable) else variable


def _is_of_keras_3(variable: Variable) -> bool:
    # Not `hasattr(variable, ...)`, which a distributed variable looks up in one copy of it: that
    # creates operations.
    return isinstance(getattr(type(variable), "value", None), property)


def first_copy(variable: Variable) -> Variable:
    """Returns the copy of the first replica; the variable itself without copies."""
    return all_copies(variable)[0]


def all_copies(variable: Variable) -> List[Variable]:
    """Returns the copies that the replicas have of a variable."""
    plain = plain_variable(variable)
    copies = getattr(plain, "values", None)
    return list(copies) if isinstance(copies, tuple) else [plain]
