"""`tf-lossscale checkpoint convert` and the names of Adam's powers of beta, by real programs.

Each test lets one program save, converts its file, and lets another program restore the copy, whose
`Saver` fails where a name differs.
"""

import contextlib
import functools

import numpy as np
import pytest
import support
import tensorflow as tf
from recorded_files import CONTRIB_STATE, save

tf1 = tf.compat.v1


@contextlib.contextmanager
def both_scopes(name):
    with tf1.variable_scope(name), tf1.name_scope("inner"):
        yield


# Functions that return a new scope with the name "train".
SCOPES = {
    "variable_scope": functools.partial(tf1.variable_scope, "train"),
    "name_scope": functools.partial(tf1.name_scope, "train"),
    "both": functools.partial(both_scopes, "train"),
}
BETAS = (0.5, 0.25)  # of the first optimizer of a program, and of the second


def dynamic(optimizer, family, who):
    make = {"contrib": support.contrib_optimizer, "v1": support.v1_optimizer}[family]
    return make(optimizer, whose=who)[0]


def fixed(optimizer, family, who):
    if family == "contrib":
        namespace = support.contrib_namespaces()[who]
        return namespace.LossScaleOptimizer(optimizer, namespace.FixedLossScaleManager(8.0))
    namespace = support.v1_namespaces()[who]
    return namespace.MixedPrecisionLossScaleOptimizer(optimizer, namespace.FixedLossScale(8.0))


def run(path, family, flow, scopes=(), who="ours", wrap=dynamic, restore=False):
    """Saves after a step, or restores; returns the first powers by their names.

    The program has one optimizer outside of scopes, or one in each of `scopes`.
    """
    with support.graph(control_flow_v2=flow == "v2") as session:
        variable = tf1.get_variable("v", initializer=np.float32([1.0, 2.0]))
        loss = tf.reduce_sum(variable * 3.0)
        steps = []
        for beta, scope in zip(BETAS, scopes or [contextlib.nullcontext]):
            with scope():
                adam = tf1.train.AdamOptimizer(0.125, beta1=beta)
                steps.append(wrap(adam, family, who).minimize(loss, var_list=[variable]))
        session.run(tf1.global_variables_initializer())
        if restore:
            tf1.train.Saver().restore(session, path)
        else:
            session.run(steps)
            tf1.train.Saver().save(session, path)
        by_name = {variable.op.name: variable for variable in tf1.global_variables()}
        powers = {name: by_name[name] for name in by_name if "beta1_power" in name}
        return {name: support.number(value) for name, value in session.run(powers).items()}


def whose(family):
    namespaces = {"contrib": support.contrib_namespaces, "v1": support.v1_namespaces}[family]
    return [(family, who) for who in sorted(namespaces())]


CLASSES = whose("contrib") + whose("v1")


@pytest.mark.parametrize("scope", sorted(SCOPES))
@pytest.mark.parametrize("source", ["contrib", "v1"])
@pytest.mark.parametrize(("family", "who"), CLASSES)
def test_control_flow_v2_drops_the_scopes_of_the_program(
    family, who, source, scope, tmp_path, checkpoint
):
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    (name,) = run(old, source, "v1", [SCOPES[scope]])
    assert name.startswith("train/")
    flow = ("--control-flow", "v2")
    status, out, err = checkpoint("convert", old, new, "--to", family, *flow)
    assert status == 0, err
    assert "--rename" not in out
    restored = run(new, family, "v2", [SCOPES[scope]], who, restore=True)
    assert restored == {"beta1_power": BETAS[0] ** 2}


@pytest.mark.parametrize("scope", sorted(SCOPES))
@pytest.mark.parametrize(("family", "who"), CLASSES)
def test_control_flow_v1_keeps_the_scopes_of_the_program(family, who, scope, tmp_path, checkpoint):
    source = {"contrib": "v1", "v1": "contrib"}[family]
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    run(old, source, "v1", [SCOPES[scope]])
    assert checkpoint("convert", old, new, "--to", family)[0] == 0
    restored = run(new, family, "v1", [SCOPES[scope]], who, restore=True)
    assert list(restored.values()) == [BETAS[0] ** 2]


@pytest.mark.parametrize(("family", "who"), CLASSES)
def test_the_way_back_is_noted_as_it_needs_the_scopes(family, who, tmp_path, checkpoint):
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    convert = ("convert", old, new, "--to", family, "--control-flow", "v1", "--force")
    run(old, family, "v2")
    status, out, err = checkpoint(*convert)
    assert (status, "outside of all scopes" in out) == (0, True), err
    run(new, family, "v1", who=who, restore=True)
    run(old, family, "v2", [SCOPES["name_scope"]])
    conditional = {"contrib": "cond", "v1": "cond_1"}[family]
    renames = [
        f"--rename=beta{number}_power=train/{conditional}/beta{number}_power" for number in (1, 2)
    ]
    status, out, err = checkpoint(*convert, *renames)
    assert (status, "note:" in out) == (0, False), err
    run(new, family, "v1", [SCOPES["name_scope"]], who, restore=True)


@pytest.mark.parametrize("wrap", [dynamic, fixed])
@pytest.mark.parametrize(
    "scope", [contextlib.nullcontext, functools.partial(tf1.name_scope, "train/")]
)
def test_two_optimizers_of_one_scope_have_the_order_of_their_conditionals(
    scope, wrap, tmp_path, checkpoint
):
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    before = run(old, "contrib", "v1", [scope, scope], wrap=wrap)
    assert {name.rpartition("/")[2] for name in before} == {"beta1_power"}
    flow = ("--control-flow", "v2")
    status, out, err = checkpoint("convert", old, new, "--to", "contrib", *flow)
    assert (status, "note:" in out) == (0, False), err
    after = run(new, "contrib", "v2", [scope, scope], wrap=wrap, restore=True)
    assert after == {"beta1_power": BETAS[0] ** 2, "beta1_power_1": BETAS[1] ** 2}


def test_two_optimizers_of_other_scopes_are_the_users_to_rename(tmp_path, checkpoint):
    """`G` is the first in the program, and the last in the order of names."""
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    ends = {"G": "", "D": "_1"}
    scopes = [functools.partial(tf1.variable_scope, name) for name in ends]
    run(old, "contrib", "v1", scopes)
    convert = ("convert", old, new, "--to", "contrib", "--control-flow", "v2", "--force")
    status, out, err = checkpoint(*convert)
    assert status == 0, err
    keys = {
        f"{name}/cond/beta{number}_power": f"beta{number}_power{end}"
        for name, end in ends.items()
        for number in (1, 2)
    }
    for key in keys:
        assert f"--rename {key}=NEW" in out
    assert set(keys) <= {name for name, _ in tf.train.list_variables(new)}
    renames = [f"--rename={key}={name}" for key, name in keys.items()]
    status, out, err = checkpoint(*convert, *renames)
    assert (status, "note:" in out) == (0, False), err
    after = run(new, "contrib", "v2", scopes, restore=True)
    assert after == {"beta1_power": BETAS[0] ** 2, "beta1_power_1": BETAS[1] ** 2}


@pytest.mark.parametrize("flow", ["v1", "v2"])
@pytest.mark.parametrize("key", ["beta1_power_1", "train/beta1_power"])
def test_names_that_do_not_depend_on_control_flow_v2_alone(key, flow, tmp_path, checkpoint):
    """Under control flow v1, the powers of a second optimizer are in another conditional."""
    source = save(tmp_path / "old", dict(CONTRIB_STATE, **{key: np.float32(0.5)}))
    convert = ("convert", source, tmp_path / "new", "--to", "v1", "--control-flow", flow)
    status, out, _ = checkpoint(*convert)
    assert (status, f"--rename {key}=NEW" in out) == (0, flow == "v1")
    assert key in {name for name, _ in tf.train.list_variables(str(tmp_path / "new"))}


def test_scopes_inside_the_conditional_stay(tmp_path, checkpoint):
    key = "train/cond_1/cond/Mine/beta1_power"
    source = save(tmp_path / "old", dict(CONTRIB_STATE, **{key: np.float32(0.5)}))
    for flow, name in (("v1", "train/cond_1/cond_1/Mine/"), ("v2", "Mine/")):
        new = str(tmp_path / flow)
        assert checkpoint("convert", source, new, "--to", "v1", "--control-flow", flow)[0] == 0
        assert name + "beta1_power" in {name for name, _ in tf.train.list_variables(new)}


def test_an_optimizer_that_is_not_wrapped_can_have_the_name(tmp_path, refused):
    powers = {"beta1_power": np.float32(0.5), "cond/beta1_power": np.float32(0.25)}
    source = save(tmp_path / "old", dict(CONTRIB_STATE, **powers))
    convert = ("convert", source, tmp_path / "new", "--to", "contrib", "--control-flow", "v2")
    refused(convert, "two tensors would have the key beta1_power")


@pytest.mark.parametrize("scopes", [[], [SCOPES["variable_scope"]]])
@pytest.mark.parametrize("who", sorted(support.contrib_namespaces()))
def test_a_fixed_loss_scale_of_contrib(who, scopes, tmp_path, checkpoint):
    """It has no state, but the names of its program depend on the control flow."""
    old, new, back = (str(tmp_path / name) for name in ("old", "new", "back"))
    run(old, "contrib", "v1", scopes, wrap=fixed)
    status, _, err = checkpoint("convert", old, new, "--to", "contrib")
    assert (status, "pass --control-flow or --rename" in err) == (1, True)
    convert = ("--to", "contrib", "--control-flow")
    status, out, err = checkpoint("convert", old, new, *convert, "v2")
    assert (status, "note:" in out) == (0, False), err
    restored = run(new, "contrib", "v2", scopes, who, fixed, restore=True)
    assert restored == {"beta1_power": BETAS[0] ** 2}
    status, out, err = checkpoint("convert", new, back, *convert, "v1")
    assert (status, "outside of all scopes" in out) == (0, True), err
    if not scopes:
        run(back, "contrib", "v1", who=who, wrap=fixed, restore=True)


@pytest.mark.parametrize("flow", ["v1", "v2"])
@pytest.mark.parametrize("who", sorted(support.v1_namespaces()))
def test_a_fixed_loss_scale_of_v1_is_in_no_conditional(who, flow, tmp_path, checkpoint):
    old, new, back = (str(tmp_path / name) for name in ("old", "new", "back"))
    run(old, "contrib", "v1", [SCOPES["variable_scope"]], wrap=fixed)
    status, out, err = checkpoint("convert", old, new, "--to", "v1", "--control-flow", flow)
    assert (status, "does not show the class" in out) == (0, True), err
    restored = run(new, "v1", flow, [SCOPES["variable_scope"]], who, fixed, restore=True)
    assert restored == {"train/beta1_power": BETAS[0] ** 2}
    status, out, err = checkpoint("convert", new, back, "--to", "contrib", "--control-flow", flow)
    assert status == 0, err
    assert "--rename train/beta1_power=NEW" in out


def test_names_of_a_file_without_a_loss_scale(tmp_path, checkpoint, refused):
    source = save(tmp_path / "old", {"v": np.float32(1), "beta1_power": np.float32(0.5)})
    convert = ("convert", source, tmp_path / "new", "--rename", "v=w", "--to")
    assert checkpoint(*convert, "v1")[0] == 0
    names = {name for name, _ in tf.train.list_variables(str(tmp_path / "new"))}
    assert names == {"w", "beta1_power"}
    refused((*convert, "keras", "--force"), "only apply to tf.train.Saver checkpoints")
