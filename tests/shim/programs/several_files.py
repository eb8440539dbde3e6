"""Runs one program of several files in this process, as a new interpreter would."""

import contextlib
import importlib
import io
import json
import os
import runpy
import sys
import warnings
from typing import Any, Dict, Iterator

import tensorflow as tf

__all__ = ["execute_files"]


def execute_files(files: Dict[str, str], folder: str) -> Dict[str, Any]:
    """The JSON object that `main.py` prints on its last line, or `{"error": ...}`.

    Args:
      files: the sources, by file name.
      folder: an empty directory for them, which stays: tf.function reads sources late.
    """
    for name, source in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(source)
    modules = [name[: -len(".py")] for name in files]
    out = io.StringIO()
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    try:
        with _float32(), warnings.catch_warnings(), contextlib.redirect_stdout(out):
            warnings.simplefilter("ignore")
            try:
                runpy.run_path(os.path.join(folder, "main.py"), run_name="__main__")
            except (Exception, SystemExit) as error:
                return {"error": f"{type(error).__name__}: {error}"}
    finally:
        sys.path.remove(folder)
        for name in modules:
            sys.modules.pop(name, None)
    result = json.loads(out.getvalue().strip().splitlines()[-1])  # type: Dict[str, Any]
    return result


@contextlib.contextmanager
def _float32() -> Iterator[None]:
    """Sets the policy back that a program sets, and TensorFlow's flag of the graph rewrite."""
    try:
        yield
    finally:
        tf.keras.backend.clear_session()
        modules = [
            getattr(tf.keras.mixed_precision, "experimental", None),
            tf.keras.mixed_precision,
        ]
        for module, name in zip(modules, ("set_policy", "set_global_policy")):
            if hasattr(module, name) and not tf.__version__.startswith("1."):
                getattr(module, name)(None if name == "set_policy" else "float32")
        rewrite = getattr(tf.compat.v1, "mixed_precision", tf.compat.v1.train.experimental)
        getattr(rewrite, "disable_mixed_precision_graph_rewrite", lambda: None)()
