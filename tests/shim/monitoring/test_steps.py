"""A monitor reports what each step did, in every mode, and changes nothing in the run."""

import os

import pytest
import recorded
import support
import watched
from watched import KERAS_KINDS, TF1_FAMILIES

# XLA compiles functions with optimizers on CPUs from 2.4 on in all environments of the matrix.
XLA = ["xla"] if support.TF_VERSION >= (2, 4) else []
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"


def cases(names, without_xla):
    """Each name in each mode; a step is counted in the monitor, where XLA makes a difference."""
    for name in names:
        for mode in ["eager", "function"] + (XLA if LONG or name != without_xla else []):
            yield name, mode


def check(run, bare):
    """`run` is monitored, `bare` is not."""
    assert run.readings == watched.expected()
    assert run.skips == [row[2] > 0 for row in run.readings]
    assert run.monitored_scales == run.scales
    for each in ("weights", "names", "collections", "random", "scales", "skips"):
        assert getattr(run, each) == getattr(bare, each), each
    assert getattr(run, "keys", None) == getattr(bare, "keys", None)
    assert not [key for key in getattr(run, "keys", []) if not watched.own(key)]


@pytest.mark.parametrize("control_flow_v2", [False, True])
@pytest.mark.parametrize("family", TF1_FAMILIES)
def test_sessions(family, control_flow_v2):
    make = TF1_FAMILIES[family]
    run, bare = (watched.in_session(make, each, control_flow_v2) for each in (True, False))
    check(run, bare)
    assert run.random is not None


@pytest.mark.parametrize(("family", "mode"), cases(TF1_FAMILIES, "contrib"))
def test_tensorflow_1_optimizers_outside_sessions(family, mode):
    make, sparse = TF1_FAMILIES[family], mode == "eager"
    run, bare = (watched.eagerly(make, each, mode, sparse) for each in (True, False))
    check(run, bare)


@pytest.mark.parametrize(("kind", "mode"), cases(KERAS_KINDS, "new"))
def test_keras_optimizers(kind, mode):
    run, bare = (watched.keras_eagerly(KERAS_KINDS[kind], each, mode) for each in (True, False))
    check(run, bare)


@pytest.mark.parametrize("mode", ["eager", "function"])
def test_gradients_that_the_inner_optimizer_transforms(mode):
    """Its finite gradients can have an infinite norm; then no variable is to blame."""
    if recorded.TF < (2, 4):
        pytest.skip("the optimizers of this Keras have no global_clipnorm")
    kind = KERAS_KINDS[sorted(KERAS_KINDS)[0]]
    factors = [(1.0, 1.0, 1.0), (3e38, 3e38, 3e38), (1.0, watched.INF, 1.0)]
    before, watched.FACTORS[:] = list(watched.FACTORS), factors
    try:
        run = watched.keras_eagerly(kind, True, mode, global_clipnorm=1.0)
    finally:
        watched.FACTORS[:] = before
    assert run.skips == [False, True, True]
    assert run.readings == [(1, 0, 0, None), (2, 1, 1, None), (3, 2, 2, "second")]
