"""The interface of every loss-scale optimizer, independent of the kind of its inner optimizer.

`OptimizerV2Wrapper`, `Keras2Wrapper` and `Keras3Wrapper` implement it, and the rest of the package
uses only what it declares. It is a protocol rather than a base class: Keras's own classes are the
bases, and attributes that a wrapper does not define must be found there.
"""

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from tf_lossscale._versions.keras import KerasFamily

if TYPE_CHECKING or sys.version_info >= (3, 8):
    from typing import Protocol
else:  # Python 3.7 has no `Protocol`
    Protocol = object

__all__ = ["LossScaleWrapper"]


class LossScaleWrapper(Protocol):
    """The API of the final class, as TensorFlow 2.4 documents it."""

    _family: KerasFamily
    """The kind of optimizer that the class wraps."""

    role: str
    """The class whose constructor arguments it takes: `final` or `experimental`."""

    name: str
    """The name of the optimizer."""

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        """Wraps `inner`; the loss scale is a float or a `DynamicLossScale`."""

    @property
    def inner_optimizer(self) -> Any:
        """The wrapped optimizer."""

    @property
    def dynamic(self) -> bool:
        """Whether the loss scale is dynamic."""

    @property
    def loss_scale(self) -> Any:
        """The current loss scale: a float32 tensor of shape `[]`."""

    @property
    def dynamic_counter(self) -> Optional[Any]:
        """The variable that counts finite steps since the scale last changed; None if fixed."""

    @property
    def initial_scale(self) -> float:
        """The initial loss scale."""

    @property
    def dynamic_growth_steps(self) -> Optional[int]:
        """Consecutive finite steps after which the loss scale doubles; None if it is fixed."""

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
        """Returns the loss multiplied by the loss scale; for a callable, a callable."""

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> List[Any]:
        """Returns the gradients divided by the loss scale."""

    def minimize(self, loss: Any, var_list: Any) -> Any:
        """Scales the loss, computes the gradients, unscales and applies them."""

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Applies unscaled gradients if all of them are finite on all replicas."""

    def get_config(self) -> Dict[str, Any]:
        """Returns the configuration from which `from_config` makes an equal optimizer."""

    @classmethod
    def from_config(
        cls, config: Dict[str, Any], custom_objects: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Makes an optimizer from the result of `get_config`, of any version."""
