"""Lets other parts of the package watch the steps of a loss-scale optimizer.

An optimizer has at most one watcher, which counts its steps and examines the skipped ones. The
optimizers know only this module. Without a watcher, no operation is added to a step.
"""

import weakref
from typing import Any, Callable, MutableMapping, Optional, Sequence

__all__ = ["StepWatcher", "Watch", "WatchedStep", "set_watcher", "watch", "watcher_of"]


class WatchedStep:
    """One step of an optimizer, as it is built or, in eager mode, run."""

    def skipped(self) -> Any:
        """Runs in a skipped step; returns an operation, None in eager mode."""
        raise NotImplementedError("a watcher implements this")

    def finished(self, applied: Any) -> Any:
        """Runs after every step.

        Args:
          applied: an operation or tensor to wait for; None in eager mode.

        Returns:
          An operation; None in eager mode.
        """
        raise NotImplementedError("a watcher implements this")


class StepWatcher:
    """Watches all steps of one optimizer. It must not refer to the optimizer."""

    def begin(
        self, variables: Sequence[Any], gradients: Sequence[Sequence[Any]]
    ) -> Optional[WatchedStep]:
        """Begins a step.

        Args:
          variables: the variables that have a gradient.
          gradients: for each variable, the tensors and `IndexedSlices` that are tested.

        Returns:
          The step, or None if it is not watched.
        """
        raise NotImplementedError("a watcher implements this")


class Watch:
    """The watch over one step.

    Attributes:
      skipped: function for the branch of a skipped step; None without a watcher.
    """

    def __init__(self, step: Optional[WatchedStep]) -> None:
        self._step = step
        self.skipped: Optional[Callable[[], Any]] = None if step is None else step.skipped

    def finished(self, applied: Any) -> Any:
        """Returns the operation to run after the step, or None."""
        return None if self._step is None else self._step.finished(applied)


# Not an attribute of the optimizer, which would be saved with it.
_watchers: "MutableMapping[Any, StepWatcher]" = weakref.WeakKeyDictionary()


def set_watcher(optimizer: Any, watcher: StepWatcher) -> None:
    """Sets the watcher of the steps that are built from now on."""
    _watchers[optimizer] = watcher


def watcher_of(optimizer: Any) -> Optional[StepWatcher]:
    """Returns the watcher of a loss-scale optimizer, or None."""
    return _watchers.get(optimizer) if _watchers else None


def watch(optimizer: Any, variables: Sequence[Any], gradients: Sequence[Sequence[Any]]) -> Watch:
    """Begins a step of an optimizer.

    Args:
      optimizer: the loss-scale optimizer.
      variables: the variables that have a gradient.
      gradients: for each variable, the tensors and `IndexedSlices` that are tested.
    """
    watcher = watcher_of(optimizer)
    return Watch(None if watcher is None else watcher.begin(variables, gradients))
