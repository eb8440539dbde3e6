"""Names and signatures are the originals', as recorded from the wheels."""

import inspect
import json
import os

import pytest
import support

import tf_lossscale as tfls


def attribute(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


def surface():
    with open(os.path.join(support.DATA, "api_surface.json"), encoding="utf-8") as file:
        return json.load(file)


def unannotated(signature):
    """The names, kinds and defaults of a signature: the originals have no annotations."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


RECORDED = [
    (
        definition,
        "contrib.mixed_precision"
        if "contrib" in definition["module"]
        else "compat.v1.mixed_precision",
    )
    for definition in surface()["definitions"].values()
]


@pytest.mark.parametrize(
    ("definition", "space"), RECORDED, ids=[definition["name"] for definition, _ in RECORDED]
)
def test_like_the_recorded_originals(definition, space):
    ours = attribute(tfls, space + "." + definition["name"].replace("_rewrite_v1", "_rewrite"))
    if definition["kind"] != "class":
        assert unannotated(inspect.signature(ours)) == definition["signature_str"]
        return
    for method, facts in definition["methods"].items():
        if method == "__init__" or not method.startswith("_"):
            got = unannotated(inspect.signature(getattr(ours, method)))
            assert got == facts["signature"], method
    for name, facts in definition["properties"].items():
        if "settable" in facts:
            assert isinstance(getattr(ours, name), property), name


def test_every_class_and_function_was_recorded():
    recorded = {definition["name"].replace("_rewrite_v1", "_rewrite") for definition, _ in RECORDED}
    assert recorded == {
        *dir(tfls.contrib.mixed_precision),
        *dir(tfls.compat.v1.mixed_precision),
    } - {"experimental"}
