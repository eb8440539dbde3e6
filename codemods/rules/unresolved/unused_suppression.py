"""Reports `# lossscale: ignore` comments that silence nothing.

A suppression can outlive the line that it was written for. Which comments are unused is known after
all rules have run, so the engine reports them, under this rule's code.
"""

from __future__ import annotations

from ...model import Safety
from ..rule import Example, Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={"LS900": "a suppression comment that silences nothing"},
    summary="unused suppression comments, reported",
    upstream="https://docs.astral.sh/ruff/rules/unused-noqa/",
    examples=(
        Example(
            "not a comment that suppresses a finding",
            """\
            import tensorflow as tf

            opt = tf.contrib.tpu.CrossShardOptimizer(opt)  # lossscale: ignore[LS501] runs on 1.15
            """,
        ),
        Example(
            "a comment that suppresses nothing",
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer(1e-3)  # lossscale: ignore[LS501]
            """,
            None,
            Safety.MANUAL,
            message_contains="silences nothing",
        ),
        Example(
            "not a comment that suppresses findings by a prefix",
            """\
            import tensorflow as tf

            opt = tf.contrib.tpu.CrossShardOptimizer(opt)  # lossscale: ignore[LS5]
            """,
        ),
    ),
)
