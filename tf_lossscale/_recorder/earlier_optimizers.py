"""Notices steps of optimizers that were built before recording began, and so are not recorded."""

import gc
import weakref
from typing import Any, Collection, Dict, List, Optional, Tuple

import numpy as np

from tf_lossscale._recorder.optimizers import inner_optimizer, loss_scale_of
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.recorded_classes import Recorded

__all__ = ["EarlierOptimizers"]

_State = List[float]
"""Numbers of which each step changes at least one."""


class EarlierOptimizers:
    """The loss-scale optimizers that exist when recording begins.

    Args:
      kinds: their classes.
    """

    def __init__(self, kinds: Dict[type, Recorded]) -> None:
        self._found: List[Tuple[Any, Recorded, Optional[_State]]] = []
        classes = {each: kind for cls, kind in kinds.items() for each in _with_subclasses(cls)}
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        for each in gc.get_objects():
            kind = classes.get(type(each))
            if kind is not None:
                self._found.append((weakref.ref(each), kind, _state_of(kind, each)))

    def note_run(self, session: Any) -> None:
        """Notes that a Session runs something."""
        if self._found:
            self._graphs.add(session.graph)

    def unrecorded(self, recorded: Collection[int]) -> List[str]:
        """Returns the classes of the optimizers that have made steps which were not recorded.

        Args:
          recorded: the `id` of each optimizer with recorded steps.
        """
        names = []
        for reference, kind, before in self._found:
            optimizer = reference()
            if optimizer is None or id(optimizer) in recorded:
                continue
            now = _state_of(kind, optimizer)
            changed = before is not None and now is not None and now != before
            if changed or _graph_of(kind, optimizer) in self._graphs:
                names.append(type(optimizer).__name__)
        return names


def _with_subclasses(cls: type) -> List[type]:
    found = [cls]
    for position in found:  # which grows meanwhile
        below: List[type] = type.__subclasses__(position)
        found += below
    return found


def _numbers(kind: Recorded, optimizer: Any) -> List[Any]:
    """Returns the tensors and variables that its steps change, and creates none."""
    found: List[Any] = []
    try:
        loss_scale = loss_scale_of(kind, optimizer)
        if loss_scale.parameters.rule != "unknown":
            found += [loss_scale.value, loss_scale.good_steps, loss_scale.bad_steps]
        inner = inner_optimizer(kind, optimizer)
        found.append(getattr(inner, "__dict__", {}).get("_iterations"))
    except Exception:  # of a class that is not complete, such as before its variables exist
        pass
    return [getattr(each, "value", each) if _is_of_keras_3(each) else each for each in found]


def _is_of_keras_3(value: Any) -> bool:
    return hasattr(type(value), "path")


def _state_of(kind: Recorded, optimizer: Any) -> Optional[_State]:
    """Returns the state in eager mode; None in a graph, or if nothing is known."""
    with tf.init_scope():
        if not tf.executing_eagerly():
            return None
        try:
            values = [each for each in _numbers(kind, optimizer) if each is not None]
            return [float(np.asarray(each.numpy())) for each in values if hasattr(each, "numpy")]
        except Exception:  # a variable of a graph, or one that is not initialized
            return None


def _graph_of(kind: Recorded, optimizer: Any) -> Optional[Any]:
    """Returns the graph of its tensors and variables; None in eager mode, and without any."""
    owners = [getattr(optimizer, name, None) for name in ("_loss_scale_manager", "_loss_scale")]
    for owner in [*owners, inner_optimizer(kind, optimizer), optimizer]:
        for value in list(getattr(owner, "__dict__", {}).values()):
            if isinstance(value, (tf.Tensor, tf.Variable)):
                graph = getattr(value, "graph", None)
                if graph is not None:
                    return graph
    return None
