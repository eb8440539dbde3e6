"""Reports what no rule sees: unused suppressions, and lines of notebooks that are not Python.

- A `# lossscale: ignore` comment can outlive the line that it was written for (LS900). Which
  comments are unused is known after all rules have run.
- `%timeit tf.contrib...`, `%%writefile train.py`, `!python -c ...` may hold legacy code, but only
  IPython can run it, so they are never edited (LS910).
"""

from __future__ import annotations

from ..rule import Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={
        "LS900": "a suppression comment that silences nothing",
        "LS910": "a legacy name in a magic or shell line of a notebook",
    },
    summary="unused suppressions, and lines of notebooks that are not Python, reported",
    upstream="https://ipython.readthedocs.io/en/stable/interactive/magics.html",
    cases="""
        # not a comment that suppresses a finding, nor one that looks like a magic line
          import tensorflow as tf

          opt = tf.contrib.tpu.CrossShardOptimizer(opt)  # lossscale: ignore[LS501] runs on 1.15
          # %timeit LossScaleOptimizer(opt)

        # a comment that suppresses nothing
        > manual: silences nothing
          import tensorflow as tf

          opt = tf.compat.v1.train.AdamOptimizer(1e-3)  # lossscale: ignore[LS501]

        # a comment with a code that finds nothing here
        > manual
          import tensorflow as tf

          opt = tf.contrib.tpu.CrossShardOptimizer(opt)  # lossscale: ignore[LS501,LS301]
    """,
)
