"""Compares steps that are recorded with steps that are not.

The result is the CPU time of a step, in one thread, with the original class and with ours, each
while no record is written and while one is, divided by that of the plain optimizer. The loss is
that of a network of 12 layers, so that the step is more than its optimizer.

Usage: recording.py [--json FILE] [--repetitions N]
"""

import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Tuple

import harness

harness.quiet()

import tensorflow as tf
import tf1_step

import tf_lossscale as tfls

tf1 = tf.compat.v1
LAYERS, UNITS, BATCH = 12, 128, 64
INSTANCES = 4
FEWEST_CALLS = 201  # a record is written every 200 steps, or every second
Step = Callable[[], Any]


def weights() -> List[Any]:
    """Returns the variables: a matrix and a vector for each layer."""
    shapes = [[UNITS, UNITS], [UNITS]] * LAYERS
    return [
        tf1.Variable(tf.random.stateless_normal(shape, [number, 1]) * 0.1, use_resource=True)
        for number, shape in enumerate(shapes)
    ]


def loss_of(variables: List[Any]) -> Any:
    """Returns the loss of a network with a constant input."""
    state = tf.ones([BATCH, UNITS])
    for matrix, bias in zip(variables[::2], variables[1::2]):
        state = tf.nn.relu(tf.matmul(state, matrix) + bias)
    return tf.reduce_mean(tf.square(state))


def inner_optimizer() -> Any:
    return tf1.train.MomentumOptimizer(1e-3, 0.9)


def session_step(wrap: Callable[[Any], Any]) -> Step:
    """Returns a step in a Session."""
    graph = tf.Graph()
    with graph.as_default():
        variables = weights()
        operation = wrap(inner_optimizer()).minimize(loss_of(variables), var_list=variables)
        one = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        session = tf1.Session(graph=graph, config=one)
        session.run(tf1.global_variables_initializer())
    return lambda: session.run(operation)


def function_step(wrap: Callable[[Any], Any]) -> Step:
    """Returns a step in a `tf.function`."""
    variables, optimizer = weights(), wrap(inner_optimizer())

    @tf.function
    def step() -> Any:
        optimizer.minimize(lambda: loss_of(variables), var_list=variables)
        return variables[1].read_value()[0]

    return lambda: step().numpy()


def built(make: Callable[[Callable], Step], wrap: Callable[[Any], Any]) -> List[Step]:
    """Returns the instances of a variant, each after its first call, in which it is traced."""
    instances = [make(wrap) for _ in range(INSTANCES)]
    for instance in instances:
        instance()
    return instances


def variants(make: Callable[[Callable], Step], family: str, path: str) -> Dict[str, List[Step]]:
    """Returns the instances of all variants, and records those that are to be recorded."""
    ways = tf1_step.ways_of(family)
    found = {name: built(make, wrap) for name, wrap in ways.items()}
    # What was built before is not recorded.
    tfls.recording.start(path)
    recorded = {name: built(make, wrap) for name, wrap in ways.items() if name != "bare"}
    found.update({f"{name}_recorded": instances for name, instances in recorded.items()})
    return found


def measured(instances: Dict[str, List[Step]], repetitions: int) -> Dict[str, Any]:
    """Returns the time of each variant, and those of all but the bare step divided by it."""
    makers = {name: iter(steps).__next__ for name, steps in instances.items()}
    times = harness.processor_times(makers, repetitions, INSTANCES)
    means = {name: variant.mean for name, variant in times.items()}
    ratios = {f"{name}_over_bare": mean / means["bare"] for name, mean in means.items()}
    del ratios["bare_over_bare"]
    return {"bare_s": means["bare"], **ratios}


def cases() -> Iterator[Tuple[str, str, Callable[[Callable], Step]]]:
    """Yields the name of each case, the family of its class, and what makes a step."""
    for family, _, _ in tf1_step.families():
        yield f"{family} session", family, session_step
        if tf.executing_eagerly():
            yield f"{family} function", family, function_step


def main() -> None:
    report = harness.Report("A step that is recorded", tf.__version__)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, family, make) in enumerate(cases()):
            path = os.path.join(folder, f"{number}.jsonl")
            instances = variants(make, family, path)
            figures = measured(instances, max(report.repetitions, FEWEST_CALLS))
            tfls.recording.stop()
            report.add(name, **figures)
    report.finish()


if __name__ == "__main__":
    main()
