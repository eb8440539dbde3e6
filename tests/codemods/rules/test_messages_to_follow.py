"""What a message says to write, written: nothing is left to do there."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

TARGETS = {
    "shim": Options(target=Target.SHIM),
    "Keras 2": Options(),
    "Keras 3": Options(keras=3),
}
ALL = ("shim", "Keras 2", "Keras 3")
TF = "import tensorflow as tf\nimport tf_lossscale as tfls\n"
MP = "tf.keras.mixed_precision"
TFLS = "tfls.keras.mixed_precision"
OLD = f"{MP}.experimental.LossScaleOptimizer"
MODULE = f"{TFLS}.experimental"
FOLLOWED = {
    "LS302, a member of the loss scale": (
        f"opt = {OLD}(opt, 'dynamic')\nprint(opt.loss_scale.increment_period)\n",
        ("opt.loss_scale.increment_period", "opt._loss_scale.increment_period"),
        "write opt._loss_scale.increment_period, which",
        ALL,
    ),
    "LS304, a loss scale of the final class": (
        f"opt = {MP}.LossScaleOptimizer(opt, loss_scale=8)\n",
        ("loss_scale=8", "dynamic=False, initial_scale=8"),
        "write LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)",
        ("shim",),
    ),
    "LS406, a method of a compiled optimizer": (
        "class Scaled(tf.keras.Model):\n    def train_step(self, data):\n"
        "        return self.optimizer.get_scaled_loss(self.loss_of(data))\n\n",
        ("(data))\n\n", f"(data))\n\n{TFLS}.set_global_policy('mixed_float16')\n"),
        f"set the policy with {TFLS}.set_global_policy",
        ("shim", "Keras 3"),
    ),
    "LS407, a method of an optimizer from elsewhere": (
        "def step(opt, loss):\n    return opt.get_scaled_loss(loss)\n\nstep(made(), 1.0)\n",
        ("step(made()", f"step({TFLS}.LossScaleOptimizer(made())"),
        f"wrap the optimizer where it is made, in {TFLS}.LossScaleOptimizer(optimizer)",
        ("shim", "Keras 3"),
    ),
    "LS408, the learning rate of an inner optimizer": (
        f"opt = {MP}.LossScaleOptimizer(opt)\nopt.inner_optimizer.lr = 0.5\n",
        (".lr = ", ".learning_rate = "),
        "write opt.inner_optimizer.learning_rate = ...",
        ("Keras 3",),
    ),
    "LS601, no policy": (
        f"{MP}.set_global_policy(None)\n",
        ("None", '"float32"'),
        'write "float32"',
        ("Keras 3",),
    ),
    "LS601, a policy that was removed": (
        f"{MP}.experimental.set_policy('infer')\n",
        ("infer", "float32"),
        "use float32, mixed_float16 or mixed_bfloat16",
        ALL,
    ),
    "LS602, a final policy with a loss scale": (
        f"p = {MP}.Policy('mixed_float16', loss_scale=args.scale)\n{MP}.set_global_policy(p)\n",
        (f"{MP}.Policy", f"{MODULE}.Policy"),
        f"write {MODULE}.Policy('mixed_float16', loss_scale=args.scale), and set the policy",
        ALL,
    ),
    "LS602, a final policy with the default": (
        f"{MP}.set_global_policy({MP}.Policy('mixed_float16', loss_scale='dynamic'))\n",
        (", loss_scale='dynamic'", ""),
        "leave the argument out",
        ("shim",),
    ),
    "LS605, as the loss scale of the experimental class": (
        f"opt = {OLD}(opt, {MP}.global_policy().loss_scale)\n",
        (f"{MP}.global_policy().loss_scale", '"dynamic"'),
        'write "dynamic" for the loss scale',
        ALL,
    ),
    "LS605, under a name": (
        f"scale = {MP}.Policy('mixed_float16').loss_scale\nopt = {OLD}(opt, loss_scale=scale)\n",
        (f"{MP}.Policy('mixed_float16').loss_scale", '"dynamic"'),
        'write "dynamic" for the loss scale',
        ALL,
    ),
    "LS605, as an argument of the final class": (
        f"opt = {MP}.LossScaleOptimizer(opt, {MP}.global_policy().loss_scale)\n",
        (f", {MP}.global_policy().loss_scale", ""),
        "leave the argument out",
        ALL,
    ),
    "LS605, read elsewhere": (
        f"opt = {MP}.LossScaleOptimizer(opt)\nprint({MP}.global_policy().loss_scale)\n",
        (f"{MP}.global_policy().loss_scale", "opt.loss_scale"),
        "read the loss_scale of the optimizer where it is made",
        ALL,
    ),
    "LS906, the name of a class": (
        f"opt = {OLD}(opt, 8)\nprint(type(opt).__name__ == 'LossScaleOptimizer')\n",
        ("type(opt).__name__ == 'LossScaleOptimizer'", f"isinstance(opt, {OLD})"),
        "use isinstance",
        ALL,
    ),
    "LS907, gradients past the optimizer": (
        "def train(opt, loss, variables):\n"
        "    opt = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(opt, 8)\n"
        "    pairs = zip(tf.gradients(loss, variables), variables)\n"
        "    return opt.apply_gradients(list(pairs))\n",
        ("zip(tf.gradients(loss, variables), variables)", "opt.compute_gradients(loss, variables)"),
        "use optimizer.compute_gradients(loss, variables)",
        ALL,
    ),
    "LS908, no branch for the new version": (
        f"if hasattr({MP}, 'experimental'):\n    opt = {OLD}(opt, 8)\nelse:\n    pass\n",
        ("pass", f"opt = {TFLS}.LossScaleOptimizer(opt)"),
        f"write {TFLS}.LossScaleOptimizer(optimizer) in the branch",
        ALL,
    ),
    "LS908, a policy": (
        f"if hasattr({MP}, 'experimental'):\n    {MP}.experimental.set_policy('mixed_float16')\n"
        "else:\n    pass\n",
        ("pass", f'{TFLS}.set_global_policy("mixed_float16")'),
        f'write {TFLS}.set_global_policy("mixed_float16") in the branch',
        ALL,
    ),
    "LS909, the dictionary of a module": (
        f"register(vars({MP}.experimental))\n",
        (
            f"vars({MP}.experimental)",
            f"{{name: getattr({MODULE}, name) for name in dir({MODULE})}}",
        ),
        f"write {{name: getattr({MODULE}, name) for name in dir({MODULE})}}",
        ALL,
    ),
    "LS909, a name that is deleted": (
        f"mp = {MP}.experimental\nopt = mp.LossScaleOptimizer(opt, 'dynamic')\ndel mp\n",
        ("del mp\n", ""),
        "remove the `del`, then migrate again",
        ALL,
    ),
    "LS912, a path in a string": (
        f"patch('tensorflow{MP[2:]}.experimental.Policy')\n",
        (f"tensorflow{MP[2:]}.experimental", f"tf_lossscale{MP[2:]}.experimental"),
        f"write tf_lossscale{MP[2:]}.experimental.Policy in its place",
        ALL,
    ),
}
CASES = [(case, target) for case in FOLLOWED for target in FOLLOWED[case][3]]


@pytest.mark.parametrize(("case", "target"), CASES)
def test_what_a_message_says_is_enough(case, target):
    source, (before, after), message, _ = FOLLOWED[case]
    result = transformed(TF + source, TARGETS[target])
    (finding,) = (reported for reported in result.findings if reported.outcome is Safety.MANUAL)
    assert finding.code == case.partition(",")[0]
    assert message in finding.message
    assert before in source
    followed = transformed(TF + source.replace(before, after), TARGETS[target])
    assert not any(reported.outcome is Safety.MANUAL for reported in followed.findings)


NOTHING_LEFT = {
    "a module of several, which are all renamed": "if old:\n    mp = tf.contrib.mixed_precision\n"
    f"else:\n    mp = {MP}.experimental\nopt = mp.LossScaleOptimizer(opt, scale)\n",
    "a function that returns a module": "def mp():\n    return tf.contrib.mixed_precision\n"
    "opt = mp().LossScaleOptimizer(opt, mp().FixedLossScaleManager(8))\n",
    "a method that a plain optimizer is given": f"opt = {OLD}(opt, 8)\ndef fill(other):\n"
    "    if not hasattr(other, 'get_scaled_loss'):\n"
    "        other.get_scaled_loss = lambda loss: loss\n",
    "a module that is imported, and not read": f"import tensorflow{MP[2:]}.experimental\n"
    f"{MP}.experimental.set_policy('mixed_float16')\n",
    "the loss scale of a policy that the program sets": f"{MP}.experimental.set_policy('float32')"
    f"\nprint({MP}.global_policy().loss_scale)\n",
    "an experimental policy that is reset": f"{MP}.experimental.set_policy(None)\n",
    "a test of what the loss scale has": f"opt = {OLD}(opt, 8)\n"
    "if hasattr(opt.loss_scale, 'numpy'):\n    print(opt.loss_scale.numpy())\n",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", NOTHING_LEFT)
def test_what_the_shim_makes_right_is_not_reported(case, target):
    result = transformed(TF + NOTHING_LEFT[case], TARGETS[target])
    assert not any(reported.outcome is Safety.MANUAL for reported in result.findings)
    again = transformed(result.source.decode(), TARGETS[target])
    assert again.source == result.source


def test_no_place_has_two_outcomes_of_one_code():
    sources = [source for source, _, _, _ in FOLLOWED.values()]
    for source in [*sources, *NOTHING_LEFT.values()]:
        for options in TARGETS.values():
            findings = transformed(TF + source, options).findings
            places = [(reported.line, reported.column, reported.code) for reported in findings]
            assert len(places) == len(set(places)), (source, findings)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("module", ["keras.mixed_precision.policy", "keras.src.mixed_precision"])
def test_private_paths_of_the_final_policies_go(module, target):
    source = (
        f"from {module} import Policy, global_policy\n\nprint(Policy('float32'), global_policy)\n"
    )
    result = transformed(source, TARGETS[target])
    assert module not in result.source.decode()
    assert {finding.outcome for finding in result.findings} == {Safety.SAFE}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "write",
    [
        f"{MP}.experimental = Old",
        f"setattr({MP}, 'experimental', Old)",
        f"setattr({MP}.experimental, 'Policy', Old)",
        f"setattr({MP}.experimental, name, Old)",
        "setattr(tf.contrib.mixed_precision, 'FixedLossScaleManager', Old)",
        f"sys.modules['tensorflow{MP[2:]}.experimental'] = Old",
        f"{OLD}.get_scaled_loss = scaled",
        f"del {MP}.experimental",
    ],
)
def test_what_is_written_has_one_finding(write, target):
    result = transformed(f"import sys\n{TF}\n{write}\n", TARGETS[target])
    manual = [finding for finding in result.findings if finding.outcome is Safety.MANUAL]
    is_renamed = write.startswith(OLD)
    assert len(manual) == 1
    assert (write not in result.source.decode()) is is_renamed
