"""The tables of what differs between the releases of TensorFlow and Keras.

For a new release, see "A new TensorFlow or Keras" in CONTRIBUTING.md. This module does not import
TensorFlow: the command that rewrites programs, and the scripts of the tests, read it as well.
"""

from typing import NamedTuple, Tuple

# The last releases with Keras 2, as (major, minor, patch), and the first ones with Keras 3, which
# `tf.keras` is from then on.
LAST_WITH_KERAS_2 = {"tensorflow": (2, 15, 1), "keras": (2, 15, 0)}
FIRST_WITH_KERAS_3 = {"tensorflow": (2, 16, 0), "keras": (3, 0, 0)}

# The environment variable that selects Keras 2, from the package tf-keras, for `tf.keras`.
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
LEGACY_KERAS_VALUES = ("1", "true", "True")  # that select it; TensorFlow ignores all others


class Release(NamedTuple):
    """A TensorFlow with one Keras, on which the tests run."""

    tensorflow: str  # its version; `.*` at the end stands for the newest one
    keras: str  # `2` where it comes with TensorFlow, the version of Keras 3, or `tf-keras`
    python: str  # on which they are tested
    more: Tuple[str, ...] = ()  # what else has to be installed
    tox: bool = False  # whether tox runs tests on it; `make versions` runs the core on all

    @property
    def version(self) -> str:
        """The version of TensorFlow without its last part, such as `2.16`."""
        return ".".join(self.tensorflow.split(".")[:2])

    @property
    def name(self) -> str:
        """Names the environment: `tf2.15`, `tf2.16-keras3.3`, `tf2.21-keras3`, `tf2.21-keras2`."""
        if self.keras == "2":
            return "tf" + self.version
        if self.keras == "tf-keras":
            return f"tf{self.version}-keras2"
        short = ".".join(self.keras.replace(".*", "").split(".")[:2])
        return f"tf{self.version}-keras{short}"

    @property
    def requirements(self) -> Tuple[str, ...]:
        """What pip installs for it, besides the tools of the tests and tf-keras."""
        # There is no tensorflow-cpu 1.15.5.
        package = "tensorflow" if self.version == "1.15" else "tensorflow-cpu"
        pins = [f"{package}=={self.tensorflow}"]
        if self.keras not in ("2", "3.*", "tf-keras"):
            pins.append(f"keras=={self.keras}")
        return (*pins, *self.more)


_PROTOBUF = "protobuf<3.21"  # later ones refuse the code that these releases have generated
_NUMPY = "numpy<2"  # these releases were built for the old interface

RELEASES: Tuple[Release, ...] = (
    Release("1.15.5", "2", "3.7", (_PROTOBUF, "numpy<1.19", "h5py<3"), tox=True),
    Release("2.3.4", "2", "3.8", (_PROTOBUF,), tox=True),
    Release("2.4.4", "2", "3.8", (_PROTOBUF,), tox=True),
    Release("2.5.3", "2", "3.9", (_PROTOBUF,)),
    Release("2.6.5", "2", "3.9", ("keras==2.6.0", _PROTOBUF)),
    Release("2.7.4", "2", "3.9", (_PROTOBUF, _NUMPY)),
    Release("2.8.4", "2", "3.9", (_PROTOBUF, _NUMPY), tox=True),
    Release("2.9.3", "2", "3.10", (_NUMPY,)),
    Release("2.10.1", "2", "3.10", (_NUMPY,)),
    Release("2.11.1", "2", "3.10", (_NUMPY,), tox=True),
    Release("2.12.1", "2", "3.11", (_NUMPY,)),
    Release("2.13.1", "2", "3.11", (_NUMPY,)),
    Release("2.14.1", "2", "3.11", (_NUMPY,)),
    Release("2.15.1", "2", "3.11", tox=True),
    Release("2.16.1", "3.0.5", "3.11"),
    Release("2.16.2", "3.3.3", "3.12", tox=True),
    Release("2.17.*", "3.4.1", "3.12"),
    Release("2.18.1", "3.6.0", "3.12", tox=True),
    Release("2.19.*", "3.8.0", "3.12"),
    Release("2.20.*", "3.12.*", "3.13"),
    Release("2.21.*", "3.*", "3.12", tox=True),
    Release("2.21.*", "tf-keras", "3.13", tox=True),
)
"""All releases that are supported, oldest first."""

CANDIDATES: Tuple[Release, ...] = (
    # It requires keras-nightly, which is 3.16.
    Release("2.22.0rc0", "3.*", "3.13"),
)
"""Candidates of the next release, which `make versions` also tries; nothing is claimed for them."""

SUPPORTED = f"{RELEASES[0].version}, or {RELEASES[1].version} to {RELEASES[-1].version}"
"""The versions of TensorFlow, as messages name them."""


class Since:
    """The first TensorFlow of each behavior that our code has to know, as (major, minor).

    `base.has` compares them with the installed one. Prefer a test of the object itself, such as
    `hasattr`, to a row here: it also holds for releases that have a fix from a later one.
    """

    # `compile` no longer compares the loss scales of optimizer and policy.
    COMPILE_LEAVES_LOSS_SCALE = (2, 2)
    # The loss-scale optimizer of Keras raises an error under strategies that it cannot support.
    KERAS_REFUSES_STRATEGIES = (2, 2)
    # `OptimizerV2.apply_gradients` can be called with gradients that are sums over the replicas.
    LEGACY_ACCEPTS_SUMS = (2, 2)

    # The loss-scale optimizer is saved as one object with the inner optimizer. Before, the inner
    # optimizer is its child, and the original can only restore that layout.
    LEGACY_SAVES_ONE_OBJECT = (2, 3)
    # The seed of an operation depends on the random operations before it, not on all of them.
    SEEDS_COUNT_RANDOM_OPERATIONS = (2, 3)

    # The key of a collective can be a tensor. Before, it is fixed while tracing, and the
    # collective is for tensors of one shape.
    COLLECTIVES_HAVE_KEYS_AT_RUN_TIME = (2, 4)
    # Each experimental loss-scale optimizer has its own variables. Before, it uses those of the
    # `DynamicLossScale` that it is given. The class last exists in 2.8.
    EXPERIMENTAL_HAS_OWN_LOSS_SCALE = (2, 4)
    # `fit` calls what is `model.train_function` at each batch, so it can be replaced for one batch.
    FIT_READS_TRAIN_FUNCTION = (2, 4)
    # `fit` leaves the sum over the replicas to the optimizer. In 2.2 and 2.3 it adds the gradients
    # up itself.
    FIT_LEAVES_SUM = (2, 4)
    # `OptimizerV2._aggregate_gradients` returns pairs. Before, it returns the gradients alone.
    LEGACY_AGGREGATES_PAIRS = (2, 4)
    # `OptimizerV2.apply_gradients` clips. Before, only `minimize` does.
    LEGACY_CLIPS_WHEN_APPLIED = (2, 4)
    # `OptimizerV2._compute_gradients` takes a tape.
    LEGACY_COMPUTES_WITH_TAPE = (2, 4)

    # `CollectiveReduceV2` has the argument `ordering_token`.
    COLLECTIVES_HAVE_ORDERING_TOKEN = (2, 5)
    # The loss-scale optimizer adds gradients up before it tests them, and passes
    # `experimental_aggregate_gradients=False` to the inner optimizer.
    LEGACY_AGGREGATES_FIRST = (2, 5)
    # Setting the learning rate of the loss-scale optimizer also reads the old one, which makes the
    # variables of the hyperparameters of an `OptimizerV2`.
    LEGACY_READS_RATE_BEFORE_IT_SETS = (2, 5)
    # `MultiWorkerMirroredStrategy` sums when only some of the workers trace a function again.
    # Before, it numbers its sums while tracing, so the workers would wait for each other forever.
    STRATEGY_SURVIVES_RETRACING = (2, 5)
    # `MultiWorkerMirroredStrategy` keeps the tensors that it sums in a graph. Before, Grappler's
    # scoped allocator can write the sums over them, and code that reads them later gets the sums.
    SUMMANDS_ARE_KEPT = (2, 5)

    # `tf.keras` is the package keras, or tf-keras. Before, it is a part of TensorFlow.
    KERAS_IS_A_PACKAGE = (2, 6)
    # Keras 2 refuses to wrap one optimizer twice. Keras 3 never does.
    KERAS_MARKS_WRAPPED = (2, 6)

    # `compile` scales the loss under `mixed_float16` only, dynamically. Before, it also uses the
    # loss scale of an experimental policy, of any name. The policies last exist in 2.8.
    COMPILE_READS_NAME_OF_POLICY = (2, 9)
    # `from_config` of the final class gives a subclass the inner optimizer by position. Before, it
    # gives it by name.
    FROM_CONFIG_PASSES_POSITION = (2, 9)

    # `OptimizerV2.apply_gradients`, or its override, gets the name of the step by keyword. Before,
    # it gets it by position.
    LEGACY_GETS_NAME_BY_KEYWORD = (2, 10)

    # Model files contain the module of the optimizer's class, and its registered name.
    FILES_NAME_MODULES = (2, 12)

    # The package keras has all of the API. Before, it leaves out a part that `tf.keras` has.
    KERAS_PACKAGE_IS_COMPLETE = (2, 16)
