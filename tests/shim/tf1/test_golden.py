"""The recorded traces of the originals replay exactly: scale, good and bad steps."""

import numpy as np
import pytest
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1


def check(case, states):
    """`states` holds a tuple for each step: scale, good steps and, for contrib, bad steps."""
    columns = ["loss_scale", "good", "bad"][: len(states[0])]
    for position, column in enumerate(columns):
        wanted = np.array([support.number(value) for value in case[column]], np.float32)
        got = np.array([state[position] for state in states], np.float32)
        np.testing.assert_array_equal(got, wanted, "{} {}".format(case["name"], column))


def replay(session, cases, make):
    """Replays all cases side by side, so that a step of all of them is one run.

    `make` takes a case and a flag and returns the variables and the update.
    """
    flags = tf1.placeholder(tf.bool, [len(cases)])
    made = [make(case, flags[i]) for i, case in enumerate(cases)]
    variables = [state for state, _ in made]
    updates = [update for _, update in made]
    session.run(tf1.global_variables_initializer())
    states = [session.run(variables)]
    for step in range(max(len(case["flags"]) for case in cases)):
        session.run(
            updates,
            {flags: [step < len(c["flags"]) and c["flags"][step] == "1" for c in cases]},
        )
        states.append(session.run(variables))
    for i, case in enumerate(cases):
        check(case, [state[i] for state in states[: len(case["flags"]) + 1]])


@pytest.mark.sampled(2)
def test_contrib_traces(session):
    def make(case, flag):
        manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(
            **support.parameters(case)
        )
        state = (manager.get_loss_scale(), manager._num_good_steps, manager._num_bad_steps)
        return state, manager.update_loss_scale(flag)

    replay(session, support.recorded("contrib"), make)


@pytest.mark.sampled(2)
def test_v1_traces(session):
    def make(case, flag):
        scale = tfls.train.experimental.DynamicLossScale(**support.parameters(case))
        gradient = tf1.where(flag, tf.constant(1.0), tf.constant(float("nan")))
        return (scale._current_loss_scale, scale._num_good_steps), scale.update([gradient])[0]

    replay(session, support.recorded("v1"), make)


def test_v1_traces_in_eager_mode():
    for case in support.recorded("v1_eager"):
        with support.eager():
            scale = tfls.train.experimental.DynamicLossScale(**support.parameters(case))

            def state(scale=scale):
                return scale._current_loss_scale.numpy(), scale._num_good_steps.numpy()

            states = [state()]
            for flag in case["flags"]:
                scale.update([tf.constant(1.0 if flag == "1" else float("nan"))])
                states.append(state())
        check(case, states)
