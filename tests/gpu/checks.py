"""All checks, by the name that the table shows."""

from typing import Callable, Dict

from gpu import finite, keras_model, replicas, step_cost, steps
from gpu.table import Setting

CHECKS: Dict[str, Callable[[Setting], str]] = {
    **finite.CHECKS,
    **steps.CHECKS,
    **keras_model.CHECKS,
    **replicas.CHECKS,
    **step_cost.CHECKS,
}
