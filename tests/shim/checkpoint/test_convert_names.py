"""`tf-lossscale checkpoint convert` between contrib and v1: the real classes restore and continue.

The recorded programs have the loss `sum(v * m)`. A step with an infinite `m` is skipped by both
classes, so the variable and the slots go on as recorded, whichever class it is; the loss scale goes
on by the rule of the class that reads the copy.
"""

import os

import numpy as np
import pytest
import recorded_files
import support
import tensorflow as tf
from recorded_files import CONTRIB_STATE, V1_STATE, prefix_of, save

tf1 = tf.compat.v1
# After the steps with 2, inf, 1, 1, 1, 3, from the state at the save (good steps 1), with a period
# of 3: the loss scale, good steps and, for contrib (a cut after 2 bad steps), bad steps.
V1_STATES = [(96, 2), (48, 0), (48, 1), (48, 2), (96, 0), (96, 1)]
CONTRIB_STATES = [(16, 2, 0), (16, 0, 1), (16, 1, 1), (16, 2, 1), (32, 0, 0), (32, 1, 0)]


LOSS_SCALE = ("current_loss_scale", "loss_scale", "good_steps", "bad_steps")


def restore_and_go_on(session, path, wrap, inner, expected, states, resource):
    step, factor, compared = support.recorded_program(wrap(inner), inner, resource)
    by_name = {variable.op.name: variable for variable in tf1.global_variables()}
    loss_scale = [by_name[name] for name in LOSS_SCALE if name in by_name]
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().restore(session, path)  # fails where a name or a type differs
    check(session, compared, expected["state_at_save"])
    got = session.run(loss_scale)
    at_save = expected["state_at_save"]
    assert (got[0], got[1]) == (at_save["loss_scale"], at_save["good_steps"])
    for number, wanted in enumerate(expected["trace_after_save"]):
        multiplier = float(expected["multipliers_after_save"][number])
        session.run(step, {factor: multiplier})
        check(session, compared, wanted)
        assert tuple(session.run(loss_scale)) == states[number]


def check(session, compared, wanted):
    for key, value in session.run(compared).items():
        # The scales 96 and 16 are different roundings of the same gradient.
        np.testing.assert_allclose(value, wanted[key], rtol=1e-6, atol=1e-7, err_msg=key)


@pytest.mark.parametrize("control_flow", ["v1", "v2"])
@pytest.mark.parametrize("inner", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("who", sorted(support.v1_namespaces()))
def test_contrib_to_v1(who, inner, control_flow, tmp_path, checkpoint):
    source, expected = prefix_of(f"1.15.5/contrib.*/exponential_{inner}_refvars", "saver_prefix")
    before = recorded_files.bytes_of(source)
    path = str(tmp_path / "new" / "model.ckpt-7")
    flow = [] if control_flow == "v1" else ["--control-flow", "v2"]
    status, out, err = checkpoint("convert", source, path, "--to", "v1", *flow)
    assert status == 0, err
    assert "bad_steps (1) is dropped" in out
    assert recorded_files.bytes_of(source) == before

    def wrap(optimizer):
        return support.v1_optimizer(optimizer, 64.0, 3, 2.0, whose=who)[0]

    resource = control_flow == "v2"
    with support.graph(resource) as running:
        restore_and_go_on(
            running, path, wrap, support.optimizer(inner), expected, V1_STATES, resource
        )
    assert tf.train.latest_checkpoint(str(tmp_path / "new")) == path


@pytest.mark.parametrize("inner", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("who", sorted(support.contrib_namespaces()))
def test_v1_to_contrib(who, inner, tmp_path, checkpoint):
    source, expected = prefix_of(f"1.15.5/v1.*/dynamic_{inner}_graph", "saver_prefix")
    path = str(tmp_path / "model")
    status, out, err = checkpoint("convert", source, path, "--to", "contrib")
    assert status == 0, err
    assert "bad_steps (bad steps), which is not in SRC, is set to 0" in out

    def wrap(optimizer):
        return support.contrib_optimizer(optimizer, 64.0, 3, 2, 2, 0.75, whose=who)[0]

    with support.graph() as running:
        restore_and_go_on(
            running, path, wrap, support.optimizer(inner), expected, CONTRIB_STATES, resource=False
        )


def test_there_and_back_again_is_the_same_but_for_the_bad_steps(tmp_path, checkpoint):
    source, _ = prefix_of("1.15.5/contrib.*/exponential_adam_refvars", "saver_prefix")
    assert checkpoint("convert", source, tmp_path / "v1", "--to", "v1")[0] == 0
    assert checkpoint("convert", tmp_path / "v1", tmp_path / "back", "--to", "contrib")[0] == 0
    old, new = map(recorded_files.tensors, (source, tmp_path / "back"))
    assert (old["bad_steps"], new["bad_steps"]) == (1, 0)
    recorded_files.assert_equal(source, tmp_path / "back", but="bad_steps")


def keys_of(path):
    return {name for name, _ in tf.train.list_variables(str(path))}


def test_scopes_and_numbers_are_kept(tmp_path, checkpoint):
    values = {"d/" + name: value for name, value in CONTRIB_STATE.items()}
    values.update({name + "_1": value for name, value in CONTRIB_STATE.items()})
    source = save(tmp_path / "old", values)
    assert checkpoint("convert", source, tmp_path / "new", "--to", "v1")[0] == 0
    assert keys_of(tmp_path / "new") == {
        "d/current_loss_scale",
        "d/good_steps",
        "current_loss_scale_1",
        "good_steps_1",
    }


def test_powers_of_other_conditionals_are_the_users_to_rename(tmp_path, checkpoint):
    source = save(tmp_path / "old", dict(CONTRIB_STATE, **{"cond_4/beta1_power": np.float32(0.5)}))
    status, out, _ = checkpoint("convert", source, tmp_path / "new", "--to", "v1")
    assert status == 0
    assert "cond_4/beta1_power" in out
    assert "cond_4/beta1_power" in keys_of(tmp_path / "new")
    rename = ("--rename", "cond_4/beta1_power=cond_5/beta1_power")
    assert checkpoint("convert", source, tmp_path / "b", "--to", "v1", *rename)[0] == 0
    assert "cond_5/beta1_power" in keys_of(tmp_path / "b")


@pytest.mark.parametrize("conditional", ["", "cond/"])
def test_the_control_flow_is_that_of_the_source_by_default(conditional, tmp_path, checkpoint):
    """The names of control flow v1 contain the conditional in which the powers were created."""
    to_v1 = {"": "", "cond/": "cond_1/"}[conditional]
    name = conditional + "beta1_power"
    source = save(tmp_path / "old", dict(CONTRIB_STATE, **{name: np.float32(0.5)}))
    assert checkpoint("convert", source, tmp_path / "new", "--to", "v1")[0] == 0
    assert to_v1 + "beta1_power" in keys_of(tmp_path / "new")


def test_several_tensors_are_renamed(tmp_path, checkpoint):
    values = dict(CONTRIB_STATE, a=np.float32(1), b=np.float32(2))
    source = save(tmp_path / "old", values)
    renames = ("--rename", "a=c", "--rename", "b=a")
    assert checkpoint("convert", source, tmp_path / "new", "--to", "v1", *renames)[0] == 0
    new = recorded_files.tensors(tmp_path / "new")
    assert (new["c"], new["a"]) == (1, 2)
    assert "b" not in new


@pytest.mark.parametrize(
    ("values", "to", "more", "words"),
    [
        (dict(CONTRIB_STATE, current_loss_scale=np.ones([2])), "v1", [], "two tensors"),
        (dict(V1_STATE, good_steps=np.int64(2**31)), "contrib", [], "cannot represent"),
        (CONTRIB_STATE, "v1", ["--rename", "nothing=x"], "no tensor nothing"),
        (CONTRIB_STATE, "v1", ["--rename", "good_steps=current_loss_scale"], "two tensors"),
        (CONTRIB_STATE, "keras", [], "initial_scale=8.0"),
        (CONTRIB_STATE, "keras3", [], "step_counter.assign(2)"),
        (V1_STATE, "keras", [], "dynamic_counter.assign(2)"),
        (dict(V1_STATE, **{"SGD/iter": np.int64(1)}), "v1", [], "initial_loss_scale=8.0"),
    ],
)
def test_what_is_refused(values, to, more, words, tmp_path, refused):
    source = save(tmp_path / "old", values)
    before = sorted(os.listdir(str(tmp_path)))
    refused(("convert", source, tmp_path / "new", "--to", to, *more), words)
    assert sorted(os.listdir(str(tmp_path))) == before


def test_a_file_without_state_has_nothing_to_convert(tmp_path, checkpoint):
    source = save(tmp_path / "old", {"v": np.float32(1)})
    status, _, err = checkpoint("convert", source, tmp_path / "new", "--to", "v1")
    assert status == 1
    assert "no loss-scale state" in err
    assert not (tmp_path / "new.index").exists()


def test_what_is_in_place_already_is_copied(tmp_path, checkpoint):
    source = save(tmp_path / "old", V1_STATE)
    status, out, _ = checkpoint("convert", source, tmp_path / "new", "--to", "v1")
    assert status == 0
    assert "unchanged" in out
    assert keys_of(tmp_path / "new") == set(V1_STATE)
