"""What a converted checkpoint is to hold."""

from typing import NamedTuple, Optional, Tuple, Union

__all__ = ["Plan", "Tensor"]


class Tensor(NamedTuple):
    """A tensor of the new checkpoint.

    Attributes:
      key: its key there.
      dtype: its type there.
      source: its key in the old checkpoint, None for one that is made.
      value: the value of one that is made.
    """

    key: str
    dtype: str
    source: Optional[str]
    value: Optional[Union[int, bytes]] = None


class Plan(NamedTuple):
    """A new checkpoint.

    Attributes:
      tensors: all that it holds.
      changes: before and after, in words, of what differs.
      notices: what the user should know.
    """

    tensors: Tuple[Tensor, ...]
    changes: Tuple[Tuple[str, str], ...]
    notices: Tuple[str, ...]
