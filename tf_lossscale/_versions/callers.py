"""Everything that this package reads from the call stack: who calls, where no argument says it.

TensorFlow and Keras call some methods of an optimizer in a way that programs use in another sense,
and nothing but the caller distinguishes the two. Each function here says which call that is, and
why there is no parameter. All were tried on the versions of `releases.RELEASES`. Nothing else reads
the stack: `tests/package/test_interventions.py` reads the source of the package.

The modules of the calling frames decide, and their functions. Of their variables only
`function_traced_to` reads some.
"""

import inspect
import itertools
import sys
import traceback
from types import CodeType, FrameType
from typing import Any, Callable, Container, Iterator, NamedTuple, Optional

from tf_lossscale._versions.base import has, tf
from tf_lossscale._versions.keras import KERAS_PACKAGES, KerasFamily, KerasKind, keras_package_of
from tf_lossscale._versions.releases import Since


def _module_of(frame: Optional[FrameType]) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _frames(depth: int) -> Iterator[FrameType]:
    """Yields the frames from the caller of the caller on, and `depth` frames further out."""
    return (frame for frame, _ in traceback.walk_stack(sys._getframe(depth + 2)))


def _caller_of(owner: Any, method: str, depth: int) -> Optional[FrameType]:
    """Returns the frame that calls `owner.method()`; overrides in its subclasses are no callers."""
    codes = set(_codes(owner, method))
    return next((frame for frame in _frames(depth + 1) if frame.f_code not in codes), None)


def _codes(owner: Any, method: str) -> Iterator[CodeType]:
    """Yields the code of each definition of a method in the classes of `owner`."""
    for cls in type(owner).__mro__:
        code = getattr(inspect.unwrap(vars(cls).get(method, None)), "__code__", None)
        if code is not None:
            yield code


def called_from_checkpoint(method: str, owner: Any) -> bool:
    """Returns whether `owner.method()` was called by the code that builds an object checkpoint.

    That code queries *every* optimizer for its slots and rejects a slot that two optimizers return.
    So a wrapper that forwards the slots of its inner optimizer must return none to this code: the
    inner optimizer is saved, too, and in the files of the originals the slots belong to it. The
    user, who calls the method with the same arguments, gets the slots.
    """
    module = _module_of(_caller_of(owner, method, 1))
    code = ("tracking.graph_view", "checkpoint.graph_view", "checkpoint.util")
    return module.startswith("tensorflow") and module.endswith(code)


def called_from_compile() -> bool:
    """Returns whether a property is read by the `compile` of TensorFlow 1.15.

    That `compile` compares the loss scale of an optimizer with that of a policy. Both must be
    objects: a comparison with a tensor raises an error in eager mode. A property has no parameters.
    """
    if has(Since.COMPILE_LEAVES_LOSS_SCALE):
        return False
    return _module_of(sys._getframe(2)).endswith("keras.engine.training")


def called_from_minimize_of_fit() -> bool:
    """Returns whether the caller is `fit` of TensorFlow 2.2 or 2.3, which sums the gradients.

    It scales the loss with the same call as a program that leaves the sum over the replicas to the
    optimizer, as later versions of `fit` do, too. The arguments that differ come with a later call.
    """
    if not has(Since.LEGACY_ACCEPTS_SUMS) or has(Since.FIT_LEAVES_SUM):
        return False
    # AutoGraph puts some frames of its own between.
    return any(
        frame.f_code.co_name == "_minimize" and _module_of(frame).endswith("keras.engine.training")
        for frame in itertools.islice(_frames(0), 8)
    )


def conversion_to_legacy(optimizer: Any) -> Optional[Callable[[Any], Any]]:
    """Returns Keras's `convert_to_legacy_optimizer` if it called `optimizer.get_config()`, or None.

    `compile` of TensorFlow 2.11 and later calls it for newer optimizers, if the behavior of
    TensorFlow 2 is disabled. It makes the legacy optimizer from this configuration, which must
    therefore have another form than the one for files. `get_config` has no parameters.
    """
    frame = _caller_of(optimizer, "get_config", 1)
    name = "convert_to_legacy_optimizer"
    if frame is None or frame.f_code.co_name != name:
        return None
    convert: Callable[[Any], Any] = frame.f_globals[name]
    return convert


def calling_keras() -> Optional[Any]:
    """Returns the Keras module that called, directly or not, or None.

    For reading model files: their description of an optimizer fits several Keras packages, and only
    the calling one can use the result. `from_config` gets nothing else from a Keras.
    """
    for frame in _frames(0):
        package = keras_package_of(_module_of(frame))
        if package is not None:
            return KerasFamily(KerasKind.NEW, package, None).keras
    return None


def called_by_keras() -> bool:
    """Returns whether Keras itself calls a method, or reads a property, of ours that calls this.

    Keras 3 reads `variables` and calls `set_weights` and `scale_loss`, which programs of Keras 2
    use in another sense: the files of Keras 3 have the variables in another order. It passes no
    argument that a program does not pass.
    """
    for frame in _frames(0):
        package = _module_of(frame).partition(".")[0]
        if package not in ("tf_lossscale", "tensorflow"):  # AutoGraph puts frames between
            return package in KERAS_PACKAGES
    return False


def called_for_a_value() -> bool:
    """Returns whether an object is called because TensorFlow takes a value or a function of it.

    `tf.Variable` and `tf.summary.write` do, and call whatever can be called, with no argument. A
    loss scale that was read is both: a tensor, as from TensorFlow 2.4 on, and a function that
    returns the current scale, as before.
    """
    for frame in _frames(1):
        module = _module_of(frame)
        if ".autograph." in module:
            continue  # in the way of every function that it does not convert
        is_of_tensorflow = module.startswith(("tensorflow.python.", "tensorflow_core.python."))
        makes_variable = "initial_value" in frame.f_code.co_varnames
        return is_of_tensorflow and (makes_variable or module.endswith(".summary_ops_v2"))
    return False


def function_traced_to(graph: Any) -> Optional[Any]:
    """Returns the `tf.function` that is being traced to `graph`; None if it cannot be found.

    Neither has a reference to the other until the trace ends, so the variables of the frames that
    trace are read: `func_graph`, and the function itself. They may be in another thread than the
    current one, because strategies run replicas in threads of their own.
    """
    function_type = type(tf.function(lambda: None))
    for frame in _frames_of_traces():
        if frame.f_locals.get("func_graph") is not graph:
            continue
        for caller, _ in traceback.walk_stack(frame.f_back):
            owner = caller.f_locals.get("self")
            if isinstance(owner, function_type):
                return owner
    return None


def _frames_of_traces() -> Iterator[FrameType]:
    for innermost in list(sys._current_frames().values()):
        for frame, _ in traceback.walk_stack(innermost):
            if frame.f_code.co_name == "func_graph_from_py_func":
                yield frame


class Line(NamedTuple):
    """A line of a program that is being run."""

    file: str
    function: str
    number: int


def innermost_line_outside(packages: Container[str]) -> Optional[Line]:
    """Returns the line that calls into one of these packages; None if they call each other only.

    Messages name it, and workers compare it. It is the user's, who calls public methods that have
    the parameters of TensorFlow's.
    """
    for frame in _frames(0):
        if _module_of(frame).partition(".")[0] not in packages:
            return Line(frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno)
    return None
