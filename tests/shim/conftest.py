"""Settings of all tests of the shim: their size, and a quiet TensorFlow.

These tests run in every environment of the matrix, so they parse on Python 3.7 and need nothing but
TensorFlow, pytest and hypothesis.
"""

import gc
import logging
import os
import sys

import processes
import pytest

sys.path += processes.HELPERS

# Before TensorFlow is imported: no GPU, no start-up chatter.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SIZES = ("small", "long")


@pytest.fixture(scope="session")
def size():
    """`small`, or `long` for `make test-long`."""
    value = os.environ.get("TFLS_TEST_SIZE", "small")
    assert value in SIZES, "TFLS_TEST_SIZE must be one of {}".format(", ".join(SIZES))
    return value


@pytest.fixture
def log():
    """The messages of TensorFlow's logger, which do not reach pytest's own fixture."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


FIRST = ("/programs/", "/tf1/test_graph_rewrite.py")


def pytest_collection_modifyitems(items):
    """Puts the tests first that turn on the graph rewrite of the originals.

    The originals of TensorFlow 1.15 to 2.2 refuse it for the rest of the process once any test has
    set a Keras policy (known-differences, E1).
    """

    def rank(item):
        path = item.nodeid.replace(os.sep, "/")
        return next((i for i, part in enumerate(FIRST) if part in path), len(FIRST))

    items.sort(key=rank)


@pytest.fixture(scope="module", autouse=True)
def _frozen():
    """Leaves what is there before a file out of garbage collections.

    `clear_session` of Keras makes a whole one each time, which took a second in long runs.
    """
    gc.collect()
    gc.freeze()
