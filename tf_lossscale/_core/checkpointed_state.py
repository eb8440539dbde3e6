"""State variables that object checkpoints save under fixed names, one set for each graph.

A checkpoint must not mix variables of different graphs, so an object that is used in several graphs
exposes, in each, only the variables that were created there.
"""

from typing import Any, Dict, List, Tuple

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.checkpoints import Trackable, TrackableReference

__all__ = ["HoldsState"]


class HoldsState(Trackable):
    """Base of the objects whose variables are checkpoint children.

    `_weights` maps (name, graph) to the variable; the graph is None in eager mode. It is created on
    first use, because users' subclasses may not call `super().__init__()`.
    """

    def _remember(self, name: str, variable: Any) -> None:
        """Tracks `variable` as the child `name` in the current graph; restores a deferred value."""
        weights: Dict[Tuple[str, Any], Any] = self.__dict__.setdefault("_weights", {})
        key = (name, _current_graph())
        if key in weights:
            raise RuntimeError(
                f"Duplicate variables detected. {key}: this {type(self).__name__} already has a "
                "variable of this name in this graph; give the second one another name."
            )
        weights[key] = variable
        self._handle_deferred_dependencies(name=name, trackable=variable)

    def _state_here(self) -> List[Tuple[str, Any]]:
        """Returns the (name, variable) pairs of the current graph, sorted by name."""
        here = _current_graph()
        weights = self.__dict__.get("_weights", {})
        pairs = [(name, variable) for (name, graph), variable in weights.items() if graph is here]
        return sorted(pairs, key=lambda pair: pair[0])

    # The two hooks of Trackable: which children are saved, and which child a restored value is for.

    @property
    def _checkpoint_dependencies(self) -> List[Any]:
        mine = [TrackableReference(name=name, ref=ref) for name, ref in self._state_here()]
        return list(super()._checkpoint_dependencies) + mine

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Any:
        found = super()._lookup_dependency(name, *args, **kwargs)
        return found if found is not None else dict(self._state_here()).get(name)


def _current_graph() -> Any:
    # Leave `tf.function`, `tf.cond` and the like first: variables belong to the outermost graph.
    with tf.init_scope():
        return None if tf.executing_eagerly() else tf1.get_default_graph()
