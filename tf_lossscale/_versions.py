"""All that is known about versions of TensorFlow and Keras, and the private modules that we need.

No other module compares versions or imports a private module of TensorFlow; each private name here
says why there is no public one.
"""

import contextlib
import functools
import importlib
import sys
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

__all__ = [
    "KERAS_PACKAGES",
    "LEGACY_AGGREGATES_ALWAYS",
    "LEGACY_CLIPS_WHEN_APPLIED",
    "LEGACY_KEEPS_INNER_APART",
    "TF_VERSION",
    "KerasFamily",
    "ObjectGraph",
    "Trackable",
    "TrackableReference",
    "aggregate_gradients",
    "already_summed",
    "asked_by_checkpoint",
    "asked_by_compile",
    "call_round_by_round",
    "calling_keras",
    "current_loop",
    "deserialize_optimizer",
    "estimator_scales_loss",
    "graph_of_all_replicas",
    "graph_rewrite_is_on",
    "in_control_flow",
    "in_loop_of_session",
    "in_tpu_replication",
    "in_xla_context",
    "is_keras_object",
    "keep_conditional_whole",
    "keras_3_can_be_given_sums",
    "keras_3_is_given_sums",
    "keras_3_takes_sums",
    "keras_family",
    "keras_packages",
    "loaded_keras_packages",
    "local_replica_started_eagerly",
    "mixed_policy_is_set",
    "module_dicts",
    "not_converted",
    "original",
    "per_replica",
    "plain_session_exists",
    "policy_of_layer",
    "register_loss_scale_optimizer",
    "replica_id",
    "replicas_of_workers_before",
    "set_graph_rewrite",
    "show_to_keras_session",
    "sum_is_off",
    "supports_merge_call",
    "tf",
    "tf1",
    "tpu_shards",
    "where",
]

INSTALL_HINT = (
    "tf_lossscale needs TensorFlow (1.15, or 2.3 to 2.21), which is not installed here. Install it "
    "with `pip install 'tf-lossscale[tf]'`, or `pip install tensorflow-cpu` on a machine without a "
    "GPU; on TensorFlow 2.16 and later add `tf-keras` if your code uses Keras 2."
)


def _import_tensorflow() -> Any:
    try:
        import tensorflow
    except ImportError as error:
        if getattr(error, "name", None) == "tensorflow":
            raise ImportError(INSTALL_HINT, name="tensorflow") from error
        raise  # TensorFlow is there but broken: its own message says more than ours
    return tensorflow


def _parse(version: str) -> Tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


tf: Any = _import_tensorflow()
TF_VERSION: Tuple[int, int] = _parse(tf.__version__)
tf1: Any = tf.compat.v1


def _first_module(*names: str) -> Any:
    """Imports the first of `names` that this TensorFlow has; modules move between versions."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(
        "tensorflow {} has none of the modules {}; tf_lossscale knows 1.15 to 2.21".format(
            tf.__version__, ", ".join(names)
        )
    )


_trackable: Any = _first_module(
    "tensorflow.python.trackable.base", "tensorflow.python.training.tracking.base"
)

# The base class of everything that `tf.train.Checkpoint` saves. The public `tf.Module` would track
# every attribute under the attribute's own name, and so change the keys of the originals' files.
Trackable: Any = _trackable.Trackable

# The (name, object) pair that `Trackable._checkpoint_dependencies` lists.
TrackableReference: Any = _trackable.TrackableReference

# What `tf.train.Checkpoint` stores of the objects beside their values. Nothing public parses it.
ObjectGraph: Any = _first_module(
    "tensorflow.core.protobuf.trackable_object_graph_pb2"
).TrackableObjectGraph

# `tf.where` of TensorFlow 1.15 is the old one, which logs that it is deprecated.
where: Any = tf.compat.v2.where

# AutoGraph rewrites what a `tf.function` calls, except TensorFlow itself. Our code, which takes the
# place of TensorFlow's, is to run as it is written too: public methods carry this decorator.
not_converted: Any = tf.autograph.experimental.do_not_convert

_CHECKPOINT_CODE = ("tracking.graph_view", "checkpoint.graph_view", "checkpoint.util")


def asked_by_checkpoint(method: str, owner: Any) -> bool:
    """Returns whether `owner.method()` was called by the code that lays out an object checkpoint.

    That code asks *every* optimizer for its slots and refuses a slot that two optimizers name, so a
    wrapper that names the slots of its inner optimizer must not name them there: the inner one is
    saved as well, and the files of the originals have the slots under it. Nothing but the caller
    tells that question from a user's.

    Args:
      method: name of the method of `owner` that calls this function.
      owner: the wrapper; overrides of `method` in its subclasses are looked through.
    """
    frame = sys._getframe(1)
    while (
        frame.f_back is not None
        and frame.f_code.co_name == method
        and frame.f_locals.get("self") is owner
    ):
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "")
    return module.startswith("tensorflow") and module.endswith(_CHECKPOINT_CODE)


def is_keras_object(value: Any) -> bool:
    """Returns whether the class of `value` comes from any Keras, without importing one.

    A look at `tf.keras` would import Keras 3, or fail where Keras is not installed.
    """
    for base in type(value).__mro__:
        parts = base.__module__.split(".")
        if parts[0] in ("keras", "tf_keras") or parts[:3] == ["tensorflow", "python", "keras"]:
            return True
        if parts[:3] == ["tensorflow_core", "python", "keras"]:  # TensorFlow 1.15
            return True
    return False


def keras_family(optimizer: Any) -> "Optional[KerasFamily]":
    """Returns what is known of the Keras that the class of `optimizer` comes from.

    Told by the class alone, as Keras 2 and Keras 3 may be loaded side by side; None where it is no
    Keras optimizer. The private names are those of the base classes; the public ones move between
    `keras.optimizers` and `keras.optimizers.legacy`, and importing one would load a Keras.
    """
    for base in type(optimizer).__mro__:
        package = _keras_package(base.__module__)
        if package is None:
            continue
        if base.__name__ == "OptimizerV2":
            return KerasFamily("legacy", package, base)
        if base.__name__ == "Optimizer" and hasattr(base, "apply_gradients"):
            is_3 = getattr(sys.modules[package], "__version__", "2").startswith("3")
            return KerasFamily("keras3" if is_3 else "new", package, base)
    return None


def _keras_package(module: str) -> Optional[str]:
    if TF_VERSION < (2, 6):
        inside = ("tensorflow.python.keras.", "tensorflow_core.python.keras.")
        return "tensorflow" if module.startswith(inside) else None
    package = module.split(".")[0]
    return package if package in ("keras", "tf_keras") else None


class KerasFamily(NamedTuple):
    """A kind of Keras optimizer.

    Attributes:
      kind: "legacy" (Keras 2 `OptimizerV2`), "new" (Keras 2 from TensorFlow 2.9 on) or "keras3".
      package: "tensorflow" (up to 2.5), "keras" or "tf_keras".
      base: the base class of its optimizers.
    """

    kind: str
    package: str
    base: Any

    @property
    def keras(self) -> Any:
        """The public Keras module."""
        # Up to 2.15 the `keras` package leaves out a part of the API that `tf.keras` has.
        in_tensorflow = self.package == "tensorflow" or TF_VERSION < (2, 16)
        return (
            tf.keras if in_tensorflow and self.package != "tf_keras" else sys.modules[self.package]
        )

    @property
    def installed_final(self) -> Optional[Any]:
        """The installed final class, which also `compile` knows; None before TensorFlow 2.4."""
        return original(self.keras.mixed_precision, "LossScaleOptimizer")

    @property
    def installed_experimental(self) -> Optional[Any]:
        """The installed experimental class; None after TensorFlow 2.8."""
        experimental = getattr(self.keras.mixed_precision, "experimental", None)
        return original(experimental, "LossScaleOptimizer") if self.kind == "legacy" else None


def original(namespace: Any, name: str) -> Optional[Any]:
    """Returns what TensorFlow has under a path, also where `install()` put ours there, or None."""
    drop_in = importlib.import_module("tf_lossscale._drop_in")
    # First, because a look at the path itself may import ours, which may be what asks.
    replaced = None if namespace is None else drop_in.replaced(namespace, name)
    return getattr(namespace, name, None) if replaced is None else replaced


# The switches of the mixed precision graph rewrite. A Session reads `..._enabled` when it is made
# and then asks Grappler for the rewrite; the Keras policies of TensorFlow 1.15 to 2.15 and tf_keras
# refuse a mixed policy while it is set. There is no public way to set it but the originals.
# TensorFlow up to 2.5 keeps it in module attributes, later ones behind functions.
_rewrite: Any = _first_module(
    "tensorflow.python.training.experimental.mixed_precision_global_state"
)


def set_graph_rewrite(on: bool) -> None:
    """Sets whether new Sessions rewrite their graphs."""
    if TF_VERSION >= (2, 6):
        _rewrite.set_mixed_precision_graph_rewrite_enabled(on)
    else:
        _rewrite.mixed_precision_graph_rewrite_is_enabled = on


def graph_rewrite_is_on() -> bool:
    """Returns whether new Sessions rewrite their graphs."""
    if TF_VERSION >= (2, 6):
        return bool(_rewrite.is_mixed_precision_graph_rewrite_enabled())
    return bool(_rewrite.mixed_precision_graph_rewrite_is_enabled)


def plain_session_exists() -> bool:
    """Returns whether a Session was made while the rewrite was off."""
    created = _rewrite.non_mixed_precision_session_created
    return bool(created() if callable(created) else created)


def mixed_policy_is_set() -> bool:
    """Returns whether the global dtype policy of any loaded Keras is a mixed precision policy.

    Keras 2 tells TensorFlow, from 2.3 on. TensorFlow 1.15 must look at the policy itself, and Keras
    3 tells nobody; it is looked at if it is loaded, so that none is imported.
    """
    if TF_VERSION >= (2, 6):
        told = bool(_rewrite.is_using_mixed_precision_policy())
    else:
        told = bool(getattr(_rewrite, "using_mixed_precision_policy", False))
    policies = []
    if TF_VERSION < (2, 3):
        policies.append(tf.keras.mixed_precision.experimental.global_policy())
    keras_3: Any = getattr(sys.modules.get("keras"), "mixed_precision", None)
    if hasattr(keras_3, "dtype_policy"):
        policies.append(keras_3.dtype_policy())
    return told or any(each.compute_dtype != each.variable_dtype for each in policies)


# Whether XLA compiles what is being traced. There is no public way to ask.
_control_flow_util: Any = _first_module("tensorflow.python.ops.control_flow_util")


def in_xla_context() -> bool:
    """Returns whether the operations made now are for XLA (`jit_compile=True`, or a TPU)."""
    if tf.executing_eagerly():
        return False
    return bool(_control_flow_util.GraphOrParentsInXlaContext(tf1.get_default_graph()))


def keras_packages() -> List[Tuple[str, str]]:
    """Returns name and version of `tf.keras` and of the separate packages that are installed."""
    found = []
    # TensorFlow 2.16 and later has none where the package keras is missing.
    with contextlib.suppress(AttributeError, ImportError):
        found.append(("tf.keras", str(tf.keras.__version__)))
    if sys.version_info >= (3, 8):  # below that, Keras is a part of TensorFlow
        metadata = importlib.import_module("importlib.metadata")
        for name in ("keras", "tf-keras"):
            try:
                found.append((name, metadata.version(name)))
            except metadata.PackageNotFoundError:
                continue
    return found


def module_dicts(module: Any) -> List[Dict[str, Any]]:
    """Returns the dictionaries that hold the attributes of an API module.

    TensorFlow 1.15 to 2.8 put a wrapper before some of their API modules. It keeps copies of what
    it was asked for, and does not let go of them when the attribute is deleted.
    """
    dicts = [vars(module)]
    cache = dicts[0].get("_tfmw_attr_map")
    if isinstance(cache, dict):
        dicts.append(cache)
    wrapped = dicts[0].get("_tfmw_wrapped_module")
    return dicts if wrapped is None else dicts + module_dicts(wrapped)


# `OptimizerV2.apply_gradients` clips from TensorFlow 2.4 on; before, only `minimize` did.
LEGACY_CLIPS_WHEN_APPLIED: bool = TF_VERSION >= (2, 4)

# It takes gradients that the caller has added up over the replicas from TensorFlow 2.2 on.
LEGACY_AGGREGATES_ALWAYS: bool = TF_VERSION < (2, 2)


def supports_merge_call() -> bool:
    """Returns whether replicas of the current strategy can meet in one call.

    They cannot where XLA compiles the replicas for GPUs; each then decides for itself.
    """
    distribute = getattr(getattr(tf, "__internal__", None), "distribute", None)
    cannot = getattr(distribute, "strategy_supports_no_merge_call", None)
    return cannot is None or not cannot()


# TensorFlow 1.14 to 2.2 saved the inner optimizer as a child of the wrapper. Where a Keras has no
# later class, that is the layout which its own class can read.
LEGACY_KEEPS_INNER_APART: bool = TF_VERSION < (2, 3)


def calling_keras() -> Any:
    """Returns the Keras that called, somewhere up the stack, or else `tf.keras`.

    What a model file says of an optimizer does not tell which Keras is reading it.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        package = _keras_package(module)
        if package is not None:
            return KerasFamily("", package, None).keras
        frame = frame.f_back
    return tf.keras


def deserialize_optimizer(keras: Any, config: Any, custom_objects: Any, legacy: bool) -> Any:
    """Makes an optimizer of a Keras from a serialized one, also one of an older generation.

    Args:
      keras: the Keras.
      config: what `optimizers.serialize` returned.
      custom_objects: name to class, or None.
      legacy: whether an `OptimizerV2` is wanted where Keras 2 has a newer kind as well.
    """
    more = {}
    if legacy and hasattr(keras.optimizers, "legacy") and not hasattr(keras, "Operation"):
        more["use_legacy_optimizer"] = True
    return keras.optimizers.deserialize(config, custom_objects=custom_objects, **more)


def register_loss_scale_optimizer(package: str, cls: Any) -> None:
    """Lets one loaded Keras read the optimizers of model files that its own class wrote as `cls`.

    Args:
      package: "tensorflow", "keras" or "tf_keras".
      cls: our final class.
    """
    # The lower case is for `optimizers.deserialize` of Keras 2, which lowers the names it knows.
    names = ("LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3")
    known = KerasFamily("", package, None).keras.utils.get_custom_objects()
    for name in names:
        known.setdefault(name, cls)
        known.setdefault(name.lower(), cls)


# The packages that hold a Keras of this TensorFlow.
KERAS_PACKAGES: Tuple[str, ...] = ("tensorflow",) if TF_VERSION < (2, 6) else ("keras", "tf_keras")


def loaded_keras_packages() -> List[str]:
    """Returns the packages of the Kerases that are loaded."""
    if TF_VERSION < (2, 6):
        return ["tensorflow"]
    return [name for name in KERAS_PACKAGES if hasattr(sys.modules.get(name), "optimizers")]


# Which TPU shards the graph is being built for: `tpu_shard_context`, `tpu.replicate` and
# TPUStrategy set it. The originals read it from here, and nothing public tells it.
_tpu_function: Any = _first_module("tensorflow.python.tpu.tpu_function")


def tpu_shards() -> Optional[int]:
    """Returns the number of TPU shards that are being built for, or None where that is not set."""
    return _tpu_function.get_tpu_context().number_of_shards


# The context of what `tpu.replicate` and `tpu.rewrite` build; the class moved in 2.10.
_tpu_replication: Any = _first_module(
    "tensorflow.python.tpu.tpu_replication", "tensorflow.python.tpu.tpu"
)


def in_tpu_replication() -> bool:
    """Returns whether the operations made now are for the replicas of a TPU program."""
    graph = None if tf.executing_eagerly() else tf1.get_default_graph()
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if isinstance(context, _tpu_replication.TPUReplicateContext):
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False


_tensor_util: Any = _first_module("tensorflow.python.framework.tensor_util")


def replica_id() -> int:
    """Returns the number of the current replica among all replicas of all workers.

    `replica_id_in_sync_group` is a tensor, which names the place of a device only after it ran, and
    in TensorFlow 1.15 to 2.3 it counts the replicas of one worker only.
    """
    value = tf.distribute.get_replica_context().replica_id_in_sync_group
    number = int(value if isinstance(value, int) else _tensor_util.constant_value(value))
    strategy = tf.distribute.get_strategy()
    if hasattr(strategy.extended, "_get_replica_id_in_sync_group"):
        return number
    return replicas_of_workers_before(strategy) + number


_multi_worker_util: Any = _first_module("tensorflow.python.distribute.multi_worker_util")


def replicas_of_workers_before(strategy: Any) -> int:
    """Returns how many replicas the workers before this one have; 0 with one worker."""
    extended = strategy.extended
    cluster = getattr(extended, "_cluster_spec", None)
    if not cluster:
        return 0
    worker = _multi_worker_util.id_in_cluster(cluster, extended._task_type, extended._task_id)
    return int(worker) * len(extended.worker_devices)


def local_replica_started_eagerly() -> bool:
    """Returns whether the replicas of this process run eagerly, and so one after the other.

    Each replica has a thread; what it traces then is a function of its own.
    """
    return bool(getattr(threading.current_thread(), "in_eager", False))


def graph_of_all_replicas() -> Any:
    """Returns the graph that the replicas of a step are built in, seen from a branch of one, too.

    A thread that builds a replica knows that graph. Elsewhere it is the outermost function.
    """
    graph = tf1.get_default_graph()
    thread = threading.current_thread()
    known = None if local_replica_started_eagerly() else getattr(thread, "graph", None)
    while graph is not known and hasattr(graph, "outer_graph"):
        if not hasattr(graph.outer_graph, "outer_graph") and graph.outer_graph is not known:
            break
        graph = graph.outer_graph
    return graph


def estimator_scales_loss() -> bool:
    """Returns whether every v1 optimizer divides the loss by the number of replicas by itself.

    They do so in the `model_fn` of an Estimator with a strategy, for a mean loss.
    """
    return bool(_loss_reduction() == tf.distribute.ReduceOp.MEAN)


_distribute_lib: Any = _first_module("tensorflow.python.distribute.distribute_lib")
_loss_reduction: Any = (
    _distribute_lib.get_loss_reduction
    if hasattr(_distribute_lib, "get_loss_reduction")  # up to 2.11
    else _first_module("tensorflow.python.distribute.distribute_utils").get_loss_reduction
)


@contextlib.contextmanager
def already_summed(optimizers: Sequence[Any]) -> Iterator[None]:
    """Keeps v1 optimizers from adding the gradients of the replicas up, within the block.

    Their `apply_gradients` leaves the replicas by way of their own `_distributed_apply`, which
    begins with that sum. Here the sum is there already, or is one over a subgroup of the replicas.

    Args:
      optimizers: all that the step goes through.
    """
    for each in optimizers:
        depth = each.__dict__.get("_tfls_summed", 0)
        each.__dict__["_tfls_summed"] = depth + 1
        if depth == 0:
            each.__dict__["_distributed_apply"] = functools.partial(
                _apply_without_sum, type(each)._distributed_apply, each
            )
    try:
        yield
    finally:
        for each in optimizers:
            each.__dict__["_tfls_summed"] -= 1
            if each.__dict__["_tfls_summed"] == 0:
                del each.__dict__["_tfls_summed"], each.__dict__["_distributed_apply"]


def sum_is_off(optimizer: Any) -> bool:
    """Returns whether this is within `already_summed([..., optimizer, ...])`."""
    return "_tfls_summed" in optimizer.__dict__


def _apply_without_sum(
    distributed_apply: Any, optimizer: Any, strategy: Any, *args: Any, **kwargs: Any
) -> Any:
    return distributed_apply(optimizer, _Summed(strategy), *args, **kwargs)


class _Summed:
    """A strategy, seen by an optimizer whose gradients need no sum any more."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self.extended = _SummedExtended(strategy.extended)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strategy, name)


class _SummedExtended:
    def __init__(self, extended: Any) -> None:
        self._extended = extended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._extended, name)

    def batch_reduce_to(self, reduce_op: Any, pairs: Any, options: Any = None) -> List[Any]:
        return [_as_mirrored(gradient, variable) for gradient, variable in pairs]


# How a value that each replica has of its own is turned into what `extended.update` takes.
_values: Any = _first_module("tensorflow.python.distribute.values")


def _as_mirrored(value: Any, variable: Any) -> Any:
    copies = getattr(value, "values", None)
    if copies is None or isinstance(value, tf.IndexedSlices):
        return value
    if len(getattr(variable, "values", ())) != len(copies):
        return copies[0]  # one variable for all replicas, and so one gradient
    if TF_VERSION < (2, 2):
        return _values.Mirrored(value.device_map, tuple(copies))
    return _values.Mirrored(tuple(copies))


def per_replica(like: Any, copies: Sequence[Any]) -> Any:
    """Returns a value that is `copies[i]` on the i-th replica of this process.

    Args:
      like: another such value.
      copies: one tensor for each replica.
    """
    if TF_VERSION < (2, 2):
        return _values.PerReplica(like.device_map, tuple(copies))
    return _values.PerReplica(tuple(copies))


def current_loop() -> Any:
    """Returns what stands for the innermost loop that is being built, or None.

    That is the context of a loop of control flow v1, or the graph of the body of one of v2.
    """
    graph = tf1.get_default_graph()
    while graph is not None:
        loop = _control_flow_util.GetContainingWhileContext(graph._get_control_flow_context())
        if loop is not None:
            return loop
        if type(graph).__name__ == "WhileBodyFuncGraph":
            return graph
        graph = getattr(graph, "outer_graph", None)
    return None


# The function whose call stays one operation in all of 1.15 to 2.21. That of `tf.function` is taken
# apart, or gives collectives no means to run in a Session.
_defined_function: Any = _first_module("tensorflow.python.framework.function")


def in_loop_of_session() -> bool:
    """Returns whether what is made now is in a loop of control flow v1, in a Session's graph."""
    graph = tf1.get_default_graph()
    loop = _control_flow_util.GetContainingWhileContext(graph._get_control_flow_context())
    return loop is not None and not hasattr(graph, "outer_graph")


def call_round_by_round(function: Any, value: Any) -> Any:
    """Calls `function(value)` as one operation; each round of a loop waits for the one before.

    TensorFlow gives each loop a frame of its own, and tells collectives in different frames apart.
    An operation that is a call has none within. Rounds overlap otherwise, if no tensor hinders it.

    Args:
      function: captures no tensors.
      value: its argument; in a loop of control flow v1.
    """
    graph = tf1.get_default_graph()
    enters = [each for each in graph.get_operations() if each.type in ("Enter", "RefEnter")]
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


def aggregate_gradients(optimizer: Any, pairs: Sequence[Any]) -> List[Any]:
    """Adds gradients up as an `OptimizerV2` of TensorFlow 2.2 or later does when it applies them.

    The methods are private, but optimizers such as Horovod's override them, so they must be asked.

    Args:
      optimizer: the optimizer.
      pairs: gradients and variables, in a replica context.
    """
    if TF_VERSION < (2, 4):  # it returns the gradients alone
        variables = [variable for _, variable in pairs]
        return list(zip(optimizer._aggregate_gradients(pairs), variables))
    return list(optimizer._aggregate_gradients(optimizer._transform_unaggregated_gradients(pairs)))


_KERAS_3_BEFORE_THE_SUM = (
    "apply",
    "_all_reduce_sum_gradients",
    "_backend_apply_gradients",
    "_backend_update_step",
    "_clip_gradients",
)
_KERAS_3_OPTIONS = (
    "clipnorm",
    "clipvalue",
    "global_clipnorm",
    "gradient_accumulation_steps",
    "loss_scale_factor",
)


def keras_3_takes_sums(family: KerasFamily, optimizer: Any, variables: Sequence[Any]) -> bool:
    """Returns whether a Keras 3 optimizer does the same with gradients that are added up before.

    In `apply` it adds those of the replicas up last: it has accumulated and clipped each replica's
    own by then, and put gradients in the place of variables that ask for that.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
      variables: those that the gradients are for.
    """
    return (
        keras_3_can_be_given_sums(family, optimizer)
        and all(getattr(optimizer, name, None) is None for name in _KERAS_3_OPTIONS)
        and not any(getattr(each, "overwrite_with_gradient", False) for each in variables)
    )


def keras_3_can_be_given_sums(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether `keras_3_is_given_sums` does what it says: no class overrides these steps.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
    """
    return all(
        hasattr(family.base, name) and getattr(type(optimizer), name) is getattr(family.base, name)
        for name in _KERAS_3_BEFORE_THE_SUM
    )


@contextlib.contextmanager
def keras_3_is_given_sums(optimizer: Any) -> Iterator[None]:
    """Keeps a Keras 3 optimizer from adding the gradients of the replicas up, within the block.

    It has no argument for that. The replicas of a process may be in the block one after another,
    before the first has left it.
    """
    own = vars(optimizer)
    own["_tfls_summed"] = own.get("_tfls_summed", 0) + 1
    own["_all_reduce_sum_gradients"] = list
    try:
        yield
    finally:
        own["_tfls_summed"] -= 1
        if own["_tfls_summed"] == 0:
            del own["_tfls_summed"], own["_all_reduce_sum_gradients"]


def in_control_flow(graph: Any) -> bool:
    """Returns whether what is added to `graph` now is in a branch or loop of control flow v1."""
    return graph._get_control_flow_context() is not None


def asked_by_compile() -> bool:
    """Returns whether a property is read by the `compile` of TensorFlow 1.15.

    It compares the loss scale of an optimizer with that of a policy, and both are objects there. A
    tensor cannot be compared with one in eager mode.
    """
    if TF_VERSION >= (2, 2):
        return False
    frame: Any = sys._getframe(2)
    return bool(frame.f_globals.get("__name__", "").endswith("keras.engine.training"))


def show_to_keras_session(family: KerasFamily, variables: Sequence[Any]) -> None:
    """Has the Session that graph-mode Keras keeps to itself initialize `variables`.

    It knows the variables that Keras made; there is no public way to tell it of others.
    """
    backend = getattr(sys.modules[family.base.__module__], "backend", None)
    for variable in variables:
        if backend is not None and not tf.executing_eagerly():
            backend.track_variable(variable)


def keep_conditional_whole(result: Any) -> None:
    """Marks the conditional that `result` comes from, in a function, to be run as one operation.

    TensorFlow takes conditionals apart so that their branches can run on several devices, at a
    price for every tensor that enters them. The mark is an attribute without a public setter.

    Args:
      result: what `tf.cond` returned; with control flow v1 there is nothing to mark.
    """
    operation = result.op
    while operation.type == "Identity":
        operation = operation.inputs[0].op
    if operation.type in ("If", "StatelessIf"):
        off = tf1.AttrValue(b=False)
        operation._set_attr("_lower_using_switch_merge", off)


def policy_of_layer(layer: Any) -> Any:
    """Returns the dtype policy of a Keras layer, None for what is no layer.

    It has no public name in TensorFlow 1.15, which has no `get_layer_policy` either.
    """
    policy = getattr(layer, "dtype_policy", None)
    return getattr(layer, "_dtype_policy", None) if policy is None else policy
