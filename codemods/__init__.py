"""Codemods that move code off TensorFlow's retired loss-scale classes.

Data flows one way: bytes -> `engine.prefilter` -> `engine.parse` -> `resolve` -> `rules` (syntax
in, edits and findings out) -> `engine.apply` -> `reports`. Rules know nothing of files or of the
command line; the command line knows nothing of syntax. TensorFlow is never imported.

Each folder imports only folders below it; the table in CONTRIBUTING.md says which.
"""

__all__: "list[str]" = []
