"""Files written by our class load into the original of the same Keras, and back into our class.

The original loads them in a separate process that never imports tf_lossscale, as the recipient of a
model would. It must restore the weights and, if its own files contain them, the iterations, the
slots and the loss scale. The same test with its own files proves the test.
"""

import os
from typing import Any, Dict, List

import numpy as np
import processes
import pytest
import recorded
import small_model
import tensorflow as tf

import tf_lossscale as tfls

PROGRAM = "keras/load_with_original.py"
STEPS = 5  # one of them is `small_model.BAD_STEP`
SAVED = {"loss_scale": 32.0, "good_steps": 2, "iterations": 5}
NEW = {"loss_scale": 64.0, "good_steps": 0, "iterations": 0}  # an optimizer that got nothing
TOLERANCE = 2e-4


def forms(subject: recorded.Subject) -> List[str]:
    """The formats in which this Keras saves."""
    found = ["checkpoint"]
    if recorded.TF < (2, 2):
        # Its original has no configuration, and Keras itself cannot trace a float16 model for a
        # SavedModel.
        return [*found, "model.h5"] if subject.who == "ours" else found
    if subject.kind.name != "keras3":
        found.append("saved_model")
    if recorded.has_keras_format(subject.kind):
        found.append("model.keras")
    if (subject.who, subject.kind.name) == ("original", "new") and recorded.TF < (2, 12):
        return found  # that one cannot save itself as .h5
    return [*found, "model.h5"]  # last: in Keras 3 it takes the optimizer out of the next `.keras`


def trained(subject: recorded.Subject) -> Any:
    optimizer = subject.dynamic(subject.inner("Adam", learning_rate=0.125), 64.0, 3)
    model = small_model.build(subject.kind.keras, optimizer)
    for step in range(STEPS):
        small_model.feed(model, step)
    return model


def save(model: Any, folder: str, form: str):
    path = os.path.join(folder, form)
    if form == "checkpoint":
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        checkpoint.save(path)
    elif form == "saved_model":
        model.save(path, save_format="tf", **({"save_traces": False} if TRACES else {}))
    else:
        model.save(path)


TRACES = recorded.TF >= (2, 4)  # the argument that leaves them out came then
OURS = recorded.ours()
ORIGINALS = recorded.originals()


def keras_name(subject: recorded.Subject) -> str:
    """What `load_with_original.py` is to call the subject's Keras."""
    if subject.kind.name == "keras3":
        return "keras"
    return "tf_keras" if recorded.TF >= (2, 16) else "tf.keras"


def has_original(subject: recorded.Subject) -> bool:
    same = [subject.api, "keras3" if subject.kind.name == "keras3" else subject.api]
    return any(original.kind == subject.kind and original.api in same for original in ORIGINALS)


def saved(subject: recorded.Subject) -> Dict[str, Any]:
    """The state at the save; Keras 3's own class does not count skipped steps, nor do old ones."""
    counts = subject.api != "keras3" and (subject.who == "ours" or recorded.TF >= (2, 3))
    return SAVED if counts else dict(SAVED, iterations=4)


def cases(subjects: List[recorded.Subject]) -> List[Any]:
    return [
        pytest.param(subject, form, id=f"{subject}-{form}")
        for subject in subjects
        for form in forms(subject)
    ]


def folder_of(subject: recorded.Subject, root: str) -> str:
    readers = "for_originals" if has_original(subject) else "for_ours"
    return os.path.join(root, readers, f"{subject}-{keras_name(subject)}")


@pytest.fixture(scope="module")
def written(request: Any, tmp_path_factory: Any) -> Dict[str, Any]:
    with recorded.eagerly():
        return write(recorded.chosen(request, "subject"), tmp_path_factory)


def write(subjects: List[recorded.Subject], tmp_path_factory: Any) -> Dict[str, Any]:
    """Each subject's model in every format; its state then and a step later; what theirs made."""
    folder = str(tmp_path_factory.mktemp("written"))
    result: Dict[str, Any] = {"folder": folder, "after": {}, "saved": {}}
    for subject in subjects:
        model = trained(subject)
        os.makedirs(folder_of(subject, folder))
        for form in forms(subject):
            save(model, folder_of(subject, folder), form)
        result["saved"][str(subject)] = small_model.weights(model)
        small_model.feed(model, STEPS)
        result["after"][str(subject)] = small_model.weights(model)
    for_originals = os.path.join(folder, "for_originals")
    os.makedirs(for_originals, exist_ok=True)  # the cases that run may be of ours alone
    result["read"] = processes.run_program(PROGRAM, for_originals, keras=True)
    return result


def close(actual: Dict[str, Any], expected: Dict[str, Any], where: str):
    for key in ("kernel", "bias"):
        np.testing.assert_allclose(
            actual[key], expected[key], rtol=0, atol=TOLERANCE, err_msg=where
        )


def kept_by_original(subject: recorded.Subject, form: str) -> List[str]:
    """What the original gets back of its own files (as `tests/data/fixtures` records)."""
    if form == "checkpoint" or (form, subject.kind.name) == ("model.keras", "keras3"):
        return ["iterations", "loss_scale", "good_steps"]
    if (form, subject.kind.name) == ("model.h5", "legacy"):
        return ["iterations"]
    if (form, subject.kind.name) == ("model.h5", "keras3"):
        return ["loss_scale", "good_steps"]
    if (form, subject.kind.name) == ("model.keras", "new"):
        return ["iterations"]
    return []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("subject", "form"), cases([s for s in OURS + ORIGINALS if has_original(s)])
)
def test_the_original_loads_it(subject, form: str, written: Any):
    if form == "model.h5" and recorded.TF < (2, 2):
        read = written["read"][f"{subject}-{keras_name(subject)}/{form}"]
        assert (
            read == "ValueError: Unknown optimizer: LossScaleOptimizer"
        )  # nor its own: it has none
        return
    file = "checkpoint-1.index" if form == "checkpoint" else form
    read = written["read"][f"{subject}-{keras_name(subject)}/{file}"]
    assert isinstance(read, dict), read
    before = read["before"]
    assert before["type"].startswith("LossScaleOptimizer")
    close(before, written["saved"][str(subject)], "before")
    kept = kept_by_original(subject, form)
    assert {key: before[key] for key in kept} == {key: saved(subject)[key] for key in kept}
    if "iterations" in kept:
        close(read["after"], written["after"][str(subject)], "a step later")


@pytest.mark.skipif(recorded.TF < (2, 2), reason="no original this old could save a model")
@pytest.mark.parametrize(
    "subject", [subject for subject in ORIGINALS if "model.h5" in forms(subject)], ids=str
)
def test_the_original_loses_state_in_an_h5_file(subject, written: Any):
    """The defects K12 (the loss scale), K13 (new-style optimizers) and Q8 (Keras 3)."""
    before = written["read"][f"{subject}-{keras_name(subject)}/model.h5"]["before"]
    lost = set(NEW) - set(kept_by_original(subject, "model.h5"))
    assert lost
    assert {key: before[key] for key in lost} == {key: NEW[key] for key in lost}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("subject", "form"), cases(OURS))
def test_ours_loads_it(subject, form: str, written: Any):
    path = os.path.join(folder_of(subject, written["folder"]), form)
    if form == "checkpoint":
        model = trained(subject)
        small_model.feed(model, STEPS)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        checkpoint.restore(path + "-1").assert_existing_objects_matched()
    else:
        model = subject.kind.keras.models.load_model(path)
        model.run_eagerly = True
    # As in TensorFlow 2.4, a file of the experimental class is loaded as the final one.
    assert isinstance(model.optimizer, tfls.keras.mixed_precision.LossScaleOptimizer)
    close(small_model.weights(model), written["saved"][str(subject)], "before")
    state = dict(zip(("loss_scale", "good_steps", "iterations"), subject.read(model.optimizer)))
    kept = set(kept_by_original(subject, form))
    if form == "model.h5":
        kept.add("iterations")  # our class keeps them even if the original loses them (K13, Q8)
    if form in ("model.h5", "model.keras"):
        lost = set(SAVED) - kept  # K12: neither file has room for the loss scale of Keras 2
        assert {key: state[key] for key in lost} == {key: NEW[key] for key in lost}
    assert {key: state[key] for key in kept} == {key: SAVED[key] for key in kept}
    small_model.feed(model, STEPS)
    if "iterations" in kept:
        close(small_model.weights(model), written["after"][str(subject)], "a step later")
