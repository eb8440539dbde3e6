"""The types of values that the shim passes on: what an annotation means, in one place.

TensorFlow and Keras have no type information that holds for all their versions, so an alias of
`Any` says what a value is, and is not checked. What the shim itself uses of an object is a
protocol, which mypy checks.
"""

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from typing import Protocol
else:  # Python 3.7 has none
    Protocol = object

# Values of TensorFlow.

Tensor = Any
"""A `tf.Tensor`, or what TensorFlow converts to one."""
Variable = Any
"""A variable of TensorFlow or Keras 3: mirrored on several replicas, or of one."""
Gradient = Any
"""A dense tensor or `IndexedSlices`; across replicas, such values of all of them."""
PerReplica = Any
"""The values of a tensor on all replicas of a strategy, in its cross-replica context."""
Loss = Any
"""A float tensor, or a callable that returns one."""
Nest = Any
"""Tensors in lists, tuples and dictionaries."""
Operation = Any
"""What a step waits for in a graph: a `tf.Operation` or a tensor."""
DType = Any
Shape = Any
"""A `tf.TensorShape`."""
Graph = Any
Loop = Any
"""The context of a loop that is being built."""
Function = Any
"""A traced function of TensorFlow, or a Python function that it traces."""
Session = Any
"""A `tf.compat.v1.Session`."""
Tape = Any
"""A `tf.GradientTape`."""
VarList = Any
"""Variables, or a callable that returns them: the argument `var_list` of optimizers."""

Gradients = Sequence[Optional[Gradient]]
"""A gradient for each variable; None where the loss does not depend on it."""
Variables = Sequence[Variable]
"""Variables in the order in which the program passes them."""
Pair = Tuple[Optional[Gradient], Variable]
GradsAndVars = Iterable[Pair]
"""What a program passes to `apply_gradients`."""
Pairs = List[Pair]
"""The same, read once."""
ToOperation = Callable[[], Optional[Operation]]
"""Builds an operation in a graph; runs, and returns None, in eager mode."""
ReadScale = Callable[[], Tensor]
"""Returns the current loss scale: a float32 tensor of shape `[]`."""

# Objects of a program.

Optimizer = Any
"""An optimizer of any TensorFlow or Keras, or of a program's own class; ours among them."""
LearningRate = Any
"""A number, tensor or variable, or a schedule, which returns one."""
Model = Any
"""A model of either Keras."""
Layer = Any
"""A layer of either Keras."""
KerasCallback = Any
SessionHook = Any
"""A `tf.compat.v1.train.SessionRunHook`."""
DtypePolicy = Any
"""A dtype policy of Keras, or of the shim."""
LossScaleArgument = Any
"""What stands for a loss scale in a call: a `LossScale`, a number, "dynamic" or None."""

# Parts of checkpoints and files.

Checkpoint = Any
"""The restore of a checkpoint that is under way, or a `tf.train.Checkpoint`."""
CheckpointPosition = Any
"""A place in a checkpoint: a node of its object graph, which is bound to an object."""
ObjectGraph = Any
"""A `TrackableObjectGraph`, which says how the keys of a checkpoint belong to objects."""
ObjectNode = Any
"""A node of an `ObjectGraph`."""
SavedObject = Any
"""An object that checkpoints save: a `Trackable`."""
CheckpointReader = Any
"""A `tf.train.load_checkpoint`, which reads tensors by their keys."""
HDF5Group = Any
"""A group of an open HDF5 file, or the file itself."""
HDF5Dataset = Any
KerasStore = Any
"""Arrays by name: the part of a file of Keras 3 that one object writes and reads."""

# Values of Python.

Array = Any
"""An array or scalar of NumPy."""
Method = Callable[..., Any]
"""A function or method of any signature."""
Class = Any
"""A class whose attributes mypy does not know, such as one of Keras."""
Config = Dict[str, Any]
"""What `get_config` returns: values that JSON can hold."""
CustomObjects = Dict[str, Any]
"""Classes and functions by the names that files have for them."""
Json = Any
"""A value that `json` has read, or can write."""
JsonObject = Dict[str, Json]


class StrategyExtended(Protocol):
    """What the shim uses of `strategy.extended`."""

    worker_devices: Sequence[str]
    _task_type: str  # with several workers
    _task_id: int

    def batch_reduce_to(self, reduce_op: Any, pairs: Sequence[Tuple[Any, Any]]) -> List[PerReplica]:
        """Reduces values over the replicas, each to a device or to that of a variable."""

    def call_for_each_replica(self, function: Callable[..., Any], args: Tuple[Any, ...]) -> Any:
        """Calls a function in each replica of this process."""


class Strategy(Protocol):
    """What the shim uses of a `tf.distribute.Strategy`."""

    num_replicas_in_sync: int
    extended: StrategyExtended

    def scope(self) -> Any:
        """Makes it the current strategy, as a context manager."""

    def experimental_local_results(self, value: PerReplica) -> Tuple[Tensor, ...]:
        """Returns the values of the replicas of this process."""


class LossScaleObject(Protocol):
    """A `LossScale`: of the shim, of TensorFlow, or of a program's own class."""

    def __call__(self) -> Tensor:
        """Returns the current scale."""

    def update(self, grads: Nest) -> Tuple[Optional[Operation], Any]:
        """Updates the scale after a step; returns also whether to apply the gradients."""

    def get_config(self) -> Config:
        """Returns the arguments of the constructor."""


class ScaleManager(Protocol):
    """A manager of `tf.contrib.mixed_precision`: of the shim, of TensorFlow or of a program."""

    def get_loss_scale(self) -> Tensor:
        """Returns the current scale."""

    def update_loss_scale(self, finite_grads: Tensor) -> Optional[Operation]:
        """Updates the scale after a step."""


class ScaleState(Protocol):
    """The loss scale of a wrapper of Keras optimizers. Called, it returns the current scale."""

    @property
    def dynamic(self) -> bool:
        """Whether it changes; every step of a fixed scale is applied."""

    @property
    def decides(self) -> bool:
        """Whether a `LossScale` of the program's own class decides which steps are applied."""

    @property
    def counter(self) -> Optional[Variable]:
        """The variable of the finite steps since the last change; None without one."""

    @property
    def initial_scale(self) -> Optional[float]:
        """The first scale, or the fixed one; None for a `LossScale` of the program's own class."""

    @property
    def growth_steps(self) -> Optional[int]:
        """The finite steps before the scale grows; None if fixed or not known."""

    @property
    def loss_scale(self) -> Any:
        """The `LossScale` that holds the state, if there is one."""

    @property
    def saved(self) -> SavedObject:
        """What checkpoints save as `loss_scale`."""

    @property
    def multiplier(self) -> float:
        """The factor by which a scale that does not decide grows and shrinks."""

    def __call__(self) -> Tensor:
        """Returns the current scale: a float32 tensor of shape `[]`."""

    def advance(self, finite: Tensor) -> Optional[Operation]:
        """Updates a scale that does not decide, after a step."""


class V1Optimizer(Protocol):
    """What the shim uses of a `tf.compat.v1.train.Optimizer` that it wraps."""

    def get_name(self) -> str:
        """Returns its name."""

    def get_slot(self, var: Variable, name: str) -> Optional[Variable]:
        """Returns a slot of a variable, once it is made."""

    def get_slot_names(self) -> List[str]:
        """Returns the names of its slots."""

    def variables(self) -> List[Variable]:
        """Returns its variables."""

    def compute_gradients(self, loss: Loss, **options: Any) -> GradsAndVars:
        """Computes the gradients of a loss."""

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: Optional[Variable], name: Optional[str]
    ) -> Optional[Operation]:
        """Applies gradients."""


class KerasOptimizer(Protocol):
    """What the wrappers use of every Keras optimizer; each kind has more."""

    iterations: Variable
    learning_rate: LearningRate
    variables: Any  # of `OptimizerV2`, a method

    def apply_gradients(self, grads_and_vars: GradsAndVars, **options: Any) -> Optional[Operation]:
        """Applies gradients."""

    def get_config(self) -> Config:
        """Returns the arguments of the constructor."""

    def _trackable_children(self, *args: Any, **kwargs: Any) -> Dict[str, SavedObject]:
        """Returns what checkpoints save below it, by name."""

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Optional[SavedObject]:
        """Returns what a checkpoint restores under a name."""


class NewKeras2Optimizer(KerasOptimizer, Protocol):
    """A new-style optimizer of Keras 2, from TensorFlow 2.9 on."""

    _name: str

    def build(self, var_list: Variables) -> None:
        """Creates the slots of variables."""

    def aggregate_gradients(self, grads_and_vars: Pairs) -> GradsAndVars:
        """Sums gradients over the replicas."""

    def compute_gradients(
        self, loss: Loss, var_list: VarList, tape: Optional[Tape]
    ) -> GradsAndVars:
        """Computes the gradients of a loss."""


class OptimizerV2(KerasOptimizer, Protocol):
    """An `OptimizerV2` of Keras 2."""

    _name: str
    lr: Any
    weights: List[Variable]

    def get_slot_names(self) -> List[str]:
        """Returns the names of its slots."""

    def get_gradients(self, loss: Tensor, params: Variables) -> Gradients:
        """Returns the gradients of a loss tensor in a graph."""

    def _compute_gradients(
        self,
        loss: Loss,
        var_list: VarList,
        grad_loss: Optional[Tensor] = None,
        tape: Optional[Tape] = None,
    ) -> GradsAndVars:
        """Computes the gradients of a loss."""


class DynamicLossScaleObject(LossScaleObject, Protocol):
    """A `DynamicLossScale`, of the shim or of TensorFlow."""

    initial_loss_scale: float
    increment_period: int
    multiplier: float
    _current_loss_scale: Variable
    _num_good_steps: Variable
