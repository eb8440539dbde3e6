"""What `restore` of `tf.train.Checkpoint` returns answers on Keras 3 as on Keras 2.

The oracle is tf_keras's own class, which reads the file that it wrote.
"""

import gc
import os
from typing import Any, Callable, Dict, List, NamedTuple

import pytest
import tensorflow as tf
from test_keras2_checkpoints import (
    IS_TRACKABLE,
    ORIGINALS,
    WITH_TF_KERAS,
    Program,
    on_keras_3,
    variables,
    written,
)

pytestmark = [
    pytest.mark.skipif(not IS_TRACKABLE, reason="needs checkpoints of Keras 3.1 and later"),
    WITH_TF_KERAS,
]


class Parts(NamedTuple):
    """The objects of a program: its optimizer, and the variables that this trains."""

    optimizer: Any
    trained: List[Any]


CHECKPOINTS: Dict[str, Callable[[Parts], Dict[str, Any]]] = {
    "the same objects": lambda parts: {"opt": parts.optimizer, "v": parts.trained},
    "one variable more": lambda parts: {
        "opt": parts.optimizer,
        "v": parts.trained,
        "epoch": tf.Variable(1.0),
    },
    "one variable less": lambda parts: {"opt": parts.optimizer, "v": parts.trained[:2]},
    "only the optimizer": lambda parts: {"opt": parts.optimizer},
    "only the variables": lambda parts: {"v": parts.trained},
    "the optimizer under another name": lambda parts: {
        "other": parts.optimizer,
        "v": parts.trained,
    },
    "the variables under another name": lambda parts: {"opt": parts.optimizer, "w": parts.trained},
}
METHODS = (
    "assert_nontrivial_match",
    "assert_existing_objects_matched",
    "assert_consumed",
    "expect_partial",
)
MOMENTS = ("before", "built", "never")
"""When the optimizer is built: before the restore, after it, or not at all."""


def of_keras_2(program: Program) -> Parts:
    subject = ORIGINALS[program.kind]
    inner = subject.inner(program.name, learning_rate=0.0625, **program.options)
    return Parts(subject.dynamic(inner, 64.0, 3), variables())


def of_keras_3(program: Program) -> Parts:
    return Parts(on_keras_3(program.name, learning_rate=0.0625, **program.options), variables())


def build(parts: Parts):
    inner = parts.optimizer.inner_optimizer
    if hasattr(inner, "_create_all_weights"):
        inner._create_all_weights(parts.trained)
    else:
        parts.optimizer.build(parts.trained)


def answers(parts: Parts, path: str, checkpoint: str, moment: str) -> Dict[str, str]:
    if moment == "before":
        build(parts)
    status = tf.train.Checkpoint(**CHECKPOINTS[checkpoint](parts)).restore(path)
    if moment == "built":
        build(parts)
    return {method: answer(getattr(status, method)) for method in METHODS}


def answer(method: Callable[[], Any]) -> str:
    try:
        method()
    except AssertionError:
        return "AssertionError"
    return "passes"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("checkpoint", sorted(CHECKPOINTS))
@pytest.mark.parametrize(
    "program",
    [Program(kind, "Adam", {}) for kind in ("legacy", "new")]
    + [Program("legacy", "SGD", {}), Program("legacy", "SGD", {"momentum": 0.5})],
    ids=str,
)
def test_the_status_answers_as_on_keras_2(program: Program, checkpoint: str, tmp_path: Any):
    _, _, path = written(program, tmp_path)
    for moment in MOMENTS:
        expected = answers(of_keras_2(program), path, checkpoint, moment)
        found = answers(of_keras_3(program), path, checkpoint, moment)
        expected.update(on_keras_3_only(program, checkpoint, moment))
        assert found == expected, moment


def on_keras_3_only(program: Program, checkpoint: str, moment: str) -> Dict[str, str]:
    """The answers that differ, as the optimizer of Keras 3 has other children.

    It has the variables that it trains, so those that are not found in the file are noticed. And
    legacy SGD has its hyperparameters in variables, which wait for the first step.
    """
    if checkpoint in ("one variable less", "only the optimizer") and moment != "never":
        return {"assert_existing_objects_matched": "AssertionError"}
    if (str(program), checkpoint, moment) == ("legacy-SGD", "the same objects", "never"):
        return {"assert_consumed": "passes"}
    return {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("partial", [False, True], ids=["", "expect_partial"])
def test_what_is_left_over_is_logged_at_the_end(partial: bool, log: Any, tmp_path: Any):
    """TensorFlow warns when the checkpoint is deleted, unless the program expected it."""
    program = Program("legacy", "Adam", {})
    _, _, path = written(program, tmp_path)
    for made in (of_keras_2, of_keras_3):
        log.clear()
        restore_a_part(made(program), path, partial)
        gc.collect()
        assert any("unrestored values" in str(line) for line in log) == (not partial)


def restore_a_part(parts: Parts, path: str, partial: bool):
    build(parts)
    status = tf.train.Checkpoint(opt=parts.optimizer, v=parts.trained[:2]).restore(path)
    if partial:
        status.expect_partial()


def test_a_file_that_does_not_exist_is_the_same_error(tmp_path: Any):
    program = Program("legacy", "Adam", {})
    for parts in (of_keras_2(program), of_keras_3(program)):
        checkpoint = tf.train.Checkpoint(opt=parts.optimizer, v=parts.trained)
        with pytest.raises(tf.errors.NotFoundError):
            checkpoint.restore(os.path.join(str(tmp_path), "missing"))
