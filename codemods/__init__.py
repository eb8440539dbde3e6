"""Codemods that migrate code away from TensorFlow's retired loss-scale classes.

Data flows one way: bytes -> `engine.prefilter` -> `engine.parse` -> `resolve` -> `rules` (syntax
in, edits and findings out) -> `engine.apply` -> `reports`. Rules do not know about files or the
command line, and the command line does not know about syntax. TensorFlow is never imported.

Each folder imports only folders below it, as listed in the table in CONTRIBUTING.md.
"""
