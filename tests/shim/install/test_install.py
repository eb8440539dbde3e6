"""`install()` and `uninstall()`: every legacy path resolves, what exists is left alone."""

import inspect

import pytest
from processes import run_alone, run_program
from support import TF_VERSION as TF

PATHS, REPLACED = "install/programs/paths.py", "install/programs/replaced.py"


def without_kept(states, when):
    """The paths that can be taken away again (see the docstring of `uninstall`)."""
    return {path: state for path, state in states[when].items() if path not in states["kept"]}


def expected(original):
    """Existing names stay; missing ones are ours, some of them with Keras's module name."""
    return (original,) if original else ("ours", "both")


@pytest.mark.parametrize("when", ["before", "after"])
def test_every_legacy_path_resolves_and_what_exists_is_left_alone(when):
    # Before TensorFlow is imported, which in a fork it is.
    run = run_alone if when == "before" else run_program
    states = run(PATHS, when, "keep")
    originals = without_kept(states, "before" if "before" in states else "after")
    assert "ours" not in {state for pair in originals.values() for state in pair}
    assert len(originals) > 20
    for path, (attribute, imported) in without_kept(states, "during").items():
        assert attribute in expected(originals[path][0]), path
        if path in states["not_a_module"]:  # `tf.compat.v1.keras` is an attribute only
            assert imported is None, path
        else:
            assert imported in expected(originals[path][1]), path
    assert without_kept(states, "after") == originals
    assert not states.get("tensorflow_came_early")
    if when == "after":
        check_imports(states)


def test_replace_installs_ours_over_everything_and_uninstall_restores_it():
    states = run_program(PATHS, "after", "replace")
    for path, (attribute, imported) in states["during"].items():
        assert attribute in ("ours", "both"), path
        if path not in states["not_a_module"]:
            assert imported in ("ours", "both"), path
    assert without_kept(states, "after") == without_kept(states, "before")
    assert "original" in {state for pair in states["before"].values() for state in pair}
    check_imports(states)


def test_what_replaces_a_class_is_listed_in_its_module():
    import tensorflow as tf

    import tf_lossscale

    def listed():
        mixed_precision = tf.keras.mixed_precision
        modules = [mixed_precision, getattr(mixed_precision, "experimental", None)]
        return [dict(inspect.getmembers(module)).get("LossScaleOptimizer") for module in modules]

    before = listed()
    tf_lossscale.install(replace=True)
    try:
        during = listed()
    finally:
        tf_lossscale.uninstall()
    ours = tf_lossscale.keras.mixed_precision
    assert during[1] is ours.experimental.LossScaleOptimizer
    assert during[0] is (before[0] and ours.LossScaleOptimizer)
    assert listed() == before


def test_what_is_not_supplied_is_refused_with_what_is():
    import tensorflow as tf

    import tf_lossscale

    if hasattr(tf, "contrib"):
        tf_lossscale.install()
        assert tf.contrib.layers  # TensorFlow 1.15 has it; nothing of ours is in its way
        tf_lossscale.uninstall()
        return
    tf_lossscale.install()
    try:
        with pytest.raises(AttributeError, match=r"tf\.contrib\.layers.*mixed_precision, tpu"):
            tf.contrib.layers
        with pytest.raises(ImportError, match=r"tf\.contrib\.layers.*mixed_precision, tpu"):
            from tensorflow.contrib import layers  # noqa: F401
        with pytest.raises(ImportError, match=r"tf\.contrib\.slim.*mixed_precision, tpu"):
            import tensorflow.contrib.slim
        assert not hasattr(tf.contrib.mixed_precision, "no_such_name")
    finally:
        tf_lossscale.uninstall()
    assert not hasattr(tf, "contrib")


def test_supplied_namespaces_are_found_star_imported_and_reloaded_and_nothing_lazy_is_loaded():
    name = "tensorflow.contrib.mixed_precision"
    assert run_program("install/programs/finding.py") == {
        "lazy": [],
        "before": name,
        "after": name,
        "star": [
            "ExponentialUpdateLossScaleManager",
            "FixedLossScaleManager",
            "LossScaleManager",
            "LossScaleOptimizer",
        ],
        "reloaded": True,
    }


def check_imports(states):
    """`uninstall` leaves imports as they were."""
    for traces in states["traces"]:
        assert traces["finders are as before"]
        assert not traces["gone"] + traces["changed"] + traces["supplied"]
    # TensorFlow 2.12 imports this module only where it is used; every other has loaded it.
    assert set(states["traces"][0]["new"]) <= {"tensorflow.python.tpu.tpu_replication"}


def test_modules_without_a_public_name_are_supplied_where_tensorflow_lacks_them():
    states = run_program("install/programs/private.py")
    for path, before in states["before"].items():
        if before in ("original", "both"):
            assert states["during"][path] == before, path
        elif path in states["not legacy"]:
            # The API of this Keras, to which install() adds removed names only.
            assert states["during"][path] == before, path
        else:
            assert before.startswith(("No module named", "no ")), (path, before)
            assert states["during"][path] in ("ours", "both"), (path, states["during"][path])
    assert states["after"] == states["before"]
    assert states["attributes_after"] == states["attributes"]
    assert states["exported_after"] == states["exported"]
    assert states["cannot be exported"] == []
    assert states["left"] == []
    # Every path was importable on some TensorFlow: see `_paths.PRIVATE`.
    assert {"original", "both"} & set(states["before"].values())
    supplied = {path for path, found in states["during"].items() if found == "ours"}
    contrib, module, name, keras = states["refused"]
    if "tensorflow.contrib.tpu.python.ops.tpu_ops.cross_replica_sum" in supplied:
        shown = "tensorflow.contrib.mixed_precision.python"
        assert f"does not supply it. Of {shown} it supplies: " in contrib
        assert "loss_scale_manager, loss_scale_optimizer." in contrib
    if "tensorflow.python.keras.mixed_precision.experimental.policy.Policy" in supplied:
        assert "does not supply it" in module
        assert "Policy" in module
        assert "does not supply it" in name
        assert "Policy" in name
    if "keras.src.mixed_precision.LossScaleOptimizer" in supplied:
        assert "Of keras.src.mixed_precision.policy it supplies: Policy" in keras


@pytest.fixture(scope="module")
def installed_before():
    return run_alone(REPLACED, "before")


@pytest.mark.parametrize("when", ["before", "after"])
def test_originals_under_replaced_paths_are_found(when, installed_before):
    found = installed_before if when == "before" else run_program(REPLACED, when)
    assert found["sums"] == 3
    for name in {"final", "experimental"} & set(found):
        packages = set(found[name])
        assert "tf_lossscale" in packages
        # The installed class is a base.
        assert packages & {"keras", "tf_keras", "tensorflow", "tensorflow_core"}, name
    assert "experimental" in found


@pytest.mark.skipif(TF < (2, 4), reason="the final class came with TensorFlow 2.4")
def test_the_final_class_is_ours_where_it_is_first_named_after_training(installed_before):
    ours = "tf_lossscale._keras.final"
    assert installed_before["named late"] == {
        "tf.keras": ours,
        "from tensorflow.keras": ours,
        "tf.compat.v2.keras": ours,
        "instance": True,
    }


def test_a_version_test_takes_the_branch_that_it_took():
    import tensorflow as tf

    import tf_lossscale

    def versions():
        # `tf.keras` has none if it is tf-keras.
        keras = getattr(tf.keras, "__version__", "")
        return tf.__version__, keras, tf.compat.v1.__version__

    before = versions()
    tf_lossscale.install()
    try:
        assert versions() == before
    finally:
        tf_lossscale.uninstall()


@pytest.mark.skipif(TF < (2, 16), reason="is about Keras 3")
def test_other_names_of_keras_2_fail_on_keras_3():
    import tensorflow as tf

    import tf_lossscale

    if not hasattr(tf.keras, "Operation"):
        pytest.skip("tf.keras is Keras 2")
    tf_lossscale.install()
    try:
        with pytest.raises((ImportError, AttributeError)):
            tf.keras.optimizers.legacy.SGD(0.1)
        with pytest.raises((TypeError, ValueError)):
            tf.keras.optimizers.SGD(lr=0.1)
    finally:
        tf_lossscale.uninstall()


@pytest.mark.skipif(TF < (2, 16), reason="Keras 2 has one backend")
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_compile_uses_the_class_of_keras_3_with_another_backend(backend, monkeypatch):
    import tensorflow as tf

    import tf_lossscale

    if not hasattr(tf.keras, "Operation"):
        pytest.skip("tf.keras is Keras 2")
    tf_lossscale.install()
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        monkeypatch.setattr(tf.keras.config, "backend", lambda: backend)
        model.compile("sgd", "mse")
        is_ours = isinstance(model.optimizer, tf_lossscale.keras.mixed_precision.LossScaleOptimizer)
        assert hasattr(model.optimizer, "get_scaled_loss") == (backend == "tensorflow")
        assert is_ours
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
        tf_lossscale.uninstall()
