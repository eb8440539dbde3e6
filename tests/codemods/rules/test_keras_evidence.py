"""Safe needs evidence: each example that is safe falls as soon as its evidence is removed."""

import textwrap
from typing import NamedTuple

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SAFE, UNSAFE, MANUAL = Safety.SAFE, Safety.UNSAFE, Safety.MANUAL
KERAS_2, KERAS_3, SHIM = Options(), Options(keras=3), Options(target=Target.SHIM)
EXPERIMENTAL = "tensorflow.keras.mixed_precision.experimental"
FINAL = "tensorflow.keras.mixed_precision"


def findings(source, options, codes=("LS301", "LS401", "LS405")):
    result = transformed(textwrap.dedent(source).lstrip(), options)
    again = transformed(result.source.decode(), options)
    assert again.source == result.source, "a second run changes it"
    assert not [finding for finding in again.findings if finding.applied]
    return result, [finding for finding in result.findings if finding.code in codes]


def outcomes(source, options, codes=("LS301", "LS401", "LS405")):
    return {finding.outcome for finding in findings(source, options, codes)[1]}


# A test of an optimizer: what binds it, and the test. `{wrap}` is a call of the class.
LOOP = """
loss = opt.get_scaled_loss(loss) if isinstance(opt, LossScaleOptimizer) else loss
"""
IN_MODEL = """
class Scaled(tf.keras.Model):
    {compile}
    def train_step(self, data):
        loss = self.loss_of(data)
        if isinstance(self.optimizer, LossScaleOptimizer):
            loss = self.optimizer.get_scaled_loss(loss)
        return loss

{setup}
"""
IN_FUNCTION = """
def _scaled({parameters}):
    {body}
    return opt.get_scaled_loss(loss) if isinstance(opt, LossScaleOptimizer) else loss

{call}
"""


class Evidence(NamedTuple):
    """A program whose class test is safe, and what is left of it without its evidence.

    Attributes:
      seen: the program.
      removed: the same without the evidence.
      outcome: that of the class test then.
    """

    seen: str
    removed: str
    outcome: Safety


def in_model(compile_method="pass", setup=""):
    return IN_MODEL.format(compile=compile_method.replace("\n", "\n    "), setup=setup)


def in_function(parameters, body="pass", call=""):
    return IN_FUNCTION.format(parameters=parameters, body=body, call=call)


WRAPS_ALWAYS = """
def compile(self, optimizer, **kwargs):
    optimizer = {wrap}
    super().compile(optimizer=optimizer, **kwargs)
"""
WRAPS_IF_TOLD = """
def compile(self, optimizer, **kwargs):
    if self.fp16:
        optimizer = {wrap}
    super().compile(optimizer=optimizer, **kwargs)
"""
EVIDENCE = {
    "a local constructor, then a value from elsewhere": Evidence(
        "opt = {wrap}" + LOOP, "opt = recipes.build(8)" + LOOP, UNSAFE
    ),
    "a local constructor, then the optimizer of a model": Evidence(
        "opt = {wrap}" + LOOP, "opt = model.optimizer" + LOOP, MANUAL
    ),
    "a call in the file, then none": Evidence(
        in_function("opt, loss", call="_scaled({wrap}, loss)"), in_function("opt, loss"), UNSAFE
    ),
    "a call of a private function, then of one that others can call": Evidence(
        in_function("opt, loss", call="_scaled({wrap}, loss)"),
        in_function("opt, loss", call="_scaled({wrap}, loss)").replace("_scaled", "scaled"),
        UNSAFE,
    ),
    "a constructor in the function, then a parameter": Evidence(
        in_function("loss", body="opt = {wrap}"), in_function("loss, opt"), UNSAFE
    ),
    "a constructor, then one behind a flag and else the parameter": Evidence(
        in_function("loss, optimizer, fp16", body="opt = {wrap}"),
        in_function("loss, opt, fp16", body="opt = {wrap} if fp16 else opt"),
        UNSAFE,
    ),
    "a call that passes a constructor, then the function is passed on": Evidence(
        in_function("opt, loss", call="_scaled({wrap}, loss)"),
        in_function("opt, loss", call="strategy.run(_scaled, ({wrap}, loss))"),
        UNSAFE,
    ),
    "a call that passes a constructor, then another that passes the optimizer of a model": Evidence(
        in_function("opt, loss", call="_scaled({wrap}, loss)"),
        in_function("opt, loss", call="_scaled({wrap}, loss)\n_scaled(model.optimizer, loss)"),
        MANUAL,
    ),
    "compile is given a constructor, then the optimizer itself": Evidence(
        in_model(setup="Scaled().compile({wrap})"),
        in_model(setup="Scaled().compile(tf.keras.optimizers.SGD())"),
        MANUAL,
    ),
    "compile is given a constructor, then the file has no call": Evidence(
        in_model(setup="Scaled().compile(optimizer={wrap})"), in_model(), MANUAL
    ),
    "compile is given a constructor, then by one of two calls only": Evidence(
        in_model(setup="Scaled().compile({wrap})\nScaled().compile({wrap})"),
        in_model(setup="Scaled().compile({wrap})\nScaled().compile('sgd')"),
        MANUAL,
    ),
    "compile is given a constructor, then a model is loaded": Evidence(
        in_model(setup="Scaled().compile({wrap})"),
        in_model(setup="Scaled().compile({wrap})\nother = tf.keras.models.load_model('other')"),
        MANUAL,
    ),
    "compile is given a constructor, then stars": Evidence(
        in_model(setup="Scaled().compile({wrap})"), in_model(setup="Scaled().compile(*all)"), MANUAL
    ),
    "compile wraps, then only if a flag is set": Evidence(
        in_model(WRAPS_ALWAYS), in_model(WRAPS_IF_TOLD), MANUAL
    ),
    "the attribute of a plain class, then of a model": Evidence(
        """
        class Trainer:
            def __init__(self):
                self.optimizer = {wrap}

            def scales(self):
                return isinstance(self.optimizer, LossScaleOptimizer)
        """,
        """
        class Trainer(tf.keras.Model):
            def __init__(self):
                self.optimizer = {wrap}

            def scales(self):
                return isinstance(self.optimizer, LossScaleOptimizer)
        """,
        MANUAL,
    ),
    "the attribute of a class, then of what it is given": Evidence(
        """
        class Trainer:
            def __init__(self):
                self.opt = {wrap}

            def scales(self):
                return isinstance(self.opt, LossScaleOptimizer)
        """,
        """
        class Trainer:
            def __init__(self, opt):
                self.opt = opt

            def scales(self):
                return isinstance(self.opt, LossScaleOptimizer)
        """,
        UNSAFE,
    ),
}


def program(namespace, source):
    wrap = "LossScaleOptimizer(tf.keras.optimizers.SGD()" + (
        ', "dynamic")' if namespace == EXPERIMENTAL else ")"
    )
    head = f"import tensorflow as tf\nfrom {namespace} import LossScaleOptimizer\n\n"
    return head + textwrap.dedent(source).replace("{wrap}", wrap)


@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
@pytest.mark.parametrize("namespace", [FINAL, EXPERIMENTAL], ids=["final", "experimental"])
@pytest.mark.parametrize("name", EVIDENCE)
def test_class_test_falls_without_its_evidence(name, namespace, options):
    evidence = EVIDENCE[name]
    assert outcomes(program(namespace, evidence.seen), options) == {SAFE}
    result, found = findings(program(namespace, evidence.removed), options)
    assert evidence.outcome in {finding.outcome for finding in found}
    assert not any(finding.applied for finding in found)
    assert result.source.decode().lstrip() == program(namespace, evidence.removed).lstrip()


@pytest.mark.parametrize("name", EVIDENCE)
def test_class_test_moves_with_the_constructors_on_keras_2(name):
    evidence = EVIDENCE[name]
    assert outcomes(program(EXPERIMENTAL, evidence.seen), KERAS_2) == {SAFE}
    # In TensorFlow 2.4 to 2.8, `compile` wraps in the final class, and such a test was False.
    is_compiled = evidence.outcome is MANUAL
    _, found = findings(program(EXPERIMENTAL, evidence.removed), KERAS_2)
    assert (UNSAFE in {finding.outcome for finding in found}) == is_compiled
    assert any(finding.applied for finding in found) != is_compiled


@pytest.mark.parametrize(
    "test",
    [
        "isinstance({}, (tf.keras.optimizers.SGD, LossScaleOptimizer))",
        "issubclass(type({}), LossScaleOptimizer)",
        "type({}) is LossScaleOptimizer",
        "LossScaleOptimizer == type({})",
        "{}.__class__ is LossScaleOptimizer",
        "self.assertIsInstance({}, LossScaleOptimizer)",
        "isinstance(getattr(model, 'optimizer'), LossScaleOptimizer) or {}",
    ],
)
@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
def test_every_spelling_of_a_class_test_is_seen(test, options):
    assert MANUAL in outcomes(program(FINAL, f"x = {test.format('model.optimizer')}"), options)


@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
def test_class_test_through_a_tuple_is_seen(options):
    source = "KINDS = (tf.keras.optimizers.SGD, LossScaleOptimizer)\nprint(isinstance({}, KINDS))"
    assert MANUAL in outcomes(program(FINAL, source.format("model.optimizer")), options)
    assert UNSAFE in outcomes(program(FINAL, source.format("recipes.build()")), options)
    assert outcomes(program(FINAL, source.format("{wrap}")), options) == {SAFE}


NO_EVIDENCE = [
    "FLAGS.scale_loss",
    "config.scale_loss",
    "FLAGS.scale_loss()",
    "amp.scale_loss(loss, other)",
    "args.scale_loss = True",
    "[each.scale_loss for each in flags]",
    "model.optimizer.scale_loss(loss)",
]


@pytest.mark.parametrize("line", NO_EVIDENCE)
@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
def test_a_name_like_scale_loss_shows_nothing(line, options):
    source = program(FINAL, f"opt = {{wrap}}\nloss = opt.get_scaled_loss(loss)\n{line}\n")
    result, found = findings(source, options)
    assert {finding.outcome for finding in found} == {SAFE}
    assert all(finding.applied for finding in found)
    assert b"tf_lossscale" in result.source


@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
def test_scale_loss_of_the_optimizer_keeps_the_class_of_keras_3(options):
    source = program(FINAL, "opt = {wrap}\nloss = opt.scale_loss(loss)\n")
    result, found = findings(source, options)
    assert not found
    assert result.source.decode() == source
    # without the constructor, nothing shows that this is the optimizer's method
    mutated = source.replace("loss = opt", "loss = opt2")
    assert outcomes(mutated, options) == {SAFE}


@pytest.mark.parametrize("line", NO_EVIDENCE)
def test_a_name_like_scale_loss_hides_no_unscaled_gradients(line):
    source = f"""
    import tf_lossscale as tfls

    opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
    {line}
    opt.apply_gradients(zip(grads, variables))
    """
    assert outcomes(source, KERAS_3, ["LS403"]) == {MANUAL}


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        ("import tf_lossscale as tfls", "opt = recipes.build()"),
        ("import tf_lossscale as tfls", "opt = model.optimizer"),
        ("from tensorflow.contrib.mixed_precision import LossScaleOptimizer", "opt = given()"),
        ("from tensorflow.keras.mixed_precision import LossScaleOptimizer", "opt = given()"),
    ],
)
def test_an_import_of_a_class_makes_no_optimizer(imported, made):
    test = 'loss = opt.get_scaled_loss(loss) if hasattr(opt, "get_scaled_loss") else loss'
    wraps = "tfls.keras.mixed_precision.LossScaleOptimizer(opt)"
    assert outcomes(f"{imported}\n{made}\n{test}\n", KERAS_3, ["LS404"]) == {MANUAL}
    seen = f"import tf_lossscale as tfls\nopt = {wraps}\n{test}\n"
    assert outcomes(seen, KERAS_3, ["LS404"]) == set()


SUBCLASS = """
class Own({base}):
    {body}

opt = Own(tf.keras.optimizers.SGD())
print(isinstance(opt, LossScaleOptimizer))
"""
HOOKS = ["get_scaled_loss", "get_unscaled_gradients", "apply_gradients"]


def subclass(body):
    return program(FINAL, SUBCLASS.format(base="LossScaleOptimizer", body=body))


@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
@pytest.mark.parametrize("hook", HOOKS)
def test_subclass_with_a_step_of_its_own_stays(hook, options):
    methods = (
        f"def {hook}(self, *args):\n        return super().{hook}(*args)",
        f"{hook} = another",
        f"{hook}: object = another",
        "if FAST:\n        pass",
        "def _unscale(self):\n        pass",
    )
    for body in methods:
        source = subclass(body)
        result, found = findings(source, options)
        assert result.source.decode() == source
        assert {finding.outcome for finding in found} == {MANUAL}
        assert "LS405" in {finding.code for finding in found}


@pytest.mark.parametrize("options", [KERAS_3, SHIM], ids=["final3", "shim"])
@pytest.mark.parametrize("body", ["pass", '"""A name."""', 'title = "own"', "def log(self): ..."])
def test_subclass_that_overrides_no_step_moves(body, options):
    assert outcomes(subclass(body), options) == {SAFE}


@pytest.mark.parametrize("body", ["pass", "def get_scaled_loss(self, loss):\n        return loss"])
def test_any_subclass_of_the_final_class_is_reported_on_keras_2(body):
    result, found = findings(subclass(body), KERAS_2)
    assert [finding.code for finding in found] == ["LS405"]
    assert found[0].outcome is MANUAL
    assert "takes no arguments" in found[0].message
    assert result.source.decode() == subclass(body)


@pytest.mark.parametrize("hook", HOOKS[:2])
def test_experimental_subclass_whose_method_fit_does_not_call_stays_under_shim(hook):
    source = f"""
    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

    class Own(LossScaleOptimizer):
        def {hook}(self, value):
            return value
    """
    assert outcomes(source, SHIM) == {MANUAL}
    assert outcomes(source.replace(hook, "log"), SHIM) == {SAFE}


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize(
    "use",
    [
        "opt = LossScaleOptimizer(opt)",
        "opt = LossScaleOptimizer(opt, dynamic=False, initial_scale=8)",
        "def f(opt: LossScaleOptimizer): ...",
        "LSO = LossScaleOptimizer",
        "opt = LossScaleOptimizer(opt)\nprint(isinstance(opt, LossScaleOptimizer))",
        "opt = LossScaleOptimizer(opt, loss_scale=8)",
    ],
)
def test_shim_takes_the_final_class_along(use, keras):
    options = Options(target=Target.SHIM, keras=keras)
    source = f"from tensorflow.keras.mixed_precision import LossScaleOptimizer\n\n{use}\n"
    result, _ = findings(source, options)
    assert all(finding.applied for finding in result.findings)
    assert b"from tf_lossscale.keras.mixed_precision import LossScaleOptimizer" in result.source
    assert b"tensorflow" not in result.source


@pytest.mark.parametrize("keras", [2, 3])
def test_shim_leaves_tf_keras(keras):
    options = Options(target=Target.SHIM, keras=keras)
    head = "from tf_keras.mixed_precision import LossScaleOptimizer\n"
    for use in ("opt = LossScaleOptimizer(opt)", "isinstance(opt, LossScaleOptimizer)"):
        result, _ = findings(f"{head}{use}\n", options)
        assert result.source.decode() == f"{head}{use}\n"
    result, _ = findings(f"{head}opt = LossScaleOptimizer(opt, loss_scale='dynamic')\n", options)
    assert result.source.decode() == f"{head}opt = LossScaleOptimizer(opt)\n"


def test_shim_leaves_both_arms_of_a_version_guard():
    source = """
    import tensorflow as tf

    if tf.__version__ >= "2.4":
        opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
    else:
        opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
    """
    result, found = findings(source, SHIM)
    assert result.source.decode() == textwrap.dedent(source).lstrip()
    assert {finding.outcome for finding in found} == {MANUAL}
