"""The graph in which operations are created: XLA, loops, branches, and the graph rewrite."""

import sys
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tf_lossscale._types import Function, Graph, Loop, Operation, Tensor
from tf_lossscale._versions.base import first_module, tf, tf1
from tf_lossscale._versions.interventions import set_rewrite

# Whether XLA compiles the code that is being traced. There is no public function for this.
_control_flow_util: Any = first_module("tensorflow.python.ops.control_flow_util")

# A context for eager mode, also within `Graph.as_default()`, unlike `tf.init_scope`.
in_eager_mode: Any = first_module("tensorflow.python.eager.context").eager_mode

# The call of such a function remains one operation in all versions. The call of a `tf.function` is
# inlined, or its collectives cannot run in a Session.
_defined_function: Any = first_module("tensorflow.python.framework.function")


def in_xla_context() -> bool:
    """Returns whether new operations are compiled by XLA (`jit_compile=True`, or a TPU)."""
    if tf.executing_eagerly():
        return False
    return bool(_control_flow_util.GraphOrParentsInXlaContext(tf1.get_default_graph()))


def in_control_flow(graph: Graph) -> bool:
    """Returns whether new operations in `graph` are in a branch or loop of control flow v1."""
    return graph._get_control_flow_context() is not None


def graphs_around() -> Iterator[Graph]:
    """Yields the current graph and those around it, from inside out; none in eager mode."""
    graph = None if tf.executing_eagerly() else tf1.get_default_graph()
    while graph is not None:
        yield graph
        graph = getattr(graph, "outer_graph", None)


def is_branch(graph: Graph) -> bool:
    """Returns whether the graph of a function is a branch or loop of control flow v2."""
    return type(graph).__name__ == "CondBranchFuncGraph" or _is_loop(graph)


def _is_loop(graph: Graph) -> bool:
    """Returns whether it is the body or the condition of a loop of control flow v2."""
    return type(graph).__name__ in ("WhileBodyFuncGraph", "WhileCondFuncGraph")


def calls_of_functions(graph: Graph, start: int = 0) -> Iterator[Tuple[Operation, Function]]:
    """Yields the operations of `graph` that call functions, each with the graph of its function.

    Args:
      graph: a graph, which may be unfinished.
      start: the number of operations to pass over.
    """
    for operation in graph.get_operations()[start:]:
        if operation.type not in ("PartitionedCall", "StatefulPartitionedCall"):
            continue
        function = graph._get_function(operation.get_attr("f").name)
        # The property `graph` of newer versions would build one for functions that were loaded.
        name = "_cached_graph" if hasattr(function, "_cached_graph") else "graph"
        called = getattr(function, name, None)
        if called is not None:
            yield operation, called


def outermost_graph() -> Optional[Graph]:
    """Returns the graph that a Session runs; None in eager mode, and in functions called there."""
    for graph in graphs_around():
        if not graph.building_function:
            return graph
        if not is_branch(graph):
            break
    # Leaves `tf.function` and the like. In the threads of replicas, it knows nothing of a graph
    # around a branch or a loop.
    with tf.init_scope():
        return None if tf.executing_eagerly() else tf1.get_default_graph()


def current_loop() -> Optional[Loop]:
    """Returns the innermost loop that is being built, or None.

    It is the context of a loop of control flow v1, or the graph of a body or condition of v2.
    """
    for graph in graphs_around():
        loop = _control_flow_util.GetContainingWhileContext(graph._get_control_flow_context())
        if loop is not None:
            return loop
        if _is_loop(graph):
            return graph
    return None


def rounds_can_wait() -> bool:
    """Returns whether `let_next_round_wait` works in the graph that is being built.

    It does not in a Session's graph if a branch, a loop or a function is between the current graph
    and the loop's body: there, rounds do not wait for what these do.
    """
    return not any(
        _is_loop(graph) and not graph._add_control_dependencies
        for graph in list(graphs_around())[1:]
    )


def let_next_round_wait(tensor: Tensor, host: str) -> None:
    """Makes the next round of a loop of control flow v2 wait until `tensor` is computed.

    Rounds overlap, unless they depend on each other's tensors. But a round waits for operations
    with side effects, of which this one, on the device `host`, costs least.
    """
    with tf.control_dependencies([tensor]), tf1.device(None), tf1.device(host):
        effect = tf.raw_ops.Timestamp().op
    graph = tf1.get_default_graph()
    if not graph._add_control_dependencies:
        # In a Session's graph, TensorFlow does not collect the operations with side effects.
        graph.control_outputs.append(effect)


def call_round_by_round(function: Function, value: Tensor) -> Tensor:
    """Calls `function(value)` as one operation, and makes each round of a loop wait for the last.

    TensorFlow runs each loop, here of control flow v1, in its own frame, and distinguishes
    collectives by their frame. There is no frame inside the operation of a call. Otherwise
    iterations overlap, unless they depend on each other's tensors. The function must not capture
    tensors.
    """
    graph = tf1.get_default_graph()
    enters = [
        operation for operation in graph.get_operations() if operation.type in ("Enter", "RefEnter")
    ]
    context = graph._get_control_flow_context()
    while context is not None:
        if context.IsWhileContext():
            context._parallel_iterations = 1  # of what enters the loop later
            for enter in enters:
                if enter.get_attr("frame_name").decode() == context.name:
                    enter._set_attr("parallel_iterations", tf1.AttrValue(i=1))
        context = context.outer_context
    result = _defined_function.Defun(value.dtype, noinline=True)(function)(value)
    result.set_shape(value.shape)
    return result


# For each graph, the operations tied by each number; strong references would keep the graph.
_tied: "weakref.WeakKeyDictionary[Graph, Dict[int, List[Any]]]" = weakref.WeakKeyDictionary()


def tie(tensor: Tensor, number: int) -> Tensor:
    """Returns `tensor`, computed only together with the others that are tied by `number`.

    Branches and loops run only what their results need, and a Session only what is fetched. Tensors
    of different branches or loops are not tied, since no operation can wait for those of another.
    """
    graph = tf1.get_default_graph()
    context = graph._get_control_flow_context()
    result = tf.identity(tensor)
    tied = _tied.setdefault(graph, {}).setdefault(number, [])
    for reference in tied:
        other = reference()
        if other is not None and other._get_control_flow_context() is context:
            other._add_control_input(tensor.op)
            result.op._add_control_input(other.inputs[0].op)
    tied.append(weakref.ref(result.op))
    return result


def disable_lowering(result: Tensor) -> None:
    """Lets the conditional that returned `result`, in a function, run as one operation.

    TensorFlow lowers conditionals to switches so that their branches can run on several devices,
    which has a cost for every tensor that enters them. There is no public way to disable that. With
    control flow v1 nothing is changed.
    """
    operation = result.op
    while operation.type == "Identity":
        operation = operation.inputs[0].op
    if operation.type in ("If", "StatelessIf"):
        off = tf1.AttrValue(b=False)
        operation._set_attr("_lower_using_switch_merge", off)


# The switches of the mixed precision graph rewrite. A Session reads `..._enabled` when it is
# created and then enables the rewrite in Grappler; while it is set, the Keras of TensorFlow 1.15 to
# 2.15 and tf_keras reject a mixed policy. The only public way to set it are the original functions.
_rewrite: Any = first_module("tensorflow.python.training.experimental.mixed_precision_global_state")

# From TensorFlow 2.6 on. Before, the switch and the flags are attributes of the module.
_HAS_FUNCTIONS = hasattr(_rewrite, "set_mixed_precision_graph_rewrite_enabled")


def set_graph_rewrite(on: bool) -> None:
    if _HAS_FUNCTIONS:
        _rewrite.set_mixed_precision_graph_rewrite_enabled(on)
    else:
        set_rewrite(_rewrite, on)


def _is_set(function: str, older: str) -> bool:
    if _HAS_FUNCTIONS:
        return bool(getattr(_rewrite, function)())
    return bool(getattr(_rewrite, older, False))


def graph_rewrite_is_on() -> bool:
    """Returns whether new Sessions rewrite their graphs."""
    older = "mixed_precision_graph_rewrite_is_enabled"
    return _is_set("is_mixed_precision_graph_rewrite_enabled", older)


def plain_session_exists() -> bool:
    """Returns whether a Session was created while the rewrite was off."""
    name = "non_mixed_precision_session_created"
    return _is_set(name, name)


def mixed_policy_is_set() -> bool:
    """Returns whether the global dtype policy of any loaded Keras is a mixed precision policy.

    Keras 2 sets a flag in TensorFlow, except on TensorFlow 1.15, where the policy itself is read.
    Keras 3 sets none; its policy is read if it is loaded. No Keras is imported for this.
    """
    is_set = _is_set("is_using_mixed_precision_policy", "using_mixed_precision_policy")
    policies = []
    if not (_HAS_FUNCTIONS or hasattr(_rewrite, "using_mixed_precision_policy")):
        policies.append(tf.keras.mixed_precision.experimental.global_policy())
    keras_3: Any = getattr(sys.modules.get("keras"), "mixed_precision", None)
    if hasattr(keras_3, "dtype_policy"):
        policies.append(keras_3.dtype_policy())
    return is_set or any(policy.compute_dtype != policy.variable_dtype for policy in policies)
