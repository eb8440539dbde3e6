"""Writes a record, line by line."""

import dataclasses
from typing import Any, Dict, List, Optional, Sequence, TextIO

from tf_lossscale._recording.record import FORMAT, RunHeader, ScaleParameters, dump

__all__ = ["RecordWriter"]


class RecordWriter:
    """Writes the lines of one record.

    Args:
      file: text file, open for writing.
      header: the description of the run.
    """

    def __init__(self, file: TextIO, header: RunHeader) -> None:
        self._file = file
        self._optimizers = 0
        self._steps = 0
        file.write(dump({"tf_lossscale_record": FORMAT, **dataclasses.asdict(header)}))

    def add_optimizer(
        self,
        cls: str,
        scale: ScaleParameters,
        names: Sequence[str],
        shapes: Sequence[Sequence[int]],
        initial_weights: Any = None,
        settings: Optional[Dict[str, Any]] = None,
    ) -> int:
        """Writes the description of an optimizer; returns its number, which its steps refer to."""
        number = self._optimizers
        self._optimizers += 1
        variables: List[Any] = [[name, list(shape)] for name, shape in zip(names, shapes)]
        self._file.write(
            dump(
                {
                    "optimizer": number,
                    "class": cls,
                    "scale": dataclasses.asdict(scale),
                    "variables": variables,
                    "initial_weights": initial_weights,
                    "settings": settings or {},
                }
            )
        )
        return number

    def add_step(self, optimizer: int, step: int, **values: Any) -> None:
        """Writes a step: values of `record.COLUMNS`, by their keys; None means unknown."""
        self._steps += 1
        self._file.write(dump({"optimizer": optimizer, "step": step, **values}))

    def add_gap(self, optimizer: int, first: int, end: int) -> None:
        """Writes that the steps from `first` up to `end`, not included, are missing."""
        self._file.write(dump({"optimizer": optimizer, "gap": [first, end]}))

    def end(self) -> None:
        """Writes that the run ended here; a record without this line was cut off."""
        self._file.write(dump({"end": self._steps}))
