"""What every loss-scale optimizer offers, whatever the kind of its inner optimizer.

`OptimizerV2Wrapper`, `Keras2Wrapper` and `Keras3Wrapper` implement it, and the rest of the package
uses nothing else of them. It is no base class: Keras's own classes are the bases, and what a
wrapper leaves out must be found there.
"""

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from tf_lossscale._versions.keras import KerasFamily

if TYPE_CHECKING or sys.version_info >= (3, 8):
    from typing import Protocol
else:  # Python 3.7 checks no protocols
    Protocol = object

__all__ = ["LossScaleWrapper"]


class LossScaleWrapper(Protocol):
    """The API of the final class, as TensorFlow 2.4 documents it."""

    _family: KerasFamily
    """The kind of optimizer that the class wraps."""

    role: str
    """Whose constructor the class has: "final" or "experimental"."""

    name: str
    """The name of the optimizer."""

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        """Wraps `inner`; the loss scale is a float, or a `DynamicLossScale`."""

    @property
    def inner_optimizer(self) -> Any:
        """The optimizer that this one wraps."""

    @property
    def dynamic(self) -> bool:
        """Whether the loss scale follows the gradients."""

    @property
    def loss_scale(self) -> Any:
        """The current loss scale: a float32 tensor of shape `[]`."""

    @property
    def dynamic_counter(self) -> Optional[Any]:
        """The variable that counts finite steps since the last change; None if fixed."""

    @property
    def initial_scale(self) -> float:
        """The loss scale that it began with."""

    @property
    def dynamic_growth_steps(self) -> Optional[int]:
        """Finite steps in a row before the loss scale doubles; None if it is fixed."""

    @property
    def iterations(self) -> Any:
        """The variable that counts steps."""

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""

    @property
    def lr(self) -> Any:
        """The learning rate of the inner optimizer, under its old name."""

    def get_scaled_loss(self, loss: Any) -> Any:
        """Returns the loss, or the callable that returns it, times the loss scale."""

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> List[Any]:
        """Returns the gradients divided by the loss scale."""

    def minimize(self, loss: Any, var_list: Any) -> Any:
        """Scales the loss, computes the gradients, unscales and applies them."""

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Applies unscaled gradients, if all of them are finite on all replicas."""

    def get_config(self) -> Dict[str, Any]:
        """Returns the configuration, from which `from_config` makes the same optimizer."""

    @classmethod
    def from_config(
        cls, config: Dict[str, Any], custom_objects: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Makes an optimizer from what `get_config` returned, of any version."""
