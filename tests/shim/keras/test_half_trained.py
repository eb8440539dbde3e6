"""`checkpoints.restore` continues what older versions saved as the run that was not stopped.

`tests/data/fixtures/half_trained` has files of each version and kind of optimizer, and what the
real class did in the 20 steps after the save: weights, scales and iterations of each step. Files of
Keras 2 go on with Keras 3, and those of our class on Keras 3 with the Keras 2 that is installed.
"""

import functools
import io
import json
import os
import tarfile
from typing import Any, Dict, Iterator, List, NamedTuple

import half_trained as runs
import numpy as np
import pytest
import recorded
import tensorflow as tf
from recorded_files import FIXTURES

import tf_lossscale as tfls

FOLDER = os.path.join(FIXTURES, "half_trained")
KINDS = {kind.name: kind for kind in recorded.kinds()}
TOLERANCE = 1e-5
"""Of `deviation`: the rounding errors of 20 steps, the runs of which are on two TensorFlows."""


@functools.lru_cache(maxsize=None)
def recorded_cases(archive: str) -> Dict[str, Any]:
    """What the real class did, by the name of the case."""
    found: Dict[str, Any] = json.loads(content(archive, "expected.json").decode())["cases"]
    return found


def content(archive: str, name: str) -> bytes:
    with tarfile.open(os.path.join(FOLDER, archive + ".tar.gz")) as opened:
        file = opened.extractfile(name)
        assert file is not None
        return file.read()


ARCHIVES = sorted(name[:-7] for name in os.listdir(FOLDER) if name.endswith(".tar.gz"))


class Resumed(NamedTuple):
    """A recorded run, and the kind of optimizer that it goes on with."""

    archive: str
    case: runs.Case
    kind: str

    @property
    def expected(self) -> Dict[str, Any]:
        found: Dict[str, Any] = recorded_cases(self.archive)[self.case.name]
        return found

    def weights(self) -> Any:
        """The weights at the save, and after each of the next steps."""
        return np.load(io.BytesIO(content(self.archive, self.case.name + ".npy")))

    def iterations(self) -> List[int]:
        """The iterations after each step.

        TensorFlow 2.0 does not count skipped steps, which our class does, as from 2.3 on.
        """
        found: List[int] = self.expected["iterations"]
        if self.archive.startswith("2.0-"):
            skipped = np.isinf([float(factor) for factor in self.expected["losses"]])
            found = list(found + np.cumsum(skipped))
        if self.case.form in runs.WITHOUT_OPTIMIZER:
            return [number - found[0] + 1 for number in found]
        return found

    def unpack(self, folder: Any) -> str:
        """Writes the files of the run to a folder, and returns their path."""
        with tarfile.open(os.path.join(FOLDER, self.archive + ".tar.gz")) as opened:
            wanted = [
                member
                for member in opened.getmembers()
                if member.name.startswith(self.case.name)
                and member.name[len(self.case.name) :][:1] in ("", ".", "/")
            ]
            safely: Dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            opened.extractall(str(folder), members=wanted, **safely)
        return os.path.join(str(folder), self.case.name)

    @property
    def needs_order(self) -> bool:
        """Whether the file lists slots of variables that are all called "Variable"."""
        return self.archive.endswith("-new") and self.case.model == "module"

    def program(self) -> Any:
        """A model and an optimizer with other values than those of the file."""
        keras, optimizers = KINDS[self.kind].keras, KINDS[self.kind].optimizers
        model = runs.built(keras, self.case.model)
        for weight in runs.weights_of(model):
            weight.assign(weight * 0.0)
        is_restored = self.case.form not in runs.WITHOUT_OPTIMIZER
        changed = {"learning_rate": 0.5} if is_restored else {}
        has_scale = is_restored and self.case.form not in runs.WITHOUT_SCALE
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
            runs.inner_optimizer(optimizers, self.case.rule, **changed),
            initial_scale=4.0 * runs.SCALE if has_scale else self.expected["scale"],
            dynamic_growth_steps=runs.PERIOD,
        )
        if self.needs_order:
            optimizer.build(model.trainable_variables)
        return model, optimizer

    def __str__(self) -> str:
        return f"{self.archive}-{self.case.name}-on-{self.kind}"


def all_resumed() -> Iterator[Resumed]:
    """All runs that the installed Keras can go on with."""
    for archive in ARCHIVES:
        is_of_keras_3 = "keras3" in archive
        for name in sorted(recorded_cases(archive)):
            for kind in KINDS:
                run = Resumed(archive, runs.Case(*name.split("-")), kind)
                if is_of_keras_3 != (kind == "keras3") and has_classes(run):
                    yield run


def has_classes(run: Resumed) -> bool:
    """Whether the installed Keras has the layers and the optimizer of a run."""
    kind = KINDS[run.kind]
    needs_attention = run.case.model == "attention"
    has_attention = hasattr(kind.keras.layers, "MultiHeadAttention")
    return hasattr(kind.optimizers, runs.RULES[run.case.rule].name) and (
        has_attention or not needs_attention
    )


def is_another_rule(run: Resumed) -> bool:
    """Whether both classes have one name, and compute something else: Nadam of `OptimizerV2`."""
    return run.case.rule == "nadam" and "legacy" in (run.kind, run.archive.partition("-")[2])


RESUMED = list(all_resumed())
SAME_RULE = [
    run
    for run in RESUMED
    if not is_another_rule(run)
    # New-style Nadam counts its steps in Python; it does not even go on with its own files.
    if not (run.kind == "new" and run.case.rule == "nadam")
]


def of(selected: List[Resumed]) -> Any:
    return pytest.mark.parametrize("run", selected, ids=str)


def positions(model: Any, at_save: Any) -> List[int]:
    """Where the weights of a model are among recorded ones, by their values.

    Each Keras lists the weights of a model in another order. No two of them have the same values.
    """
    found: List[int] = []
    for weight in runs.weights_of(model):
        values = np.ravel(weight.numpy())
        starts = [
            start
            for start in range(len(at_save) - len(values) + 1)
            if np.array_equal(at_save[start : start + len(values)], values)
        ]
        assert len(starts) == 1, f"{weight.name} is not as in the file"
        found += range(starts[0], starts[0] + len(values))
    assert sorted(found) == list(range(len(at_save)))
    return found


def deviation(found: Any, expected: Any) -> float:
    """The largest relative difference; of numbers near 0, of which 0.1 is the measure."""
    return float(np.max(np.abs(found - expected) / (np.abs(expected) + 0.1)))


def go_on(run: Resumed, model: Any, optimizer: Any) -> float:
    """Compares each step with the recorded one; returns the largest deviation of the weights."""
    expected, weights = run.expected, run.weights()
    order = positions(model, weights[0])
    np.testing.assert_allclose(runs.outputs(model), expected["outputs"], rtol=1e-5, atol=1e-6)
    has_scale = run.case.form not in (*runs.WITHOUT_SCALE, *runs.WITHOUT_OPTIMIZER)
    factors = [float(factor) for factor in expected["losses"]]
    iterations = run.iterations()
    largest = 0.0
    for number, step in enumerate(runs.go_on(model, optimizer, factors)):
        assert step.iterations == iterations[number]
        if has_scale:
            assert step.scale == expected["scales"][number]
        largest = max(largest, deviation(step.weights, weights[number + 1][order]))
    return largest


@pytest.mark.sampled(16)
@of([run for run in SAME_RULE if run.kind == "keras3"])
def test_a_run_of_keras_2_goes_on(run: Resumed, tmp_path: Any):
    assert_goes_on(run, tmp_path)


@pytest.mark.sampled(6)
@of([run for run in SAME_RULE if run.kind != "keras3"])
def test_a_run_of_keras_3_goes_on_with_keras_2(run: Resumed, tmp_path: Any):
    assert_goes_on(run, tmp_path)


def assert_goes_on(run: Resumed, tmp_path: Any):
    model, optimizer = run.program()
    without_optimizer = run.case.form in runs.WITHOUT_OPTIMIZER
    given = [model] if without_optimizer else [model, optimizer]
    report = tfls.checkpoints.restore(run.unpack(tmp_path), *given)
    assert not report.unused
    # New-style SGD has slots without a momentum, too, and never reads them.
    if run.case.form not in runs.WITHOUT_SCALE and (run.kind, run.case.rule) != ("new", "sgd"):
        assert not report.initial
    # The variables in an .h5 file have the names of `OptimizerV2` in both kinds.
    may_be_legacy = "legacy" in (run.kind, run.archive[-6:]) or run.case.form == "model.h5"
    assert (may_be_legacy and run.case.rule == "rmsprop") == (
        "adds epsilon to the root of rms" in str(report)
    )
    assert go_on(run, model, optimizer) < TOLERANCE


@of([run for run in SAME_RULE if run.needs_order and run.case.rule != "sgd"][:1])
def test_an_order_that_the_program_does_not_show_is_not_guessed(run: Resumed, tmp_path: Any):
    model, _ = run.program()
    inner = runs.inner_optimizer(KINDS[run.kind].optimizers, run.case.rule)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner)
    with pytest.raises(tfls.checkpoints.RestoreError, match=r"Call optimizer.build\(variables\)"):
        tfls.checkpoints.restore(run.unpack(tmp_path), model, optimizer)
    assert not runs.values_of(model).any()


OF_MODULES = [
    run
    for run in SAME_RULE
    if run.case.model == "module" and run.kind == "keras3"
    if recorded.is_trackable(KINDS[run.kind])
]


@pytest.mark.sampled(4)
@of(OF_MODULES)
def test_tensorflow_itself_restores_modules(run: Resumed, tmp_path: Any):
    """Variables of a `tf.Module` have the same names on both Keras."""
    model, optimizer = run.program()
    path = run.unpack(tmp_path)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    if run.case.form == "manager":
        status = checkpoint.restore(tf.train.latest_checkpoint(path))
    else:
        status = checkpoint.read(path)  # which has no count of saves
    status.assert_existing_objects_matched()
    assert go_on(run, model, optimizer) < TOLERANCE


@of([run for run in RESUMED if is_another_rule(run)][::4])
def test_nadam_of_keras_2_is_another_optimizer(run: Resumed, tmp_path: Any):
    model, optimizer = run.program()
    before = runs.values_of(model)
    with pytest.raises(tfls.checkpoints.RestoreError, match="nothing was restored: the optimizer"):
        tfls.checkpoints.restore(run.unpack(tmp_path), model, optimizer)
    np.testing.assert_array_equal(runs.values_of(model), before)


def test_the_archives_have_each_optimizer_model_and_form():
    for archive in ARCHIVES:
        cases = [runs.Case(*name.split("-")) for name in recorded_cases(archive)]
        has_adamw = "legacy" not in archive and archive != "2.11-new"
        wanted = {name for name in runs.RULES if has_adamw or name != "adamw"}
        assert {case.rule for case in cases} == wanted
        has_attention = archive not in ("2.0-legacy", "2.3-legacy")
        models = {name for name in runs.ALL_MODELS if has_attention or name != "attention"}
        assert {case.model for case in cases} == models


# What is lost shows.

ALWAYS = {"iterations": "iterations", "dynamic_scale": "scale", "step_counter": "scale"}
LOST: Dict[str, Dict[str, str]] = {
    "adam": {"iterations": "weights", "_momentums": "weights", "_velocities": "weights"},
    "amsgrad": {
        "iterations": "weights",
        "_momentums": "weights",
        "_velocities": "weights",
        "_velocity_hats": "weights",
    },
    "adamw": {"iterations": "weights", "_momentums": "weights", "_velocities": "weights"},
    "adamax": {"iterations": "weights", "_m": "weights", "_u": "weights"},
    "nadam": {
        "iterations": "weights",
        "_u_product": "weights",
        "_momentums": "weights",
        "_velocities": "weights",
    },
    "sgd": {},
    "momentum": {"momentums": "weights"},
    "rmsprop": {"_velocities": "weights"},
    "centered": {
        "_velocities": "weights",
        "_momentums": "weights",
        "_average_gradients": "weights",
    },
    "adagrad": {"_accumulators": "weights"},
    "adadelta": {"_accumulated_grads": "weights", "_accumulated_delta_vars": "weights"},
    "ftrl": {"_accumulators": "weights", "_linears": "weights"},
}
"""What shows in the first step after the restore that a part of the state was not restored.

The learning rate shows in each one.
"""


def parts_of(optimizer: Any) -> Dict[str, List[Any]]:
    """The variables of an optimizer of Keras 3, by the names of its attributes."""
    inner = optimizer.inner_optimizer
    names = ("dynamic_scale", "step_counter")
    found = {name: [vars(optimizer)[name]] for name in names}
    found["iterations"] = [inner.iterations]
    for name, value in vars(inner).items():
        variables = list(value) if isinstance(value, (list, tuple)) else [value]
        is_state = name not in ("_variables", "_trainable_variables", "_iterations", "iterations")
        if is_state and variables and all(hasattr(variable, "assign") for variable in variables):
            found[name] = variables
    return found


def what_shows(run: Resumed, model: Any, optimizer: Any) -> str:
    """What of the first step differs from the recorded one by more than rounding."""
    weights, expected = run.weights(), run.expected
    order = positions(model, weights[0])
    step = next(runs.go_on(model, optimizer, [float(expected["losses"][0])]))
    if deviation(step.weights, weights[1][order]) > 10 * TOLERANCE:
        return "weights"
    if step.scale != expected["scales"][0]:
        return "scale"
    return "iterations" if step.iterations != expected["iterations"][0] else "nothing"


def run_of(rule: str) -> Resumed:
    """A run of Keras 2 with a rule, whose file has all of its state."""
    without = (*runs.WITHOUT_OPTIMIZER, *runs.WITHOUT_SCALE)
    return next(
        run
        for run in reversed(SAME_RULE)
        if run.kind == "keras3" and run.case.rule == rule and run.case.form not in without
    )


@pytest.mark.skipif("keras3" not in KINDS, reason="names of Keras 3")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", sorted(LOST))
def test_what_is_lost_shows_in_the_first_step(rule: str, tmp_path: Any):
    run = run_of(rule)
    path = run.unpack(tmp_path)
    model, optimizer = run.program()
    optimizer.build(model.trainable_variables)
    initial = {
        name: [variable.numpy() for variable in variables]
        for name, variables in parts_of(optimizer).items()
    }
    shown = {}
    for name, values in initial.items():
        tfls.checkpoints.restore(path, model, optimizer)
        for variable, value in zip(parts_of(optimizer)[name], values):
            variable.assign(value)
        shown[name] = what_shows(run, model, optimizer)
    assert shown == {**ALWAYS, "_learning_rate": "weights", **LOST[rule]}
