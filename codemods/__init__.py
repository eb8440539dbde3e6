"""Codemods that move code off TensorFlow's retired loss-scale classes.

Data flows one way: bytes -> `prefilter` -> parse once -> `names` resolved once -> `rules` (syntax
in, edits and findings out) -> `engine` applies -> reports. Rules know nothing of files or the
command line; the command line knows nothing of syntax. TensorFlow is never imported.
"""

__all__: "list[str]" = []
