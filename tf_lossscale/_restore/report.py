"""What `restore` reports."""

from typing import NamedTuple, Optional, Tuple


class Entry(NamedTuple):
    """A value of the file and the variable of the program; None where there is no such one.

    Attributes:
      in_file: the key of the value, as in `model/dense/kernel`; or the name in a file of names.
      file_shape: its shape.
      in_program: the name of the variable, or what it is to the optimizer, such as `m of kernel`.
      program_shape: its shape; `()` for a hyperparameter, which has no variable.
    """

    in_file: Optional[str]
    file_shape: Optional[Tuple[int, ...]]
    in_program: Optional[str]
    program_shape: Optional[Tuple[int, ...]]


class Report(NamedTuple):
    """What was restored from a file, and what was not. As text, it is the line that is printed.

    Attributes:
      path: the file, or the prefix of the checkpoint.
      written_by: the kind of the optimizer in the file, such as "Keras 2, legacy optimizer".
      restored: the values of the file that the program has now.
      initial: variables of the program that the file has no value for.
      unused: values of the file that the program has no variable for.
      notes: what the file does not say or does not have, such as a loss scale.
    """

    path: str
    written_by: str
    restored: Tuple[Entry, ...]
    initial: Tuple[Entry, ...]
    unused: Tuple[Entry, ...]
    notes: Tuple[str, ...] = ()

    def __str__(self) -> str:
        """The line that `restore` prints."""
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"tf-lossscale: restored {len(self.restored)} values of {self.path} "
            f"({self.written_by}){notes}; {len(self.initial)} variables keep their initial value, "
            f"{len(self.unused)} values of the file are unused"
        )
