"""What carries `tf-lossscale run` over to the Python processes that a script starts.

Python imports a module called `sitecustomize` at its start, from the path. This folder is put on
the path of child processes (`PYTHONPATH`) and holds one.
"""

__all__ = ["VARIABLE", "WITHOUT_REPLACE", "WITH_REPLACE"]

VARIABLE = "TF_LOSSSCALE_INSTALL"
WITHOUT_REPLACE = "install"
WITH_REPLACE = "replace"
