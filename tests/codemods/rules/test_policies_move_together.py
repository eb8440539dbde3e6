"""The experimental policies of a file move together, or all of them stay."""

import itertools

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

EXPERIMENTAL = "tf.keras.mixed_precision.experimental"
IMPORTS = {
    "attributes": ("import tensorflow as tf\n", EXPERIMENTAL + "."),
    "an alias of the module": (
        "from tensorflow.keras.mixed_precision import experimental as mp\n",
        "mp.",
    ),
    "names": ("from tensorflow.keras.mixed_precision.experimental import {names}\n", ""),
}
STAYS = {
    "no scaling": 'policy = {p}Policy("mixed_float16", loss_scale=None)\n',
    "a fixed scale": 'policy = {p}Policy("mixed_float16", loss_scale=128)\n',
    "a scale that is not known": 'policy = {p}Policy("mixed_float16", loss_scale=given)\n',
    "a name that is not known": 'policy = {p}Policy(given, "dynamic")\n',
    "a subclass": "class Mine({p}Policy):\n    pass\n\npolicy = Mine(given)\n",
    "a read of its scale": 'policy = {p}Policy("mixed_float16")\nprint(policy.loss_scale)\n',
    "starred arguments": 'policy = {p}Policy("mixed_float16", given, *given)\n',
}
MOVES = {
    "a name": 'policy = {p}Policy("mixed_float16")\n',
    "dynamic": 'policy = {p}Policy("mixed_float16", loss_scale="dynamic")\n',
    "auto": 'policy = {p}Policy(given, loss_scale="auto")\n',
}
FLOWS = {
    "set": "{p}set_policy(policy)\n",
    "set in a function": "def use(policy):\n    {p}set_policy(policy)\n\nuse(policy)\n",
    "set by name": '{p}set_policy("float32")\n',
    "read": "print({p}global_policy().name)\n",
    "of a layer": "print({p}get_layer_policy(layer).name)\n",
    "another": 'layer = Dense(1, dtype={p}Policy("float32"))\n',
}
NAMES = ("Policy", "get_layer_policy", "global_policy", "set_policy")
CASES = list(itertools.product(IMPORTS, FLOWS))


def program(imports: str, *lines: str) -> str:
    head, prefix = IMPORTS[imports]
    body = "".join(lines)
    names = ", ".join(name for name in NAMES if f"{{p}}{name}" in body)
    return head.format(names=names) + body.format(p=prefix)


@pytest.mark.parametrize(("imports", "flow"), CASES)
def test_policy_that_stays_holds_the_others_back(imports, flow):
    for stays, (first, last) in itertools.product(STAYS.values(), ((1, 0), (0, 1))):
        lines = {first: stays, last: FLOWS[flow]}
        source = program(imports, lines[0], lines[1])
        result = transformed(source, Options())
        assert result.source.decode() == source
        assert {one.outcome for one in result.findings} == {Safety.MANUAL}
        assert not any(one.applied for one in result.findings)
        shim = transformed(source, Options(target=Target.SHIM, unsafe=True))
        assert EXPERIMENTAL not in shim.source.decode().replace("tf_lossscale", "tfls")


REFUSED = {
    **{name: line for name, line in STAYS.items() if "loss_scale=" in line or "given, " in line},
    "dynamic, without a mixed policy": 'policy = {p}Policy("float32", loss_scale="dynamic")\n',
    "a removed name": 'policy = {p}Policy("infer_float32_vars")\n',
}
TAKEN = {
    **MOVES,
    "none, without a mixed policy": 'policy = {p}Policy("mixed_bfloat16", loss_scale=None)\n',
    "auto": 'policy = {p}Policy("float64", "auto")\n',
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize(("imports", "flow"), CASES)
def test_policy_that_the_shim_refuses_is_unsafe(imports, flow, line):
    source = program(imports, line, FLOWS[flow])
    result = transformed(source, Options(target=Target.SHIM))
    assert result.source.decode() == source
    outcomes = {one.outcome for one in result.findings}
    assert Safety.UNSAFE in outcomes <= {Safety.UNSAFE, Safety.MANUAL}


@pytest.mark.parametrize("line", TAKEN.values(), ids=TAKEN)
def test_policy_that_the_shim_takes_is_safe(line):
    source = program("names", line, FLOWS["set"])
    result = transformed(source, Options(target=Target.SHIM))
    assert {one.outcome for one in result.findings} == {Safety.SAFE}
    assert "tensorflow" not in result.source.decode()


@pytest.mark.parametrize(("imports", "flow"), CASES)
def test_policies_that_can_move_do(imports, flow):
    for moves in MOVES.values():
        source = program(imports, moves, FLOWS[flow])
        result = transformed(source, Options())
        after = result.source.decode()
        assert "experimental" not in after
        assert {one.outcome for one in result.findings} == {Safety.SAFE}
        again = transformed(after, Options())
        assert again.source == result.source
        assert not any(one.applied for one in again.findings)
