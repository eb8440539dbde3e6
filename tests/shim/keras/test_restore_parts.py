"""`tfls.checkpoints.restore` of programs with several models and optimizers, and of nested objects.

The oracle is the run that was not interrupted.
"""

import importlib
from typing import Any, Callable, Dict, List

import pytest
import recorded
import tensorflow as tf
from test_restore import (
    KINDS,
    PAIRS,
    assert_the_same_run,
    begun,
    fresh,
    optimizer_of,
    step,
)

import tf_lossscale as tfls
from tf_lossscale._restore.optimizers import ProgramOptimizer

RestoreError = tfls.checkpoints.RestoreError
AFTER_1_15 = pytest.mark.skipif(recorded.TF < (2, 0), reason="1.15 tracks no lists and modules")


def checkpoint_of(first: Any, second: Any, **others: Any) -> Any:
    return tf.train.Checkpoint(
        g=first[0], d=second[0], g_optimizer=first[1], d_optimizer=second[1], **others
    )


def slots_of(optimizer: Any, *models: Any) -> int:
    variables = [variable for model in models for variable in model.trainable_variables]
    return len(ProgramOptimizer(optimizer).slots(variables))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_each_optimizer_is_built_for_its_own_model(written: str, read: str, tmp_path: Any):
    """The next file has the slots where TensorFlow's own `restore` finds them."""
    begin = [begun(written, "sequential") for _ in "gd"]
    resume = [fresh(read, "sequential") for _ in "gd"]
    for number in range(4, 7):
        step(*begin[0], number)
    best = tf.Variable(0.5)  # trainable by default, and trained by no optimizer
    path = checkpoint_of(*begin, best=best).save(str(tmp_path / "c"))
    report = tfls.checkpoints.restore(path, checkpoint_of(*resume, best=tf.Variable(0.0)))
    assert not report.initial
    models = [model for model, _ in resume]
    for model, optimizer in resume:
        assert slots_of(optimizer, *models) == slots_of(optimizer, model) > 0
        trained = ProgramOptimizer(optimizer).trained
        assert trained is None or len(trained) == len(model.trainable_variables)
    path = checkpoint_of(*resume, best=best).save(str(tmp_path / "d"))
    again = [fresh(read, "sequential") for _ in "gd"]
    checkpoint_of(*again, best=best).restore(path)
    for first, second, third in zip(begin, resume, again):
        assert_the_same_run(first, second)
        for number in range(4, 10):
            step(*third, number)
        for left, right in zip(second[0].get_weights(), third[0].get_weights()):
            assert left == pytest.approx(right, rel=1e-4, abs=1e-5)


def apply(optimizer: Any, variables: List[Any]):
    """A step with another gradient for each variable, so that exchanged slots show."""
    optimizer.apply_gradients(
        [(tf.ones_like(own) * number, own) for number, own in enumerate(variables, 1)]
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_two_optimizers_of_one_model_have_their_own_variables(
    written: str, read: str, tmp_path: Any
):
    original, body = begun(written, "sequential")[0], optimizer_of(written)
    head = optimizer_of(written)
    apply(body, original.trainable_variables[:2])
    apply(head, original.trainable_variables[2:])
    path = tf.train.Checkpoint(net=original, body=body, head=head).save(str(tmp_path / "c"))
    resumed, _ = fresh(read, "sequential")
    optimizers = {"body": optimizer_of(read), "head": optimizer_of(read)}
    checkpoint = tf.train.Checkpoint(net=resumed, **optimizers)
    assert not tfls.checkpoints.restore(path, checkpoint).initial
    body, head = (slots_of(optimizer, resumed) for optimizer in optimizers.values())
    assert 0 < body * 2 == head  # 2 and 4 variables


NOT_LEGACY = sorted(set(KINDS) - {"legacy"})
FROM_LEGACY = pytest.mark.skipif(
    "legacy" not in KINDS or not NOT_LEGACY, reason="needs an optimizer with lists beside a legacy"
)


@pytest.mark.parametrize("kind", NOT_LEGACY)
def test_variables_have_the_order_of_the_file(kind: str, tmp_path: Any):
    """That of `apply_gradients`, which need not be the order of the model."""

    def apply_reversed(model: Any, optimizer: Any):
        apply(optimizer, model.trainable_variables[::-1])

    original, optimizer = begun(kind, "sequential")[0], optimizer_of(kind)
    apply_reversed(original, optimizer)
    path = tf.train.Checkpoint(net=original, opt=optimizer).save(str(tmp_path / "c"))
    resumed, resumed_optimizer = fresh(kind, "sequential")[0], optimizer_of(kind)
    checkpoint = tf.train.Checkpoint(net=resumed, opt=resumed_optimizer)
    tfls.checkpoints.restore(path, checkpoint)
    path = checkpoint.save(str(tmp_path / "d"))
    again, again_optimizer = fresh(kind, "sequential")[0], optimizer_of(kind)
    ProgramOptimizer(again_optimizer).build(again.trainable_variables[::-1])
    tf.train.Checkpoint(net=again, opt=again_optimizer).restore(path)
    for model, own in [(original, optimizer), (again, again_optimizer)]:
        apply_reversed(model, own)
    for left, right in zip(original.get_weights(), again.get_weights()):
        assert left == pytest.approx(right, rel=1e-4, abs=1e-5)


def two_models(kind: str) -> Any:
    """Equal ones, of which a `tf.train.Checkpoint` sorts the names."""
    b, a = (fresh(kind, "sequential")[0] for _ in range(2))
    return {"b": b, "a": a}, [*b.trainable_variables, *a.trainable_variables]


def a_model_and_a_layer_of_it(kind: str) -> Any:
    model, _ = fresh(kind, "sequential")
    return {"model": model, "layer": model.layers[-1]}, model.trainable_variables


def variables(kind: str) -> Any:
    """Of other shapes: TensorFlow leaves slots of another shape at 0, and raises nothing."""
    w, v = tf.Variable(tf.ones([2, 3])), tf.Variable(tf.ones([3]))
    return {"w": w, "v": v, "best": tf.Variable(0.5)}, [w, v]


def some_of_a_model(kind: str) -> Any:
    model, _ = fresh(kind, "sequential")
    return {"model": model}, model.trainable_variables[1:]


@FROM_LEGACY
@pytest.mark.parametrize("read", NOT_LEGACY)
@pytest.mark.parametrize(
    ("program", "unknown"),
    [
        (two_models, "in which order opt trains"),
        (a_model_and_a_layer_of_it, "in which order opt trains"),
        (variables, "in which order opt trains"),
        (some_of_a_model, "whether opt trains"),
    ],
)
def test_an_order_that_the_file_lacks_is_not_guessed(
    program: Any, unknown: str, read: str, tmp_path: Any
):
    """Slots of `OptimizerV2` have none. The next file has the order in which `opt` was built."""
    parts, trained = program("legacy")
    optimizer = optimizer_of("legacy")
    apply(optimizer, trained)
    path = tf.train.Checkpoint(opt=optimizer, **parts).save(str(tmp_path / "c"))
    parts, trained = program(read)
    optimizer = optimizer_of(read)
    checkpoint = tf.train.Checkpoint(opt=optimizer, **parts)
    with pytest.raises(RestoreError, match=rf"{unknown} .* Call optimizer.build"):
        tfls.checkpoints.restore(path, checkpoint)
    assert not ProgramOptimizer(optimizer).has_slots
    ProgramOptimizer(optimizer).build(trained)
    assert not tfls.checkpoints.restore(path, checkpoint).initial
    path = checkpoint.save(str(tmp_path / "d"))
    parts, again = program(read)
    other = optimizer_of(read)
    ProgramOptimizer(other).build(again)
    tf.train.Checkpoint(opt=other, **parts).restore(path)
    for own, of_own in [(optimizer, trained), (other, again)]:
        apply(own, of_own)
    for left, right in zip(trained, again):
        assert left.numpy() == pytest.approx(right.numpy(), rel=1e-4, abs=1e-5)


@FROM_LEGACY
@pytest.mark.parametrize("read", NOT_LEGACY)
@pytest.mark.parametrize(("first", "second"), [("Adam", "SGD"), ("SGD", "SGD")])
def test_optimizers_without_slots(read: str, first: str, second: str, tmp_path: Any):
    """Such an optimizer trains the one model that is left, or it is not known what it trains."""
    names = (first, second)
    originals = [begun("legacy", "sequential", name) for name in names]
    path = checkpoint_of(*originals).save(str(tmp_path / "c"))
    resumed = [fresh(read, "sequential", name) for name in names]
    checkpoint = checkpoint_of(*resumed)
    if first == second:
        with pytest.raises(RestoreError, match=r"whether .* trains .* Call optimizer.build"):
            tfls.checkpoints.restore(path, checkpoint)
        for model, optimizer in resumed:
            ProgramOptimizer(optimizer).build(model.trainable_variables)
    tfls.checkpoints.restore(path, checkpoint)
    for original, again in zip(originals, resumed):
        assert_the_same_run(original, again)


class Trainer(tf.Module):  # type: ignore[misc]  # untyped base
    def __init__(self, net: Any, optimizer: Any) -> None:
        super().__init__()
        self.net = net
        self.optimizer = optimizer
        package = type(net).__module__.partition(".")[0]
        keras = tf.keras if package == "tensorflow" else importlib.import_module(package)
        self.activation = keras.layers.ReLU()  # which has no variables


class OwnLossScale(tfls.compat.v1.mixed_precision.LossScale):
    def __init__(self) -> None:
        super().__init__()
        self.scale = self._add_weight("scale", 8.0)

    def __call__(self) -> Any:
        return self.scale

    def update(self, grads: Any) -> Any:
        return tf.no_op(), True

    def get_config(self) -> Dict[str, Any]:
        return {}


def with_scale(net: Any, optimizer: Any) -> Any:
    scale = tfls.compat.v1.mixed_precision.DynamicLossScale(2.0)
    original = tf.compat.v1.train.experimental.DynamicLossScale(2.0)
    others = {"scale": scale, "original": original, "own": OwnLossScale()}
    return tf.train.Checkpoint(net=net, opt=optimizer, **others)


NESTED: Dict[str, Callable[..., Any]] = {
    "module": lambda net, opt: tf.train.Checkpoint(trainer=Trainer(net, opt)),
    "checkpoint": lambda net, opt: tf.train.Checkpoint(
        inner=tf.train.Checkpoint(net=net), opt=opt, step=tf.Variable(0)
    ),
    "list": lambda net, opt: tf.train.Checkpoint(net=net, opts=[opt]),
    "dictionary": lambda net, opt: tf.train.Checkpoint(nets={"a": net}, opts={"a": opt}),
    "model as root": lambda net, opt: tf.train.Checkpoint(root=net, opt=opt),
    "root": lambda net, opt: tf.train.Checkpoint(root=Trainer(net, opt)),
    "loss scale": with_scale,
}


@AFTER_1_15
@pytest.mark.sampled(4)
@pytest.mark.parametrize("nested", sorted(NESTED))
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_nested_objects(written: str, read: str, nested: str, tmp_path: Any):
    if "root" in nested and recorded.TF < (2, 4):
        pytest.skip("a checkpoint has no root")
    original, resumed = begun(written, "sequential"), fresh(read, "sequential")
    saved = NESTED[nested](*original)
    if nested == "loss scale":
        saved.own.scale.assign(4.0)
        for scale in (saved.scale, saved.original):
            scale.update([tf.constant(float("inf"))])
    path = saved.save(str(tmp_path / "c"))
    checkpoint = NESTED[nested](*resumed)
    report = tfls.checkpoints.restore(path, checkpoint)
    assert not report.initial
    assert int(checkpoint.save_counter.numpy()) == 1
    if nested == "loss scale":
        assert float(checkpoint.own.scale.numpy()) == 4.0
        assert float(checkpoint.scale()) == float(checkpoint.original()) == 1.0
    assert_the_same_run(original, resumed)


@AFTER_1_15
def test_a_dictionary_names_paths_and_loss_scales(tmp_path: Any):
    kind = sorted(KINDS)[0]
    original, resumed = begun(kind, "sequential"), fresh(kind, "sequential")
    inner = tf.train.Checkpoint(net=original[0], own=OwnLossScale())
    path = tf.train.Checkpoint(inner=inner, opts=[original[1]]).save(str(tmp_path / "c"))
    models = {"inner/net": resumed[0], "inner/own": OwnLossScale()}
    report = tfls.checkpoints.restore(path, models, {"opts/0": resumed[1]})
    assert not report.initial
    assert_the_same_run(original, resumed)


@AFTER_1_15
def test_an_iterator_is_restored_by_tensorflow(tmp_path: Any):
    def iterator() -> Any:
        return iter(tf.data.Dataset.range(9))

    kind = sorted(KINDS)[0]
    original, resumed = begun(kind, "sequential"), fresh(kind, "sequential")
    saved, again = iterator(), iterator()
    next(saved)
    parts = {"net": original[0], "opt": original[1], "it": saved}
    path = tf.train.Checkpoint(**parts).save(str(tmp_path / "c"))
    checkpoint = tf.train.Checkpoint(net=resumed[0], opt=resumed[1], it=again)
    message = "no dataset iterators or tables. Restore it with a tf.train.Checkpoint"
    with pytest.raises(RestoreError, match=message):
        tfls.checkpoints.restore(path, checkpoint)
    tfls.checkpoints.restore(path, checkpoint, partial=True)
    tf.train.Checkpoint(it=again).restore(path).expect_partial()
    assert int(next(again)) == 1
    assert_the_same_run(original, resumed)
