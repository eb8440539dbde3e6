"""`optimizer.loss_scale` of our experimental class: called, and used as a tensor, on every version.

The oracle of each use is a plain tensor of the same value. The loss scale is read, kept, and then
changed, so a use that gives the current value instead of the kept one fails. Calls, and uses that
need more than a few lines, are in `test_loss_scale_calls`.
"""

import itertools
from typing import Any, Callable, Dict, List

import pytest
import recorded
import tensorflow as tf
from autograph_uses import CONVERTED
from eager_uses import EAGERLY, OF_A_TENSOR_ONLY
from tensor_uses import ANYWHERE, ERROR, IS_KERAS_3, Uses, outcome

IS_OBJECT = recorded.TF < (2, 4)  # the property returns the `LossScale` itself
OURS = [subject for subject in recorded.experimental() if subject.who == "ours"]
IN_GRAPHS = [subject for subject in OURS if subject.kind.name == "legacy"]
IN_EAGER_MODE: Uses = {**ANYWHERE, **EAGERLY, **({} if IS_OBJECT else OF_A_TENSOR_ONLY)}
IN_FUNCTIONS: Uses = {**ANYWHERE, **CONVERTED}


def different_uses() -> Dict[str, Any]:
    """What uses give if TensorFlow tests `isinstance(x, tf.Tensor)`, or passes `x` to C."""
    names = ["gradient with respect to x", "v1.get_variable of x", "memoryview", "dlpack"]
    found: Dict[str, Any] = {"is_numeric_tensor": "bool False"}
    names += ["variable of Keras 3 made of x"] if IS_KERAS_3 else ["K.is_keras_tensor"]
    if recorded.TF < (2, 13):
        # TensorFlow ignores the dtype if it converts an eager tensor in a function.
        names += ["convert_to_tensor as float64"]
    if recorded.TF < (2, 15):
        names += ["TensorSpec.from_tensor"]
        found["get_static_value"] = "NoneType None"
    if IS_OBJECT:  # which may have another value at each conversion
        names += ["concrete function", "concrete function made with x", "saved function"]
        names += ["constant", "ref", "ref().deref"]
        found.update({"x == x": "bool True", "x != x": "bool False"})
    if recorded.TF < (2, 0):
        names += ["add_n", "Dataset.from_generator", "K.constant", "recompute_grad"]
    return {**dict.fromkeys(names, ERROR), **found}


DIFFERENT = different_uses()
# A plain tensor raises an error: it is of another graph, or `fit` cannot log it.
ALLOWED = {"constant of a list"}
if IS_OBJECT:
    ALLOWED |= {"control_dependencies", "group", "tuple", "logs of train_step"}
if recorded.TF < (2, 0):
    ALLOWED |= {"__array__"}  # tensors have no such method


def compare(name: str, found: Any, expected: Any):
    """Asserts that an object which is no `tf.Tensor` gives what a plain tensor gives."""
    if expected == ERROR:
        assert found == ERROR or name in ALLOWED
    elif name in DIFFERENT:
        assert found in (expected, DIFFERENT[name], [[], [DIFFERENT[name]]])
    else:
        assert found == expected


def compare_in_graphs(name: str, found: Any, expected: Any):
    """The same of what is read in a graph: from TensorFlow 2.4 on, it is a `tf.Tensor`."""
    if IS_OBJECT:
        compare(name, found, expected)
    else:
        assert found == expected


def cases(uses: Uses, subjects: List[Any]) -> Any:
    """Parameters `subject` and `name`: each use with one kind of optimizer, in turn."""
    chosen = list(zip(itertools.cycle(subjects), sorted(uses)))
    ids = [f"{name}-{subject.kind.name}" for subject, name in chosen]
    return pytest.mark.parametrize(("subject", "name"), chosen, ids=ids)


def make(subject) -> Any:
    """An optimizer whose loss scale is 8."""
    return subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 2000)


def kept(subject) -> Any:
    """A loss scale that was 8 when it was read; that of the optimizer is 16 by now."""
    optimizer = make(subject)
    loss_scale = optimizer.loss_scale
    if not IS_OBJECT:
        optimizer._loss_scale.current_loss_scale.assign(16.0)
    return loss_scale


def in_a_function(use: Callable[[Any], Any], read: Callable[[], Any]) -> Any:
    """What a use gives in a `tf.function`: the values of its tensors, and the rest as it is."""
    others = []

    def function() -> List[Any]:
        results = tf.nest.flatten(use(read()))
        others.extend(result for result in results if not tf.is_tensor(result))
        return [tf.convert_to_tensor(result) for result in results if tf.is_tensor(result)]

    tensors = tf.function(function, autograph=use in CONVERTED.values())()
    return [tensors, others]


def in_a_session(use: Callable[[Any], Any], read: Callable[[], Any]) -> Any:
    """The same in a graph."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        results = tf.nest.flatten(use(read()))
        session.run(tf.compat.v1.global_variables_initializer())
        tensors = [result for result in results if tf.is_tensor(result)]
        others = [result for result in results if not tf.is_tensor(result)]
        return [session.run([tf.convert_to_tensor(tensor) for tensor in tensors]), others]


def constant() -> Any:
    return tf.constant(8.0)


def variable_in_a_graph() -> Any:
    variable = tf.compat.v1.get_variable("scale", initializer=8.0, use_resource=True)
    return tf.identity(variable)


@pytest.mark.sampled(6)
@cases(IN_EAGER_MODE, OURS)
def test_in_eager_mode(subject, name: str):
    use = IN_EAGER_MODE[name]
    compare(name, outcome(use, kept(subject)), outcome(use, constant()))


@pytest.mark.sampled(6)
@cases(IN_FUNCTIONS, OURS)
def test_read_in_a_function(subject, name: str):
    use, optimizer, variable = IN_FUNCTIONS[name], make(subject), tf.compat.v2.Variable(8.0)
    found = outcome(lambda read: in_a_function(use, read), lambda: optimizer.loss_scale)
    expected = outcome(lambda read: in_a_function(use, read), lambda: tf.identity(variable))
    compare_in_graphs(name, found, expected)


@pytest.mark.sampled(6)
@cases(IN_FUNCTIONS, OURS)
def test_read_before_a_function(subject, name: str):
    use, loss_scale, tensor = IN_FUNCTIONS[name], kept(subject), constant()
    found = outcome(lambda read: in_a_function(use, read), lambda: loss_scale)
    expected = outcome(lambda read: in_a_function(use, read), lambda: tensor)
    compare(name, found, expected)


@pytest.mark.sampled(6)
@pytest.mark.skipif(not IN_GRAPHS, reason="Keras 3 has no graph mode")
@cases(ANYWHERE, IN_GRAPHS)
def test_in_a_graph(subject, name: str):
    use = ANYWHERE[name]
    found = outcome(lambda read: in_a_session(use, read), lambda: make(subject).loss_scale)
    expected = outcome(lambda read: in_a_session(use, read), variable_in_a_graph)
    compare_in_graphs(name, found, expected)
