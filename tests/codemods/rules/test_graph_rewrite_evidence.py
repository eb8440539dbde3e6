"""The graph rewrite is called safe only where the source shows an optimizer of `tf.train`."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SAFE, UNSAFE, MANUAL = Safety.SAFE, Safety.UNSAFE, Safety.MANUAL
REWRITE = "tf.train.experimental.enable_mixed_precision_graph_rewrite"
MOVED = "tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite"
HEAD = "import tensorflow as tf\nimport tensorflow_addons as tfa\nfrom model import build\n"

WRAP = "optimizer = {rewrite}(optimizer)\n"
NOT_SAFE = {
    "a parameter": ("def wrap(optimizer):\n    return {rewrite}(optimizer)\n", UNSAFE),
    "a parameter by keyword": (
        "def wrap(optimizer):\n    return {rewrite}(loss_scale=8, opt=optimizer)\n",
        UNSAFE,
    ),
    "a function of another file": ("optimizer = build()\n" + WRAP, UNSAFE),
    "an attribute of something else": ("optimizer = build.optimizer\n" + WRAP, UNSAFE),
    "a class that nothing defines": (
        "class Lamb(build.Base):\n    pass\n\noptimizer = Lamb()\n" + WRAP,
        UNSAFE,
    ),
    "starred arguments": ("optimizer = {rewrite}(*build())\n", UNSAFE),
    "passed on": ("wrapped = build({rewrite})\n", UNSAFE),
    "an element of a table": ("WRAPPERS = {{'amp': {rewrite}}}\n", UNSAFE),
    "a dict that gets other elements": (
        "KINDS = {{'sgd': tf.compat.v1.train.AdamOptimizer}}\n"
        "KINDS['adam'] = build\noptimizer = KINDS[build.name]()\n" + WRAP,
        UNSAFE,
    ),
    "a dict of both": (
        "KINDS = {{'sgd': tf.keras.optimizers.SGD, 'adam': tf.compat.v1.train.AdamOptimizer}}\n"
        "optimizer = KINDS[build.name]()\n" + WRAP,
        MANUAL,
    ),
    "an addon": ("optimizer = tfa.optimizers.LAMB()\n" + WRAP, MANUAL),
    "Keras's": ("optimizer = tf.keras.optimizers.SGD()\n" + WRAP, MANUAL),
    "Keras's by keyword": ("opt = {rewrite}(opt=tf.keras.optimizers.SGD())\n", MANUAL),
    "Keras's from a helper": (
        "def make():\n    return tf.optimizers.Adam()\n\noptimizer = make()\n" + WRAP,
        MANUAL,
    ),
    "Keras's in a class": (
        "class Lamb(tf.keras.optimizers.Optimizer):\n    pass\n\noptimizer = Lamb()\n" + WRAP,
        MANUAL,
    ),
    "a step behind a flag": (
        "def train(optimizer, loss, step):\n"
        "    optimizer = {rewrite}(optimizer)\n"
        "    if step:\n"
        "        return optimizer.minimize(loss, global_step=step)\n",
        UNSAFE,
    ),
    "a step that may not be reached": (
        "def train(optimizer, loss, step):\n"
        "    optimizer = {rewrite}(optimizer)\n"
        "    if step is None:\n"
        "        return optimizer\n"
        "    return optimizer.minimize(loss, global_step=step)\n",
        UNSAFE,
    ),
    "a step of another optimizer": (
        "def train(optimizer, loss, step):\n"
        "    optimizer = {rewrite}(optimizer)\n"
        "    optimizer = build(optimizer)\n"
        "    return optimizer.minimize(loss, global_step=step)\n",
        UNSAFE,
    ),
    "a step that a lambda makes": (
        "def train(optimizer, loss, step):\n"
        "    optimizer = {rewrite}(optimizer)\n"
        "    return lambda: optimizer.minimize(loss, global_step=step)\n",
        UNSAFE,
    ),
    "Keras's minimize": (
        "def train(optimizer, loss, variables):\n"
        "    optimizer = {rewrite}(optimizer)\n"
        "    return optimizer.minimize(loss, variables)\n",
        UNSAFE,
    ),
}

MAKES = {
    "its class": "tf.compat.v1.train.AdamOptimizer()",
    "its class in TensorFlow 1": "tf.train.MomentumOptimizer(0.1, 0.9)",
    "a class of contrib": "tf.contrib.opt.AdamWOptimizer(0.1)",
    "an optimizer around it": "tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer())",
    "either": "tf.train.AdamOptimizer() if build.adam else tf.train.FtrlOptimizer(0.1)",
    "a class of the program": "Lamb(0.1)",
    "a function of the program": "make(0.1)",
    "a table": "{{1: tf.train.AdamOptimizer, 2: tf.train.FtrlOptimizer}}[build.number](0.1)",
}
DEFINITIONS = (
    "class Lamb(tf.train.Optimizer):\n    pass\n\n\n"
    "def make(rate):\n    return tf.train.FtrlOptimizer(rate)\n\n\n"
)
USES = {
    "minimize": "optimizer.minimize(loss, global_step=step)",
    "minimize by position": "optimizer.minimize(loss, tf.train.get_or_create_global_step())",
    "apply_gradients": "optimizer.apply_gradients(pairs, global_step=step)",
    "compute_gradients": "optimizer.compute_gradients(loss)",
}


def outcomes(source: str, **options: object) -> set:
    result = transformed(source, Options(**options))
    return {one.outcome for one in result.findings if "graph_rewrite" in one.symbol}


def check_left(source: str) -> None:
    result = transformed(source, Options())
    after = result.source.decode()
    assert (after.count(REWRITE), after.count(MOVED)) == (source.count(REWRITE), 0)


def check_moved(source: str) -> None:
    result = transformed(source, Options())
    assert outcomes(source) == {SAFE}
    after = result.source.decode()
    assert after.count(MOVED) == source.count(REWRITE) > 0
    assert REWRITE not in after
    again = transformed(after, Options())
    assert again.source == result.source
    assert not again.findings or all(one.outcome is SAFE for one in again.findings)


@pytest.mark.parametrize(("body", "outcome"), NOT_SAFE.values(), ids=NOT_SAFE)
def test_unknown_optimizer_is_not_safe(body, outcome):
    source = HEAD + body.format(rewrite=REWRITE)
    assert outcomes(source) == {outcome}
    check_left(source)
    assert outcomes(source, target=Target.SHIM) == {SAFE}


@pytest.mark.parametrize("made", MAKES.values(), ids=MAKES)
def test_optimizer_made_by_a_v1_class_is_evidence(made):
    made = made.format()
    tail = WRAP.format(rewrite=REWRITE)
    head = HEAD + DEFINITIONS
    check_moved(f"{head}optimizer = {made}\n{tail}")
    # Without the evidence, the outcome falls.
    inner = "    " + tail
    for mutation in (
        f"{head}def wrap(optimizer):\n{inner}    return optimizer\n",
        f"{head}optimizer = build()\nif build.flag:\n    optimizer = {made}\n{tail}",
        f"{head}optimizer = {made}\noptimizer = build(optimizer)\n{tail}",
        f"{head}optimizer = {made}\nfor optimizer in build():\n{inner}",
        f"{head}with build() as optimizer:\n{inner}",
    ):
        assert outcomes(mutation) == {UNSAFE}, mutation
        check_left(mutation)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_use_as_a_v1_optimizer_is_evidence(use):
    head = f"{HEAD}def train(optimizer, loss, pairs, step, fp16):\n"
    wrap = WRAP.format(rewrite=REWRITE)
    check_moved(f"{head}    {wrap}    return {use}\n")
    check_moved(f"{head}    if fp16:\n        {wrap}    with tf.name_scope('x'):\n        {use}\n")
    for mutation in (
        f"{head}    {wrap}    return optimizer\n",
        f"{head}    {wrap}    if fp16:\n        return {use}\n",
        f"{head}    {wrap}    optimizer = build(optimizer)\n    return {use}\n",
        f"{head}    {wrap}    for step in build():\n        {use}\n",
        f"{head}    {use}\n    {wrap}",
        f"{head}    {wrap}    def run():\n        return {use}\n    return run\n",
        f"{head}    {wrap}    return fp16 and {use}\n",
    ):
        assert outcomes(mutation) == {UNSAFE}, mutation
        check_left(mutation)


def test_use_does_not_make_a_keras_optimizer_safe():
    source = (
        f"{HEAD}def train(loss, step):\n    optimizer = tf.keras.optimizers.SGD()\n"
        f"    optimizer = {REWRITE}(optimizer)\n"
        "    return optimizer.minimize(loss, global_step=step)\n"
    )
    assert outcomes(source) == {MANUAL}
    check_left(source)
