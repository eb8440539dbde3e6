"""State variables that an object checkpoint finds under fixed names, one set for each graph.

`tf.train.Checkpoint` must not reach from one graph into another, so an object that is used in
several graphs shows to each only the variables that were made in it.
"""

from typing import Any, Dict, List, Tuple

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.checkpoints import Trackable, TrackableReference

__all__ = ["HoldsState"]


class HoldsState(Trackable):
    """Base of the objects whose variables are checkpoint children.

    `_weights` maps (name, graph) to the variable; the graph is None in eager mode. It comes to be
    at the first use, because subclasses of users may not call `super().__init__()`.
    """

    def _remember(self, name: str, variable: Any) -> None:
        """Makes `variable` the child `name` in the current graph, and restores a waiting value."""
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
        """Lists the (name, variable) pairs of the current graph, by name."""
        here = _current_graph()
        weights = self.__dict__.get("_weights", {})
        pairs = [(name, variable) for (name, graph), variable in weights.items() if graph is here]
        return sorted(pairs, key=lambda pair: pair[0])

    # The two hooks of Trackable: what is saved, and where a value that is restored goes.

    @property
    def _checkpoint_dependencies(self) -> List[Any]:
        mine = [TrackableReference(name=name, ref=ref) for name, ref in self._state_here()]
        return list(super()._checkpoint_dependencies) + mine

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Any:
        found = super()._lookup_dependency(name, *args, **kwargs)
        return found if found is not None else dict(self._state_here()).get(name)


def _current_graph() -> Any:
    # Out of `tf.function`, `tf.cond` and the like first: what they make belongs to the outer graph.
    with tf.init_scope():
        return None if tf.executing_eagerly() else tf1.get_default_graph()
