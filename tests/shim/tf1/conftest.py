"""Fixtures that run a test with the original and with our class."""

import pytest
import support


@pytest.fixture(params=sorted(support.v1_namespaces()))
def v1(request):
    """`tf.compat.v1.train.experimental`, the original and ours."""
    return support.v1_namespaces()[request.param]


@pytest.fixture(params=sorted(support.contrib_namespaces()))
def contrib(request):
    """`tf.contrib.mixed_precision`, ours and, on TensorFlow 1.15, the original."""
    return support.contrib_namespaces()[request.param]


@pytest.fixture(params=[False, True], ids=["control_flow_v1", "control_flow_v2"])
def session(request):
    """A Session on a new graph, with both kinds of control flow."""
    with support.graph(request.param) as session:
        yield session
