"""Reports branches with legacy names that only some versions of TensorFlow take.

If the other branch already uses the current API, both branches stay. The old one can be removed
when the program no longer supports TensorFlow below 2.4, as OpenNMT-tf did. Otherwise the legacy
name is renamed to the shim's. On each version the branch then does what it did. But after the
upgrade the branch is not taken, so nothing there scales the loss. There is one finding for each
branch that has such a name or uses a function, class or table with one. No branch is removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...resolve.guards import is_final
from ...resolve.values import reads_of_value
from ...rewrite.proposal import needs_of_place, symbol_of
from ..rule import Program, Proposal, Rule

__all__ = ["RULE"]

_REMOVABLE = (
    "removable: another branch already uses the current API; when TensorFlow below 2.4 is no "
    "longer supported, remove this branch and the test, then migrate again"
)
_MESSAGES = {
    "tested": (
        "after the upgrade this branch may not be taken, and then nothing here scales the loss: "
        "write the current API in the branch that the new TensorFlow takes"
    ),
    "imported": (
        "with the shim this import succeeds on every TensorFlow: check that the program is to take "
        "this branch after the upgrade, and not the one that handles the error"
    ),
    "used": (
        "the TensorFlow version decides whether this is used: check that what is used after the "
        "upgrade scales the loss, too"
    ),
}
_WHY = "only some TensorFlow versions take this branch"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such branch once; its symbols go to the shim, if they are renamed at all."""
    moved = [one.node for one in program.places() if program.guards and not is_final(one)]
    aliases = {read for node in moved for read in reads_of_value(program, node)}
    for branch in program.guards:
        first = branch.places[0]
        message = _REMOVABLE if branch.has_final else _MESSAGES[branch.kind]
        yield Proposal.report(first.node, "LS908", symbol_of(first), message)
        for place in branch.places:
            if branch.has_final and place.root not in aliases:
                continue  # it stays as it is
            yield from needs_of_place(program, place, "LS908", _WHY)


RULE = Rule(
    codes={"LS908": "a branch for an old TensorFlow"},
    summary="branches that only some TensorFlow versions take, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    cases="""
        # not a test between two branches with the final API
          import tensorflow as tf

          if tf.__version__ >= "2.11":
              opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.legacy.SGD())
          else:
              opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())

        # a branch that runs on old versions only
        > manual: go to the shim
          import tensorflow as tf
        + import tf_lossscale as tfls

          if tf.__version__ < "2.4":
        -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        +     tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")
    """,
)
