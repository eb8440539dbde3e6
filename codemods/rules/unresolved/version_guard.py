"""Reports branches with legacy names that the newest TensorFlow does not take, or may not take.

What decides about a branch is followed by the flow of data: a version comparison, `hasattr` on a
module of TensorFlow, a `try` around an import, a flag or function made of these, in this file or a
different file of the run. What one file gives to another as an argument, an attribute, a key or an
option is found by its name alone. A branch that the newest TensorFlow takes is none of these.

The names in the branch are renamed like all others, to the shim, so that on each version the branch
does what it did. If another branch scales the loss, too, that is a note, and nothing is left to do.
Otherwise nothing scales the loss after the upgrade, because the branch is not taken (LS908). An
import of the shim in a `try` succeeds on every version, so that its branch is taken: check that it
is the right one. Another test of the version that decides how the imported class is used no longer
fits it, and is reported. A module that is None on some versions, as after `except ImportError:
contrib = None`, counts as a flag. No branch is removed.

`tf.__version__ < "2.4"` compares text, and "2.10" sorts before "2.4": from TensorFlow 2.10 on, the
comparison gives the answer for old versions again (LS913). `float(tf.__version__[:3])`,
`tf.__version__[2]` and `tf.__version__.startswith("2.1")` have the same fault. The finding is at
the comparison, also if it only makes the flag that decides about the branch. For a flag of a
different file, it is at the condition that reads the flag.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.guards import Branch
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, When
from ._version_test import version_test

__all__ = ["RULE"]

_REMOVABLE = (
    "right as it is: another branch scales the loss after the upgrade; this one can go once the "
    "older TensorFlow versions are no longer supported"
)
_BOTH = "right as it is: each TensorFlow version takes a branch that scales the loss"
_NEVER = (
    "after the upgrade this branch is not taken, so nothing here scales the loss: write {} in the "
    "branch that the new TensorFlow takes"
)
_RAISES = (
    "after the upgrade this branch is not taken, and the other one raises an error: write {} there"
)
_PERHAPS = (
    "the TensorFlow version decides whether this branch is taken, and otherwise nothing here "
    "scales the loss: write {} in the branch that the new TensorFlow takes, too"
)
_IMPORTED = (
    "where the shim replaces it, this import succeeds on every TensorFlow, so this branch is "
    "taken, and what handles the error is not: check that it is the branch to take after the "
    "upgrade"
)
_USED = (
    "the TensorFlow version decides whether this is used, and otherwise nothing here scales the "
    "loss: write {} where the new TensorFlow goes on, too"
)
_TESTED_AGAIN = (
    "with the shim, the `try` that binds this succeeds on every TensorFlow, while {} still decides "
    "by the version how it is used: keep one of the imports, and the use that fits it"
)
_TEXT = (
    "this does not compare numbers, so TensorFlow {} and later can be taken for older versions: "
    "write {}"
)
_WHY = "only some TensorFlow versions take this branch"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The symbols in such a branch keep what they do on old versions, so they go to the shim."""
    for place, names in program.guards.guarded_places():
        when = When.IF_FLAG if names else When.ALWAYS
        yield from Obstacle.of_place(place, "LS908", _WHY, when, tuple(sorted(names)))


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each such branch once, at its first legacy name, and comparisons of text.

    Beside a comparison of text, no branch is certain: `tf.__version__ < "2.4"` holds on 2.21.
    """
    texts = program.guards.compared_as_text(decision.texts)
    for branch in program.guards.branches(decision.flags, decision.moved | decision.kept):
        first = branch.places[0]
        if texts:
            branch = branch._replace(is_never_taken=False)
        if branch.is_scaled_elsewhere and branch.tested_again is not None:
            message = _TESTED_AGAIN.format(_shown(program, branch.tested_again))
            yield Proposal.report(first.node, "LS908", first.symbol, message)
        elif branch.is_scaled_elsewhere:
            is_certain = branch.is_never_taken or branch.is_tried_import
            words = _REMOVABLE if is_certain else _BOTH
            yield Proposal.note(first.node, "LS908", first.symbol, words)
        else:
            yield Proposal.report(first.node, "LS908", first.symbol, _message(branch))
    for test, release in texts.items():
        message = _TEXT.format(release, version_test(program, test))
        yield Proposal.report(test, "LS913", "__version__", message)


def _shown(program: Program, test: cst.CSTNode) -> str:
    """A test as messages show it."""
    return f"`{' '.join(program.code(test).split())}`"


def _message(branch: Branch) -> str:
    """What happens after the upgrade, with the line to write."""
    if branch.is_tried_import:
        return _IMPORTED
    first = branch.places[0]
    written = _CURRENT.get(first.symbol, "the current API")
    if branch.is_of_uses:
        return _USED.format(written)
    if not branch.is_never_taken:
        return _PERHAPS.format(written)
    return (_RAISES if branch.raises else _NEVER).format(written)


_CURRENT = {
    "LossScaleOptimizer": "tfls.keras.mixed_precision.LossScaleOptimizer(optimizer)",
    "Policy": 'tfls.keras.mixed_precision.set_global_policy("mixed_float16")',
    "set_policy": 'tfls.keras.mixed_precision.set_global_policy("mixed_float16")',
    "global_policy": "tfls.keras.mixed_precision.global_policy()",
}
"""The current API of each symbol."""


RULE = Rule(
    codes={
        "LS908": "a branch for an old TensorFlow",
        "LS913": "versions of TensorFlow that are not compared as numbers",
    },
    summary="branches that only some TensorFlow versions take, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    needs=needs,
    reports=reports,
    cases="""
        # not a test between two branches with the final API
          import tensorflow as tf

          if tf.config.list_physical_devices("GPU"):
              opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
          else:
              opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())

        # a branch that runs on old versions only
        > manual: this branch is not taken
          import tensorflow as tf
        + import tf_lossscale as tfls

          if not hasattr(tf.keras.mixed_precision, "set_global_policy"):
        -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        +     tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")

        # a branch beside an up-to-date one
        > safe: right as it is
          import tensorflow as tf
        + import tf_lossscale as tfls
          from packaging import version

          if version.parse(tf.__version__) < version.parse("2.4"):
        -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        +     tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")
          else:
        -     tf.keras.mixed_precision.set_global_policy("mixed_float16")
        +     tfls.keras.mixed_precision.set_global_policy("mixed_float16")

        # a comparison of text
        > manual: does not compare numbers
          import tensorflow as tf
        + import tf_lossscale as tfls

          if tf.__version__ < "2.4":
        -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        +     tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")
          else:
        -     tf.keras.mixed_precision.set_global_policy("mixed_float16")
        +     tfls.keras.mixed_precision.set_global_policy("mixed_float16")

        # a comparison of text, without another branch that scales the loss
        > manual: decides whether this branch is taken
          import tensorflow as tf
        + import tf_lossscale as tfls

          if tf.__version__ < "2.4":
        -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        +     tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")

        # an import that is tried
          try:
        -     from tensorflow.keras.mixed_precision.experimental import set_policy
        +     from tf_lossscale.keras.mixed_precision.experimental import set_policy
          except ImportError:
        -     from tensorflow.keras.mixed_precision import set_global_policy as set_policy
        +     from tf_lossscale.keras.mixed_precision import set_global_policy as set_policy

          set_policy("mixed_float16")

        # an import that is tried, and sets a flag
        > manual: this import succeeds on every TensorFlow
          try:
        -     from tensorflow.contrib.mixed_precision import LossScaleOptimizer
        +     from tf_lossscale.contrib.mixed_precision import LossScaleOptimizer
              has_contrib = True
          except ImportError:
              has_contrib = False

        # an import that is tried, beside another test of the version
        > manual: still decides by the version
          import tensorflow as tf
          try:
        -     from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
        +     from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer
          except ImportError:
        -     from tensorflow.keras.mixed_precision import LossScaleOptimizer
        +     from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

          if hasattr(tf.keras.mixed_precision, "experimental"):
              opt = LossScaleOptimizer(opt, "dynamic")
          else:
              opt = LossScaleOptimizer(opt)

        # a module that is None without tf.contrib
        > manual: decides whether this branch is taken
          try:
              import tensorflow.contrib as contrib
        +     import tf_lossscale as tfls
          except ImportError:
              contrib = None

          if contrib is not None:
        -     opt = contrib.mixed_precision.LossScaleOptimizer(opt, manager)
        +     opt = tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)

        # the beginning of the version
        > manual
          import tensorflow as tf
        + import tf_lossscale as tfls

          if tf.__version__.startswith("2.1"):
        -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        +     tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")
          else:
        -     tf.keras.mixed_precision.set_global_policy("mixed_float16")
        +     tfls.keras.mixed_precision.set_global_policy("mixed_float16")
    """,
)
