"""Runs one program of the bundle in a state as fresh as a new interpreter's."""

import contextlib
import io
import json
import linecache
import logging
import warnings
from typing import Any, Dict, Iterator

import tensorflow as tf

__all__ = ["MAJOR_MINOR", "execute"]

MAJOR_MINOR = ".".join(tf.__version__.split(".")[:2])


def execute(source: str, name: str) -> Dict[str, Any]:
    """The JSON object that the program prints on its last line, or `{"error": ...}`.

    Graph-mode programs get a graph of their own, which is current from their first line on as the
    default graph is in TensorFlow 1; the others run eagerly.
    """
    out = io.StringIO()
    with _fresh_state(), warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        with contextlib.ExitStack() as stack:
            if ".Session(" in source or "placeholder(" in source:
                stack.enter_context(tf.compat.v1.Graph().as_default())
            try:
                code = compile(source, _filed(source, name), "exec", dont_inherit=True)
                exec(code, {"__name__": "__main__"})
            except Exception as error:
                return {"error": f"{type(error).__name__}: {error}"}
    return json.loads(out.getvalue().strip().splitlines()[-1])


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
