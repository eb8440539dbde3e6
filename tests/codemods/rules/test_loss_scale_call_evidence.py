"""`optimizer.loss_scale()` is rewritten if all values of `optimizer` are known.

Otherwise the program goes to the shim.
"""

import itertools

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SHIM = Options(target=Target.SHIM)
FINAL = Options()
HEAD = """\
import tensorflow as tf
from model import build

LSO = tf.keras.mixed_precision.experimental.LossScaleOptimizer
used = LSO(tf.keras.optimizers.SGD(), 8)
"""
WRAP = "LSO(tf.keras.optimizers.SGD(), 'dynamic')"
REWRITE = "tf.train.experimental.enable_mixed_precision_graph_rewrite(tf.keras.optimizers.SGD(), 8)"
KNOWN = {
    "made here": "opt = {m}\n",
    "on one path": "opt = tf.keras.optimizers.SGD()\nif build.flag:\n    opt = {m}\n",
    "on both paths": "if build.flag:\n    opt = {m}\nelse:\n    opt = {m}\n",
    "or a plain one": "opt = {m} if build.flag else tf.keras.optimizers.Adam()\n",
}
NOT_KNOWN = {
    "of a function": "def make():\n    return {m}\n\n\nopt = make()\n",
    "of a table": "TABLE = {{'a': {m}}}\nopt = TABLE[build.name]\n",
    "of another file": "opt = build()\n",
    "of another file on one path": "opt = build()\nif build.flag:\n    opt = {m}\n",
    "bound again": "opt = {m}\nopt = build(opt)\n",
    "bound again on one path": "opt = {m}\nif build.flag:\n    opt = build(opt)\n",
    "of a with statement": "opt = {m}\nwith build() as opt:\n    pass\n",
    "an argument": "opt = {m}\ndef log(opt):\n    ",
    "of a loop": "made = {m}\nfor opt in build.all():\n    pass\n",
    "an attribute": "made = {m}\nopt = build.optimizer\n",
    "of a configuration": "made = {m}\nopt = tf.keras.optimizers.deserialize(build.config)\n",
    "set by another file": "made = {m}\nopt = None\n",
    "replaced by another file": "made = {m}\nopt = tf.keras.optimizers.SGD()\n",
    "of a function that may return another": (
        "def make():\n    if build.flag:\n        return {m}\n    return build()\n\n\n"
        "opt = make()\n"
    ),
    "of a decorated function": "@build\ndef make():\n    return {m}\n\n\nopt = make().opt\n",
}


def check_rewritten(source: str):
    result = transformed(source, FINAL)
    assert {finding.outcome for finding in result.findings} == {Safety.SAFE}
    after = result.source.decode()
    assert "loss_scale()" not in after
    assert "print(opt.loss_scale)" in after
    again = transformed(after, FINAL)
    assert again.source == result.source
    assert not any(finding.applied or finding.code == "LS302" for finding in again.findings)


def check_renamed(source: str, options: Options):
    """All places go to the shim, which reads the loss scale both ways; no call is edited."""
    result = transformed(source, options)
    after = result.source.decode()
    assert "opt.loss_scale()" in after
    assert "tf.keras.mixed_precision" not in after
    assert not any(finding.is_left for finding in result.findings)
    again = transformed(after, options)
    assert again.source == result.source


CALL = "print(opt.loss_scale())\n"


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_known_optimizer_is_rewritten(known):
    check_rewritten(HEAD + known.format(m=WRAP) + CALL)
    check_rewritten(HEAD + known.format(m=WRAP) + f"def log():\n    {CALL}")
    for made in (WRAP, REWRITE):
        check_renamed(HEAD + known.format(m=made) + CALL, SHIM)


@pytest.mark.parametrize("unknown", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_unknown_optimizer_sends_the_program_to_the_shim(unknown):
    for made, options in itertools.product((WRAP, REWRITE), (FINAL, SHIM)):
        check_renamed(HEAD + unknown.format(m=made) + CALL, options)


NO_OPS = {
    "a class of the program": "class Own:\n    pass\n\n\nopt = Own()\n{call}",
    "another library": "from paddle import amp\n\nopt = amp.Scaler()\n{call}",
    "the inner one": "opt = used.inner_optimizer\n{call}",
}


@pytest.mark.parametrize("body", NO_OPS.values(), ids=NO_OPS)
def test_others_are_not_reported(body):
    source = HEAD + body.format(call="print(opt.loss_scale())\n")
    result = transformed(source, FINAL)
    assert not [finding for finding in result.findings if finding.code == "LS302"]


def test_another_framework_is_not_reported():
    source = "import torch\nfrom helpers import make\n\nopt = make()\nprint(opt.loss_scale())\n"
    assert not transformed(source, FINAL).findings
