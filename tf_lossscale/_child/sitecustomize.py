"""Installs the legacy paths when a process starts, then gives way to the real `sitecustomize`."""

import importlib.machinery
import importlib.util
import os
import sys

__all__ = ["begin"]


def begin() -> None:
    """Runs once, when Python starts."""
    here = os.path.dirname(os.path.abspath(__file__))
    parent = os.path.dirname(os.path.dirname(here))
    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]

    known = importlib.util.find_spec("tf_lossscale") is not None
    if not known:
        sys.path.append(parent)  # the package may run from a checkout that is on nobody's path
    from tf_lossscale import install
    from tf_lossscale._child import VARIABLE, WITH_REPLACE

    if VARIABLE in os.environ:
        install(replace=os.environ[VARIABLE] == WITH_REPLACE)

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


begin()
