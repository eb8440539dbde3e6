"""A legacy path in a string is reported if the string is used as a path or run as code."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

HEAD = """\
import argparse, importlib, logging, operator, pydoc, subprocess, sys, warnings
import gin
import tensorflow as tf
from absl import flags
from unittest import mock

parser = argparse.ArgumentParser()
K = "x"
"""
EXPERIMENTAL = "tensorflow.keras.mixed_precision.experimental"
REPORTED = {
    "mock.patch": f"mock.patch('{EXPERIMENTAL}.Policy')",
    "a private module": (
        "mock.patch('tensorflow.python.keras.mixed_precision.experimental.policy.Policy')"
    ),
    "import_module": f"importlib.import_module('{EXPERIMENTAL}')",
    "import_module with more": "importlib.import_module('tensorflow').contrib.mixed_precision",
    "imported under a name": (
        "mp = importlib.import_module('tensorflow.keras')\n"
        "mp.mixed_precision.experimental.set_policy('float32')"
    ),
    "import_module of a package": (
        "mp = importlib.import_module('.keras.mixed_precision.experimental', 'tensorflow')"
    ),
    "import_module of another package": (
        "importlib.import_module('..experimental', 'tensorflow.keras.mixed_precision.policy')"
    ),
    "import_module of a package by keyword": (
        "importlib.import_module('.mixed_precision', package='tensorflow.contrib')"
    ),
    "import_module under another name": (
        "from importlib import import_module as load\nload('tensorflow').contrib.mixed_precision"
    ),
    "import_module that is assigned": (
        "load = importlib.import_module\nload('.mixed_precision', package='tensorflow.contrib')"
    ),
    "__import__": "__import__('tensorflow').keras.mixed_precision.experimental.set_policy(K)",
    "attrgetter": "operator.attrgetter('keras.mixed_precision.experimental.Policy')(tf)",
    "attrgetter of contrib": "operator.attrgetter('contrib.tpu.CrossShardOptimizer')(tf)",
    "eval": "eval('tf.keras.mixed_precision.experimental.Policy(K)')",
    "exec": f'exec("""\nfrom {EXPERIMENTAL} import Policy\nPolicy(K)\n""")',
    "exec of a name": "CODE = 'p = tf.keras.mixed_precision.experimental.Policy(K)'\nexec(CODE)",
    "run later": f"CODE = 'from {EXPERIMENTAL} import Policy'",
    "locate": f"pydoc.locate('{EXPERIMENTAL}.Policy')",
    "locate a loss scale": "pydoc.locate('tensorflow.train.experimental.DynamicLossScale')",
    "an entry point": f"load('{EXPERIMENTAL}:Policy')",
    "getattr": "getattr(tf.keras.mixed_precision, 'experimental').set_policy('float32')",
    "getattr with a default": "getattr(tf.keras.mixed_precision, 'experimental', None)",
    "getattr twice": "getattr(getattr(tf, 'contrib'), 'mixed_precision').LossScaleOptimizer",
    "a flag": f"flags.DEFINE_string('policy', '{EXPERIMENTAL}.Policy', 'The policy.')",
    "a default": f"parser.add_argument('--policy', default='{EXPERIMENTAL}.Policy')",
    "gin": "gin.parse_config('train.policy = @tf.keras.mixed_precision.experimental.Policy')",
    "a table": f"TABLE = {{'policy': '{EXPERIMENTAL}.Policy'}}",
    "sys.modules": f"sys.modules['{EXPERIMENTAL}']",
    "a subprocess": f"subprocess.run([sys.executable, '-c', 'import {EXPERIMENTAL}'])",
}
NOT_REPORTED = {
    "a docstring": f'def f():\n    """{EXPERIMENTAL}.Policy"""',
    "a comment in a string": "'''tf.keras.mixed_precision.experimental.Policy'''",
    "a message": f"logging.info('{EXPERIMENTAL}.Policy')",
    "an error": "raise ValueError('tf.contrib.mixed_precision was removed')",
    "an error that begins with a path": f"raise ValueError('{EXPERIMENTAL}.Policy, that is')",
    "a help text": "parser.add_argument('--p', help='tf.contrib.tpu.CrossShardOptimizer')",
    "the final module": "importlib.import_module('tensorflow.keras.mixed_precision')",
    "the final policy": "mock.patch('tensorflow.keras.mixed_precision.Policy')",
    "a sentence": "TEXT = 'Use tf.contrib.tpu.CrossShardOptimizer there.'",
    "a sentence in parts": "flags.DEFINE_bool('a', 0, 'See ' 'tf.contrib.mixed_precision ' 'too')",
    "another library": "mock.patch('mine.keras.mixed_precision.experimental.Policy')",
    "a file": "open('tf/contrib/mixed_precision.py')",
    "another attribute": "operator.attrgetter('keras.mixed_precision.Policy')(tf)",
    "a value of a setting": "if flags.wrapper == 'LossScaleOptimizer':\n    pass",
    "a key of custom objects": "OBJECTS = {'LossScaleOptimizer': Mine}",
    "a tensor of a program without a loss scale": "graph.get_tensor_by_name('tower/loss_scale:0')",
    "a longer name, and a sentence": (
        "from tensorflow.compat.v1.mixed_precision import LossScale\n"
        "NAMES = ['my_loss_scale:0', 'the tensor loss_scale:0 is fetched']"
    ),
}


def left(source, options):
    result = transformed(HEAD + source + "\n", options)
    again = transformed(result.source.decode(), options)
    found = {
        (finding.line, finding.code)
        for finding in result.findings
        if finding.outcome is Safety.MANUAL
    }
    assert found == {(finding.line, finding.code) for finding in again.findings}
    return found


@pytest.mark.parametrize("source", REPORTED.values(), ids=REPORTED)
def test_reported(source):
    for options in (Options(), Options(keras=3), Options(target=Target.SHIM)):
        assert {code for _, code in left(source, options)} & {"LS902", "LS912", "LS909"}


def test_finding_has_the_path():
    (finding,) = transformed(HEAD + REPORTED["attrgetter of contrib"] + "\n", Options()).findings
    assert finding.message.startswith("this string names contrib.tpu.CrossShardOptimizer, and")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("attrgetter", "with a statement, and use it in place of what the string leads to"),
        (
            "attrgetter of contrib",
            "with a statement, and use it in place of what the string leads to",
        ),
        ("getattr", "write tf_lossscale.keras.mixed_precision.experimental in place of this"),
        (
            "imported under a name",
            "write tf_lossscale.keras.mixed_precision.experimental where it is read",
        ),
    ],
)
def test_what_to_write(name, message):
    findings = transformed(HEAD + REPORTED[name] + "\n", Options()).findings
    assert any(message in finding.message for finding in findings)


@pytest.mark.parametrize(
    "source",
    [
        "getattr(tf.keras.mixed_precision.experimental, 'LossScaleOptimizer')",
        "def f(c=getattr(tf.contrib.mixed_precision, 'LossScaleOptimizer')):\n    return c",
    ],
)
def test_a_module_in_getattr_goes_to_the_shim(source):
    for options in (Options(), Options(keras=3), Options(target=Target.SHIM)):
        assert source.replace("tf.", "tfls.") in transformed(HEAD + source, options).source.decode()
        assert not left(source, options)


@pytest.mark.parametrize("source", NOT_REPORTED.values(), ids=NOT_REPORTED)
def test_not_reported(source):
    for options in (Options(), Options(keras=3), Options(target=Target.SHIM)):
        assert not left(source, options)


@pytest.mark.parametrize(
    "source",
    [
        "mock.patch('tensorflow.keras.mixed_precision.LossScaleOptimizer')",
        "getattr(tf.keras.mixed_precision, 'LossScaleOptimizer')",
    ],
)
def test_final_class_in_a_string_is_reported_where_the_class_moves_to_the_shim(source):
    assert not left(source, Options())
    assert left(source, Options(keras=3))
    assert left(source, Options(keras=None))
    assert left(source, Options(target=Target.SHIM))


CONTRIB = "importlib.import_module('tf_lossscale.contrib.mixed_precision')"
TWINS = "importlib.import_module('tf_lossscale.keras.mixed_precision.experimental')"
STAYING = {
    "a symbol": f"{CONTRIB}.FixedLossScaleManager(3)",
    "a symbol of a module that is bound": f"mp = {CONTRIB}\nmp.FixedLossScaleManager(3)",
    "a symbol of a module that is held": (
        f"class A:\n    def __init__(self):\n        self.mp = {CONTRIB}\n"
        "    def f(self):\n        return self.mp.FixedLossScaleManager(3)"
    ),
    "below the package": "importlib.import_module('tf_lossscale').contrib.tpu.CrossShardOptimizer",
    "__import__": "__import__('tf_lossscale.contrib.tpu').contrib.tpu.CrossShardOptimizer",
    "getattr": (
        "getattr(importlib.import_module('tf_lossscale').contrib, 'tpu').CrossShardOptimizer"
    ),
    "the final class": (
        "importlib.import_module('tf_lossscale.keras.mixed_precision').LossScaleOptimizer"
    ),
}
MOVING = {
    "LossScaleOptimizer": f"{TWINS}.LossScaleOptimizer(K, 'dynamic')",
    "Policy": f"{TWINS}.Policy('float32')",
    "set_policy": f"mp = {TWINS}\nmp.set_policy('float32')",
}


@pytest.mark.parametrize("source", STAYING.values(), ids=STAYING)
def test_what_strings_read_from_the_shim_is_not_reported_where_it_stays(source):
    for options in (Options(), Options(keras=3), Options(target=Target.SHIM)):
        assert not left(source, options)


@pytest.mark.parametrize("name", MOVING)
def test_what_strings_read_from_the_shim_is_reported_where_it_moves(name):
    source = MOVING[name]
    assert not left(source, Options(target=Target.SHIM))
    for options in (Options(), Options(keras=3)):
        findings = transformed(HEAD + source + "\n", options).findings
        assert {finding.code for finding in findings} == {"LS902"}
        module = "tf_lossscale.keras.mixed_precision.experimental"
        line = f"from {module} import {name}"
        assert all(f"import it with `{line}`" in finding.message for finding in findings)
        followed = source.replace(f"{TWINS}.", "").replace("mp.", "")
        followed = f"{line}\n" + followed.replace(f"mp = {TWINS}\n", "")
        assert not left(followed, options)


def test_what_may_also_be_read_from_elsewhere_is_reported():
    source = f"mp = {CONTRIB} if K else load(K)\nmp.FixedLossScaleManager(3)"
    assert left(source, Options(target=Target.SHIM))


@pytest.mark.parametrize("path", ["mixed_precision.DynamicLossScale", "tpu.CrossShardOptimizer"])
@pytest.mark.parametrize("form", ["mock.patch('{0}.{1}')", "mock.patch.object({0}, '{1}')"])
def test_patch_of_a_symbol_in_compat_v1_is_reported_where_the_symbol_moves(form, path):
    module, _, name = path.rpartition(".")
    top = "tf" if "object" in form else "tensorflow"
    source = form.format(f"{top}.compat.v1.{module}", name)
    assert not left(source, Options())
    assert left(source, Options(target=Target.SHIM))
