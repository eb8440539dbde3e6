"""Models saved by the originals load with our class, as far as their formats store its state.

`tests/data/fixtures` holds a small model in every format of every Keras, with what the original had
at the save, what it got back when it loaded its own file, and the two steps that followed the save.
Ours gets back at least what the original got. The originals that are installed prove the test.
"""

import contextlib
import glob
import importlib
import os
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import pytest
import recorded
import small_model
import tensorflow as tf
from recorded_files import FIXTURES, facts, same_names, saved_model

import tf_lossscale as tfls

Recorded = Dict[str, Any]

FOLDERS = {
    "legacy": [
        "2.2.3/keras_experimental.LossScaleOptimizer",
        "2.3.4/keras_experimental.LossScaleOptimizer",
        "2.4.4/keras_experimental.LossScaleOptimizer",
        "2.4.4/keras_final.LossScaleOptimizer",
        "2.11.1/keras_final.LossScaleOptimizer_legacy_inner",
        "2.15.1/keras_final.LossScaleOptimizer_legacy_inner",
        "2.21.0/keras_final.LossScaleOptimizer_legacy_inner",
    ],
    "new": [
        "2.11.1/keras_final.LossScaleOptimizer",
        "2.15.1/keras_final.LossScaleOptimizer",
        "2.21.0/keras_final.LossScaleOptimizer",
    ],
    "keras3": ["2.21.0/keras3.LossScaleOptimizer"],
}
VARIABLES_ALONE = ("dyn_checkpoint", "fix_checkpoint", "dyn_weights_tf")
STATE = ("loss_scale", "good_steps", "iterations")
# The float16 forward pass of different machines and versions rounds differently.
TOLERANCE = 2e-4


def version(folder: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in folder.split("/")[0].split(".")[:2])


def recordings(kind: str, form: str, size: str) -> List[Tuple[str, Recorded]]:
    """The recordings of one format; of models, which hold code, those that are not from later.

    Only the newest recording if the size is `small`.
    """
    found = []
    for folder in FOLDERS[kind]:
        if version(folder) > recorded.TF and form not in VARIABLES_ALONE:
            continue
        for path in sorted(glob.glob(os.path.join(FIXTURES, folder, "model_" + form))):
            found.append((path, facts(path)))
    return found[-1:] if size == "small" else found


def scale_kind(form: str) -> str:
    return "fixed" if form.startswith("fix") else "dynamic"


def model_of(subject: recorded.Subject, form: str) -> Any:
    inner = subject.inner("Adam", learning_rate=0.125)
    if scale_kind(form) == "fixed":
        optimizer = subject.fixed(inner, 8.0)
    else:
        optimizer = subject.dynamic(inner, 64.0, 3)
    model = small_model.build(subject.kind.keras, optimizer)
    assert model.optimizer is optimizer, "Keras wrapped the wrapper"
    return model


def state_of(subject: recorded.Subject, model: Any) -> Recorded:
    state: Recorded = small_model.weights(model)
    state["loss_scale"], state["good_steps"], state["iterations"] = subject.read(model.optimizer)
    return state


def check(state: Recorded, expected: Recorded, keys: Tuple[str, ...], where: str):
    expected = same_names(expected)
    where = f"{where}: {state} instead of {expected}"
    for key in keys:
        assert state[key] == expected[key], where
    for key in ("kernel", "bias"):
        if key in expected:
            np.testing.assert_allclose(
                state[key], expected[key], rtol=0, atol=TOLERANCE, err_msg=where
            )


def go_on(
    subject: recorded.Subject, model: Any, expected: Recorded, keys: Tuple[str, ...], where: str
):
    for step, wanted in zip((5, 6), expected["trace_after_save"]):
        small_model.feed(model, step)
        check(state_of(subject, model), wanted, keys, f"{where}, step {step}")


SUBJECTS = recorded.ours() + [subject for subject in recorded.originals() if recorded.TF >= (2, 3)]
KERAS_2 = [subject for subject in SUBJECTS if subject.kind.name != "keras3"]
KERAS_3 = [subject for subject in SUBJECTS if subject.kind.name == "keras3"]


@pytest.mark.sampled(3)
@pytest.mark.skipif(recorded.TF < (2, 0), reason="1.15 has float16 policies in v2 mode only")
@pytest.mark.parametrize("form", VARIABLES_ALONE)
@pytest.mark.parametrize("subject", KERAS_2, ids=str)
def test_weights_and_checkpoints_hold_everything(subject, form: str, size: str):
    found = recordings(subject.kind.name, form, size)
    assert found
    for path, expected in found:
        if version(os.path.relpath(path, FIXTURES)) < (2, 3):
            continue  # this layout keeps less: `test_recorded_checkpoints` says what
        model = model_of(subject, form)
        prefix = os.path.join(path, expected["prefix"])
        if "checkpoint" in form:
            tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(prefix)
        else:
            model.load_weights(prefix)
        go_on(subject, model, expected, STATE, path)


@contextlib.contextmanager
def registered(subject: recorded.Subject) -> Iterator[None]:
    """Ours is registered under the names in the files; without that, Keras takes its own class."""
    registries = [subject.kind.keras.utils.get_custom_objects()]
    if subject.kind.name != "keras3" and recorded.TF >= (2, 12):
        tf_export = importlib.import_module("tensorflow.python.util.tf_export")
        registries.append(tf_export._NAME_TO_SYMBOL_MAPPING)  # where a file names the module
    before = [dict(registry) for registry in registries]
    if subject.who == "original":
        for registry in registries:
            for name in list(registry):
                if name.rpartition(".")[2].lower().startswith("lossscaleoptimizer"):
                    del registry[name]
    try:
        yield
    finally:
        for registry, earlier in zip(registries, before):
            registry.update(earlier)


def load_model(subject: recorded.Subject, path: str) -> Any:
    # The experimental class too is loaded as the final one, as in TensorFlow 2.4. Nothing is loaded
    # as ours before the program has taken a class of ours.
    tfls.keras.mixed_precision.LossScaleOptimizer
    with registered(subject):
        model = subject.kind.keras.models.load_model(path)
    model.run_eagerly = True
    assert recorded.is_ours(model.optimizer) == (subject.who == "ours")
    return model


def at_least(state: Recorded, original: Recorded, saved: Recorded, where: str) -> Tuple[str, ...]:
    """Checks that each value is what was saved, or else what the original got back.

    Returns the names of those that are as they were saved.
    """
    original, saved = same_names(original), same_names(saved)
    for key in STATE:
        assert state[key] in (original[key], saved[key]), f"{where}: {key} of {state}"
    return tuple(key for key in STATE if state[key] == saved[key])


FORMS = [
    *((subject, form) for subject in KERAS_2 for form in ("dyn_h5", "fix_h5", "dyn_keras")),
    *((subject, "dyn_savedmodel") for subject in KERAS_2),
    *((subject, "h5") for subject in KERAS_3),
    # A `.keras` file of Keras 3 names its class by Keras's own path, whatever `custom_objects` is.
    *((subject, "keras") for subject in KERAS_3 if subject.who != "ours"),
]


@pytest.mark.sampled(3)
@pytest.mark.skipif(recorded.TF < (2, 2), reason="no original this old could save a model")
@pytest.mark.parametrize(("subject", "form"), FORMS, ids=str)
def test_saved_models_load_and_go_on(subject, form: str, size: str, tmp_path: Any):
    in_keras_3 = subject.kind.name == "keras3"
    for path, expected in recordings(subject.kind.name, form, size):
        model = load_model(subject, saved_model(path, tmp_path))
        state = state_of(subject, model)
        saved, original = expected["state_at_save"], expected["state_after_real_load_model"]
        intact = at_least(state, original, saved, path)
        check(state, saved, STATE[:2] if in_keras_3 else (), path)
        if form.endswith("h5") and subject.kind.name == "legacy":
            assert "iterations" in intact, path
        if "iterations" in intact:
            # The slots are there too, or Adam would go elsewhere. The loss scale may have started
            # again, which changes no weight.
            all_of_it = in_keras_3 or intact == STATE
            go_on(subject, model, expected, STATE if all_of_it else ("iterations",), path)


@pytest.mark.skipif(not KERAS_3, reason="there is no Keras 3")
def test_a_keras_3_file_of_the_installed_class_goes_on_with_ours(size: str):
    """It is loaded with that class, and moved as `docs/keras.md` has it."""
    subject = next(
        subject for subject in KERAS_3 if (subject.who, subject.api) == ("ours", "final")
    )
    for path, expected in recordings("keras3", "keras", size):
        model = subject.kind.keras.models.load_model(os.path.join(path, expected["file"]))
        theirs = model.optimizer
        assert not recorded.is_ours(theirs)
        optimizer = subject.cls(
            theirs.inner_optimizer, True, float(theirs.dynamic_scale), theirs.dynamic_growth_steps
        )
        optimizer.dynamic_counter.assign(theirs.step_counter)
        model.compile(optimizer, subject.kind.keras.losses.MeanSquaredError(), run_eagerly=True)
        check(state_of(subject, model), expected["state_at_save"], STATE, path)
        go_on(subject, model, expected, STATE, path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("subject", KERAS_3, ids=str)
def test_keras_3_weights_and_checkpoints_load(subject, size: str):
    for path, expected in recordings("keras3", "weights_h5", size):
        model = model_of(subject, "dyn")
        model.load_weights(os.path.join(path, expected["file"]))
        check(small_model.weights(model), expected["state_at_save"], (), path)
    for path, expected in recordings("keras3", "checkpoint", size):
        model = model_of(subject, "dyn")
        model.optimizer.build(model.trainable_variables)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        checkpoint.restore(os.path.join(path, expected["prefix"])).assert_consumed()
        check(state_of(subject, model), expected["state_at_save"], STATE, path)
        go_on(subject, model, expected, STATE, path)
