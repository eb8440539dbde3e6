"""Runs a program, of one file or several, in a state as fresh as a new interpreter's."""

import contextlib
import importlib
import io
import json
import linecache
import logging
import os
import runpy
import sys
import warnings
from typing import Any, Callable, Dict, Iterator

import tensorflow as tf

MAJOR_MINOR = ".".join(tf.__version__.split(".")[:2])


def execute(source: str, name: str) -> Dict[str, Any]:
    """The JSON object that the program prints on its last line, or `{"error": ...}`.

    Graph-mode programs get a graph of their own, which is current from their first line on as the
    default graph is in TensorFlow 1; the others run eagerly.
    """

    def run():
        with contextlib.ExitStack() as stack:
            if ".Session(" in source or "placeholder(" in source:
                stack.enter_context(tf.compat.v1.Graph().as_default())
            code = compile(source, _filed(source, name), "exec", dont_inherit=True)
            exec(code, {"__name__": "__main__"})

    return _printed(run)


def execute_files(files: Dict[str, str], folder: str) -> Dict[str, Any]:
    """The JSON object that `main.py` prints on its last line, or `{"error": ...}`.

    Args:
      files: the sources, by their paths.
      folder: an empty directory for them, which stays: tf.function reads sources late.
    """
    for name, source in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    try:
        path = os.path.join(folder, "main.py")
        return _printed(lambda: runpy.run_path(path, run_name="__main__"))
    finally:
        sys.path.remove(folder)
        for name in files:
            module = name[: -len(".py")].replace("/", ".")
            sys.modules.pop(module, None)
            sys.modules.pop(module.rpartition(".")[0], None)  # of `pkg.__init__`


def _printed(run: Callable[[], Any]) -> Dict[str, Any]:
    out = io.StringIO()
    with _fresh_state(), warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        try:
            run()
        except (Exception, SystemExit) as error:
            return {"error": f"{type(error).__name__}: {error}"}
    result = json.loads(out.getvalue().strip().splitlines()[-1])  # type: Dict[str, Any]
    return result


def _filed(source: str, name: str) -> str:
    """A file name under which `tf.function` finds the source of the program's functions."""
    path = f"<{name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    return path


@contextlib.contextmanager
def _fresh_state() -> Iterator[None]:
    """Ends with no global policy, no graph rewrite, no Keras session and no log output."""
    loggers = [logging.getLogger("tensorflow"), logging.getLogger("absl")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        tf.compat.v1.train.experimental.disable_mixed_precision_graph_rewrite()
        if not MAJOR_MINOR.startswith("1."):
            final = tf.keras.mixed_precision
            setter = getattr(final, "set_global_policy", None) or final.experimental.set_policy
            setter("float32")
        tf.keras.backend.clear_session()
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
