"""Reports legacy names in the lines and cells of notebooks that are not Python.

`%timeit tf.contrib...`, `%%writefile train.py`, `!python -c ...`: they may hold legacy code, but
only IPython can run it. They are never edited. The command reports them under this rule's code,
because no rule sees them.
"""

from __future__ import annotations

from ..rule import Example, Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={"LS910": "a legacy name in a magic or shell line of a notebook"},
    summary="magic and shell lines of notebooks that hold a legacy name, reported",
    upstream="https://ipython.readthedocs.io/en/stable/interactive/magics.html",
    examples=(
        Example(
            "not a comment that looks like a magic line",
            """\
            # %timeit LossScaleOptimizer(opt)
            """,
        ),
    ),
)
