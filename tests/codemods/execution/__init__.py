"""Proof by execution: random legacy programs, run before and after the codemods.

`grammar` writes programs from fixed seeds, `migration` moves each one through the engine, and the
bundle of both under `tests/data/programs/` is executed on every TensorFlow by
`tests/shim/programs/`.
"""
