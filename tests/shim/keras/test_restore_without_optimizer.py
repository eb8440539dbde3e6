"""`tfls.checkpoints.restore` of files without an optimizer says that the optimizer starts again."""

from typing import Any, List, Tuple

import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_restore import FORMS, KINDS, ORIGINALS, begun, fresh, step, weights

import tf_lossscale as tfls
from tf_lossscale._restore.optimizers import ProgramOptimizer

RestoreError = tfls.checkpoints.RestoreError
NO_SLOTS = ["iterations", "loss scale", "good steps"]
KIND = sorted(KINDS)[0]

IN_CHECKPOINTS = pytest.mark.skipif(
    not all(map(recorded.is_trackable, KINDS.values())),
    reason="checkpoints refuse optimizers of Keras 3.0",
)
OF_ALL_FORMS = pytest.mark.parametrize(("written", "read", "form"), FORMS)


def weights_of_a_run(
    kind: str, form: str, folder: Any, model: str = "sequential"
) -> Tuple[Any, str]:
    """A model after some steps, and a file of its weights."""
    original, _ = begun(kind, model)
    if form == "h5":
        path = str(folder / "weights.h5")
        original.save_weights(path)
        return original, path
    return original, tf.train.Checkpoint(model=original).save(str(folder / "c"))


def compiled(kind: str, model: str = "sequential") -> Any:
    resumed, optimizer = fresh(kind, model)
    resumed.compile(optimizer, "mse")
    return resumed


def assert_weights(first: Any, second: Any):
    for left, right in zip(weights(first), weights(second)):
        np.testing.assert_array_equal(left, right)


def initial(report: Any) -> List[str]:
    return [entry.in_program for entry in report.initial]


@pytest.mark.sampled(4)
@OF_ALL_FORMS
def test_the_optimizer_of_a_compiled_model_starts_again(
    written: str, read: str, form: str, tmp_path: Any
):
    original, path = weights_of_a_run(written, form, tmp_path)
    resumed = compiled(read)
    before = weights(resumed)
    with pytest.raises(RestoreError, match="nothing was restored: the file has no opt") as caught:
        tfls.checkpoints.restore(path, resumed)
    assert "the model's LossScaleOptimizer(Adam) would start again. Pass partial=True to" in str(
        caught.value
    )
    for left, right in zip(before, weights(resumed)):
        np.testing.assert_array_equal(left, right)
    report = tfls.checkpoints.restore(path, resumed, partial=True)
    assert_weights(original, resumed)
    assert initial(report) == NO_SLOTS
    assert not report.unused
    assert "no optimizer, so the model's LossScaleOptimizer(Adam) starts again" in str(report)
    assert "3 variables keep their initial value" in str(report)
    assert not ProgramOptimizer(resumed.optimizer).has_slots


@pytest.mark.sampled(4)
@OF_ALL_FORMS
def test_an_optimizer_that_is_passed_starts_again(
    written: str, read: str, form: str, tmp_path: Any
):
    """The error names what also leads to a restore of the model, which does so."""
    original, path = weights_of_a_run(written, form, tmp_path)
    resumed, optimizer = fresh(read, "sequential")
    with pytest.raises(RestoreError, match="Leave out optimizer=, or pass partial=True"):
        tfls.checkpoints.restore(path, resumed, optimizer)
    report = tfls.checkpoints.restore(path, resumed, optimizer, partial=True)
    assert_weights(original, resumed)
    assert initial(report) == NO_SLOTS
    assert "the file has no optimizer, so LossScaleOptimizer(Adam) starts again" in str(report)
    report = tfls.checkpoints.restore(path, resumed)
    assert not report.initial
    assert "no optimizer" not in str(report)


@IN_CHECKPOINTS
@pytest.mark.sampled(4)
@OF_ALL_FORMS
def test_optimizers_of_a_checkpoint_start_again(written: str, read: str, form: str, tmp_path: Any):
    original, path = weights_of_a_run(written, form, tmp_path)
    resumed, optimizer = fresh(read, "sequential")
    checkpoint = tf.train.Checkpoint(model=resumed, mine=optimizer)
    with pytest.raises(RestoreError, match="Leave 'mine' out of the optimizers, or pass partial="):
        tfls.checkpoints.restore(path, checkpoint)
    report = tfls.checkpoints.restore(path, checkpoint, partial=True)
    assert_weights(original, resumed)
    assert initial(report) == NO_SLOTS
    assert "so 'mine' (LossScaleOptimizer(Adam)) starts again" in str(report)


@pytest.mark.parametrize("read", sorted(KINDS))
def test_slots_of_a_built_optimizer_are_counted(read: str, tmp_path: Any):
    _, path = weights_of_a_run(read, "checkpoint", tmp_path)
    resumed, optimizer = fresh(read, "sequential")
    step(resumed, optimizer, 0)
    report = tfls.checkpoints.restore(path, resumed, optimizer, partial=True)
    trained = len(resumed.trainable_variables)
    assert len(report.initial) == 2 * trained + len(NO_SLOTS)
    assert set(NO_SLOTS) <= set(initial(report))


@pytest.mark.parametrize("read", sorted(KINDS))
def test_a_bare_optimizer_has_no_scale(read: str, tmp_path: Any):
    _, path = weights_of_a_run(read, "checkpoint", tmp_path)
    resumed, _ = fresh(read, "sequential")
    resumed.compile(KINDS[read].optimizers.SGD(0.1), "mse")
    with pytest.raises(RestoreError, match="so the model's SGD would start again"):
        tfls.checkpoints.restore(path, resumed)
    report = tfls.checkpoints.restore(path, resumed, partial=True)
    assert initial(report) == ["iterations"]
    assert "so the model's SGD starts again" in str(report)


def test_restoring_before_compile_needs_no_partial(tmp_path: Any):
    """The error recommends it, because `partial=True` also allows weights that are missing."""
    original, path = weights_of_a_run(KIND, "checkpoint", tmp_path)
    resumed, optimizer = fresh(KIND, "sequential")
    assert not tfls.checkpoints.restore(path, resumed).initial
    resumed.compile(optimizer, "mse")
    assert_weights(original, resumed)
    with pytest.raises(RestoreError, match="or restore before compile"):
        tfls.checkpoints.restore(path, resumed)
    with pytest.raises(RestoreError, match="or restore without optimizer= before compile"):
        tfls.checkpoints.restore(path, resumed, resumed.optimizer)


def test_a_wrong_model_is_the_first_error(tmp_path: Any):
    _, path = weights_of_a_run(KIND, "checkpoint", tmp_path, "recurrent")
    with pytest.raises(RestoreError) as caught:
        tfls.checkpoints.restore(path, compiled(KIND, "convolution"))
    assert "no optimizer" not in str(caught.value)


@IN_CHECKPOINTS
def test_an_optimizer_under_another_name_is_not_lost(tmp_path: Any):
    """A name that differs may be the same optimizer, so that `partial=True` does not drop it."""
    original = begun(KIND, "sequential")
    path = tf.train.Checkpoint(model=original[0], opt=original[1]).save(str(tmp_path / "c"))
    resumed, optimizer = fresh(KIND, "sequential")
    checkpoint = tf.train.Checkpoint(model=resumed, optimizer=optimizer)
    for partial in (False, True):
        with pytest.raises(RestoreError, match="has no optimizer 'optimizer'; it has opt"):
            tfls.checkpoints.restore(path, checkpoint, partial=partial)


@IN_CHECKPOINTS
def test_several_compiled_models_start_again(tmp_path: Any):
    """Which optimizer of the file belongs to which model is not guessed."""
    first, second = begun(KIND, "sequential"), begun(KIND, "sequential")
    models = {"a": first[0], "b": second[0]}
    prefix = str(tmp_path / "c")
    without = tf.train.Checkpoint(**models).save(prefix)
    path = tf.train.Checkpoint(opt=first[1], **models).save(prefix)
    resumed = {"a": compiled(KIND), "b": compiled(KIND)}
    with pytest.raises(RestoreError, match="several optimizers, and the file has opt, so the"):
        tfls.checkpoints.restore(path, resumed)
    for saved in (without, path):
        report = tfls.checkpoints.restore(saved, resumed, partial=True)
        assert initial(report) == 2 * NO_SLOTS
        assert "the model's LossScaleOptimizer(Adam) starts again" in str(report)


@pytest.mark.skipif(not ORIGINALS, reason="Keras 3 has no optimizers of `tf.train`")
def test_an_optimizer_of_tf_train_starts_again(tmp_path: Any):
    kind = sorted(ORIGINALS)[0]
    _, path = weights_of_a_run(kind, "checkpoint", tmp_path)
    resumed, _ = fresh(kind, "sequential")
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.1)
    resumed.compile(optimizer, "mse", run_eagerly=True)
    with pytest.raises(RestoreError, match="the model's AdagradOptimizer would start again"):
        tfls.checkpoints.restore(path, resumed)
    report = tfls.checkpoints.restore(path, resumed, partial=True)
    assert "so the model's AdagradOptimizer starts again" in str(report)
    with pytest.raises(RestoreError, match="AdagradOptimizer is not a Keras optimizer"):
        tfls.checkpoints.restore(path, resumed, optimizer, partial=True)


class Named(tf.Module):  # type: ignore[misc]  # untyped base
    """A module whose attribute `optimizer` is a setting."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable([1.0, 2.0])
        self.optimizer = "adam"


def test_an_attribute_that_is_no_optimizer_is_none(tmp_path: Any):
    path = tf.train.Checkpoint(model=Named()).save(str(tmp_path / "c"))
    report = tfls.checkpoints.restore(path, Named())
    assert len(report.restored) == 1
    assert not report.initial


@pytest.mark.skipif("legacy" not in KINDS, reason="only OptimizerV2 creates iterations late")
@pytest.mark.parametrize("read", sorted(KINDS))
def test_slots_without_iterations_are_no_optimizer(read: str, tmp_path: Any):
    original, _ = fresh("legacy", "sequential")
    inner = KINDS["legacy"].optimizers.Adam()
    inner._create_slots(original.trainable_variables)
    path = tf.train.Checkpoint(model=original, optimizer=inner).save(str(tmp_path / "c"))
    resumed, optimizer = fresh(read, "sequential")
    with pytest.raises(RestoreError, match="slots of an optimizer and no iterations, which Keras"):
        tfls.checkpoints.restore(path, resumed, optimizer)
    report = tfls.checkpoints.restore(path, resumed, optimizer, partial=True)
    assert_weights(original, resumed)
    assert initial(report) == NO_SLOTS
    assert "no iterations, which Keras 2 saves once" in str(report)
    assert len(report.unused) == 2 * len(original.trainable_variables)
