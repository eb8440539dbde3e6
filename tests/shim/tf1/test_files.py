"""Files that the real classes wrote are restored, by name and by object; training goes on alike."""

import os

import numpy as np
import pytest
import recorded_files
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1

FILES = [
    path
    for kind in ("contrib.LossScaleOptimizer", "v1.MixedPrecisionLossScaleOptimizer")
    for path in recorded_files.folders(f"*/{kind}/*")
]


def having(key):
    return [path for path in FILES if key in recorded_files.facts(path)]


def make(path):
    """Returns the optimizer that the file was written with, its inner one, and its state."""
    name = os.path.basename(path)
    inner = support.optimizer(name.split("_")[-2])
    if name.startswith("fixed8"):
        return fixed(path, inner)
    if "contrib." in path:
        wrapped, scale = support.contrib_optimizer(inner, 64.0, 3, 2, 2, 0.75)
        counters = wrapped._loss_scale_manager
        state = {"bad_steps": lambda: counters._num_bad_steps}
    else:
        wrapped, scale = support.v1_optimizer(inner, 64.0, 3, 3.0 if "mult3" in name else 2.0)
        counters, state = scale, {}
    return (
        wrapped,
        inner,
        dict(state, loss_scale=scale, good_steps=lambda: counters._num_good_steps),
    )


def fixed(path, inner):
    if "contrib." in path:
        manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8.0)
        wrapped = tfls.contrib.mixed_precision.LossScaleOptimizer(inner, manager)
        return wrapped, inner, {"loss_scale": manager.get_loss_scale}
    wrapped = tfls.train.experimental.MixedPrecisionLossScaleOptimizer(inner, 8)
    return wrapped, inner, {"loss_scale": wrapped._loss_scale}


def compare(got, wanted):
    assert set(got) == set(wanted)
    for key, value in wanted.items():
        value = [support.number(element) for element in np.ravel(value)]
        np.testing.assert_array_equal(
            np.ravel(got[key]).astype(np.float32), np.array(value, np.float32), key
        )


def in_session(session, path, restore):
    facts = recorded_files.facts(path)
    wrapped, inner, state = make(path)
    step, factor, tensors = support.recorded_program(wrapped, inner, facts["resource_variables"])
    for slot in inner.get_slot_names():
        assert wrapped.get_slot(tensors["v"], slot) is tensors["slot_" + slot]
    state = {**tensors, **{key: value() for key, value in state.items()}}
    session.run(tf1.global_variables_initializer())
    restore(facts, wrapped, state["v"], state["global_step"])
    compare(session.run(state), facts["state_at_save"])
    for multiplier, wanted in zip(facts["multipliers_after_save"], facts["trace_after_save"]):
        session.run(step, {factor: support.number(multiplier)})
        compare(session.run(state), wanted)


def needs_v2_names(facts):
    return not any(key.startswith("cond") for key, _ in facts["saver_keys"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", having("saver_prefix"), ids=recorded_files.label)
def test_saver_files_by_name(path):
    """With the control flow of the program that wrote the file, the names are the same."""
    facts = recorded_files.facts(path)
    adam = "adam" in path and "fixed8_adam" not in path
    with support.graph(control_flow_v2=adam and needs_v2_names(facts)) as session:

        def restore(facts, *_):
            saver = tf1.train.Saver()
            keys = {variable.op.name for variable in tf1.global_variables()}
            assert keys == {key for key, _ in facts["saver_keys"]}
            saver.restore(session, os.path.join(path, facts["saver_prefix"]))

        in_session(session, path, restore)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "path",
    [name for name in having("checkpoint_prefix") if name.endswith("_graph")],
    ids=recorded_files.label,
)
def test_checkpoints_by_object_in_a_session(path):
    with support.graph() as session:

        def restore(facts, wrapped, variable, global_step):
            checkpoint = tf1.train.Checkpoint(opt=wrapped, v=variable, global_step=global_step)
            status = checkpoint.restore(os.path.join(path, facts["checkpoint_prefix"]))
            status.assert_consumed().run_restore_ops(session)

        in_session(session, path, restore)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "path",
    [name for name in having("checkpoint_prefix") if name.endswith("_eager")],
    ids=recorded_files.label,
)
def test_checkpoints_by_object_in_eager_mode(path, tmp_path):
    facts = recorded_files.facts(path)
    with support.eager():
        variable = tf1.Variable([0.0, 0.0, 0.0], use_resource=True)
        wrapped, inner, state = make(path)
        checkpoint = tf1.train.Checkpoint(opt=wrapped, v=variable)
        status = checkpoint.restore(os.path.join(path, facts["checkpoint_prefix"]))
        for multiplier, wanted in zip(facts["multipliers_after_save"], facts["trace_after_save"]):
            factor = support.number(multiplier)
            wrapped.minimize(lambda: tf.reduce_sum(variable * factor), var_list=[variable])  # noqa: B023
            got = {key: value().numpy() for key, value in state.items()}
            got["v"] = variable.numpy()
            for slot in inner.get_slot_names():
                got["slot_" + slot] = inner.get_slot(variable, slot).numpy()
            compare(got, wanted)
        status.assert_consumed()  # slots are restored when they are made
        saved = tf.train.list_variables(checkpoint.save(str(tmp_path / "ckpt")))
    assert [list(map(str, pair)) for pair in saved] == [
        list(map(str, pair)) for pair in facts["checkpoint_keys"]
    ]


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ("contrib.LossScaleOptimizer/exponential_adam_resource", "cond/"),
        ("v1.MixedPrecisionLossScaleOptimizer/dynamic_adam_graph", "cond_1/"),
    ],
)
def test_a_name_map_reads_old_files_under_control_flow_v2(kind, prefix):
    """A map of names, where the variables have the names that the original gives them (C10)."""
    path = recorded_files.folders("1.15.5/" + kind)[0]
    with support.graph(control_flow_v2=True) as session:

        def restore(facts, *_):
            names = {v.op.name: v for v in tf1.global_variables()}
            for name in ("beta1_power", "beta2_power"):
                names[prefix + name] = names.pop(name)
            tf1.train.Saver(names).restore(session, os.path.join(path, facts["saver_prefix"]))

        in_session(session, path, restore)
