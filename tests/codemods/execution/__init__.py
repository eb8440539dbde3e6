"""Proof by execution: legacy programs, run before and after the codemods.

`migration` moves each program in `tests/data/programs/` through the command. What it
makes of them is executed on every TensorFlow by `tests/shim/programs/`.
"""
