"""Everything that is private in LibCST, or replaced in it. No other module uses such parts.

* `CodegenState` and `generate`: what `Module.code` renders with. Its only public use,
  `code_for_node`, has no hook for positions. LibCST's own position provider subclasses the state in
  the same way. `check_round_trip` compares each text that is rendered with the source.
* `unvalidated`: the check that each new node makes, which takes a sixth of the time of a parse.

They are the same in LibCST 1.1 to 1.9.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import libcst as cst
from libcst._nodes.internal import CodegenState

__all__ = ["CodegenState", "generate", "unvalidated"]


def generate(node: cst.CSTNode, state: CodegenState) -> None:
    """Adds the tokens of a node to the state."""
    node._codegen(state)


@contextlib.contextmanager
def unvalidated() -> Iterator[None]:
    """Disables the check of new nodes within the block.

    It is not needed there: the tree is compared with the source before anything is edited.
    """
    validate = cst.CSTNode.__post_init__
    cst.CSTNode.__post_init__ = lambda node: None  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        cst.CSTNode.__post_init__ = validate  # type: ignore[method-assign]
