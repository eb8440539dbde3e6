"""Forms of programs that no rename makes right: each is reported.

The table has a code of the findings that are left, the options, and the sources.
"""

import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Target
from verbs import transformed

KERAS_2, KERAS_3, BOTH = Options(), Options(keras=3), Options(keras=None)
SHIM = Options(target=Target.SHIM)
ALL = (KERAS_2, KERAS_3, BOTH, SHIM)

HEAD = """\
import functools
import tensorflow as tf
import horovod.tensorflow.keras as hvd
from tensorflow.keras.mixed_precision import LossScaleOptimizer as Final
from tensorflow.keras.mixed_precision import experimental as mp
"""
MADE = "opt = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(), 'dynamic')\n"
COMPILED = "mp.set_policy('mixed_float16')\nmodel.compile('sgd')\n"

REPORTED = {
    ("LS301", ALL): {
        "the class is replaced": (
            "tf.keras.mixed_precision.experimental.LossScaleOptimizer = Mine\n"
            "opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(inner, 'dynamic')\n"
        ),
        "a method of the class is replaced": "mp.LossScaleOptimizer.apply_gradients = traced\n",
    },
    ("LS205", ALL): {
        "the function is replaced": (
            "tf.train.experimental.enable_mixed_precision_graph_rewrite = lambda opt: opt\n"
        ),
    },
    ("LS401", (KERAS_3, BOTH, SHIM)): {
        "a method of the class is replaced with setattr": (
            "setattr(Final, 'get_scaled_loss', traced)\n"
        ),
    },
    ("LS301", (KERAS_2, BOTH, SHIM)): {
        "its type is compared": MADE + "print(type(opt) is mp.LossScaleOptimizer)\n",
    },
    ("LS401", (BOTH, SHIM)): {
        "its type is one of several": (
            "opt = Final(tf.keras.optimizers.SGD())\nprint(opt.__class__ in (Final, int))\n"
        ),
        "its type is looked up": (
            "opt = Final(tf.keras.optimizers.SGD())\nprint({Final: 1}[type(opt)])\n"
        ),
    },
    ("LS405", (KERAS_3, BOTH, SHIM)): {
        "a method of an object is replaced": (
            MADE + "opt.get_unscaled_gradients = clipped(opt.get_unscaled_gradients)\n"
        ),
        "a subclass assigns a method": (
            "class Mine(mp.LossScaleOptimizer):\n    get_scaled_loss = traced\n"
        ),
        "a mixin overrides a step": (
            "class Mixin:\n    def apply_gradients(self, pairs):\n        pass\n\n\n"
            "class A(Mixin, Final):\n    pass\n"
        ),
    },
    ("LS305", ALL): {
        "its dictionary is read": (
            MADE + "print(vars(opt)['_loss_scale'], opt.__dict__['_optimizer'])\n"
        ),
    },
    ("LS906", ALL): {
        "the beginning of its name is tested": (
            MADE + "print(type(opt).__name__.startswith('LossScale'))\n"
        ),
        "its name is searched for": MADE + "print('LossScaleOptimizer' in str(type(opt)))\n",
    },
    ("LS602", (KERAS_2, KERAS_3)): {
        "an old name of a policy": "mp.set_policy(mp.Policy('infer'))\n",
    },
    ("LS406", (KERAS_3, BOTH, SHIM)): {
        "an optimizer that compile wrapped": (
            "class C(tf.keras.callbacks.Callback):\n    def on_epoch_end(self, epoch):\n"
            "        return self.model.optimizer.get_unscaled_gradients([])\n"
        ),
    },
}

NOT_REPORTED = {
    "gradients that the optimizer computed": (
        "opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(make())\n"
        "train_op = opt.apply_gradients(opt.compute_gradients(loss))\n"
    ),
    "a class test that names both classes": (
        COMPILED + "print(isinstance(model.optimizer, (mp.LossScaleOptimizer, Final)))\n"
    ),
    "a tuple of classes in a test": (
        COMPILED + "KINDS = (mp.LossScaleOptimizer, int)\n"
        "print(isinstance(model.optimizer, KINDS))\n"
    ),
    "a test of what compile made": (
        COMPILED + "if isinstance(model.optimizer, mp.LossScaleOptimizer):\n"
        "    loss = model.optimizer.get_scaled_loss(loss)\n"
    ),
    "a policy that a function is given": (
        "def setup(policy):\n    mp.set_policy(policy)\n"
        "    return hasattr(policy, 'loss_scale') and policy.loss_scale\n"
    ),
    "a policy with a loss scale": (
        "policy = mp.Policy('mixed_float16', loss_scale=128)\nmp.set_policy(policy)\n"
        "opt = mp.LossScaleOptimizer(opt, policy.loss_scale)\n"
    ),
    "a step without scaling": MADE + "opt.apply_gradients(zip(grads, variables))\n",
    "a tuple of both classes in a test": (
        COMPILED + "KINDS = (mp.LossScaleOptimizer, Final)\n"
        "print(isinstance(model.optimizer, KINDS))\n"
    ),
}

CALLS = {
    "made with partial": (
        "make = functools.partial(Final, dynamic=True)\nopt = make(inner)\n"
        "print(opt.loss_scale())\n"
    ),
    "wrapped by Horovod": MADE + "opt = hvd.DistributedOptimizer(opt)\nprint(opt.loss_scale())\n",
    "made by a lambda": MADE + "make = lambda: opt\nopt = make()\nprint(opt.loss_scale())\n",
    "the optimizer inside another library's": (
        MADE + "average = addons.MovingAverage(opt)\nprint(average._optimizer.loss_scale())\n"
    ),
    "under a name": MADE + "scale = opt.loss_scale\nprint(scale())\n",
    "its own call": MADE + "print(opt.loss_scale.__call__())\n",
    "where only a policy wraps": (
        "mp.set_policy('mixed_float16')\nprint(model.optimizer.loss_scale())\n"
    ),
}
"""Calls of the loss scale that cannot be edited; the shim reads it both ways."""

METHODS = {
    "its methods": MADE + "opt.loss_scale.update([])\n",
    "its parameters": MADE + "print(opt.loss_scale.increment_period)\n",
    "its private parameters": MADE + "print(opt.loss_scale._multiplier)\n",
    "under a name": MADE + "scale = opt.loss_scale\nprint(scale.get_config())\n",
}
"""Uses of the loss scale as an object."""

REBOUND = {
    "globals": "globals().update(settings)\n",
    "exec": "exec(open('settings.py').read())\n",
    "star import": "from settings import *\n",
}


@pytest.mark.parametrize(
    ("code", "source", "options"),
    [
        pytest.param(code, source, options, id=form)
        for (code, those), forms in REPORTED.items()
        for form, source in forms.items()
        for options in those
    ],
)
def test_form_is_reported(code, source, options):
    result = transformed(HEAD + source, options)
    assert code in {finding.code for finding in result.findings if finding.is_left}


def test_finding_says_that_a_method_is_replaced():
    result = transformed(HEAD + "Final.get_scaled_loss = traced\n", KERAS_3)
    assert any(finding.message.startswith("this replaces a method") for finding in result.findings)


@pytest.mark.parametrize("options", ALL, ids=["2", "3", "both", "shim"])
@pytest.mark.parametrize("form", NOT_REPORTED)
def test_form_is_not_reported(form, options):
    result = transformed(HEAD + NOT_REPORTED[form], options)
    assert not [finding for finding in result.findings if finding.is_left]


@pytest.mark.parametrize("options", ALL, ids=["2", "3", "both", "shim"])
@pytest.mark.parametrize("form", CALLS)
def test_call_of_the_loss_scale_goes_to_the_shim(form, options):
    result = transformed(HEAD + CALLS[form], options)
    after = result.source.decode()
    assert after.splitlines()[-1] == CALLS[form].splitlines()[-1]
    assert "tensorflow.keras.mixed_precision import experimental" not in after
    assert "from tensorflow.keras import mixed_precision" not in after
    assert not [finding for finding in result.findings if finding.is_left]


@pytest.mark.parametrize("options", ALL, ids=["2", "3", "both", "shim"])
@pytest.mark.parametrize("form", METHODS)
def test_method_of_the_loss_scale_is_reported(form, options):
    result = transformed(HEAD + METHODS[form], options)
    (left,) = [finding for finding in result.findings if finding.is_left]
    assert left.code == "LS302"
    assert "write opt._loss_scale." in left.message


@pytest.mark.parametrize("options", ALL, ids=["2", "3", "both", "shim"])
def test_loss_scale_call_of_a_subclass_itself(options):
    source = textwrap.dedent("""
        class Logged(mp.LossScaleOptimizer):
            def log(self):
                print(self.loss_scale())
        """)
    result = transformed(HEAD + source, options)
    assert "print(self.loss_scale())" in result.source.decode()
    assert not [finding for finding in result.findings if finding.is_left]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["apply_gradients"], "fit on Keras 3 gives apply_gradients gradients that are still"),
        (["apply_gradients", "minimize"], "fit on Keras 3 does not call minimize and gives"),
    ],
)
def test_what_fit_on_keras_3_does_with_an_override(methods, message):
    body = "".join(f"    def {name}(self, *args):\n        pass\n" for name in methods)
    result = transformed(HEAD + f"class Mine(Final):\n{body}", KERAS_3)
    assert [finding.message[: len(message)] for finding in result.findings if finding.is_left] == [
        message
    ]


@pytest.mark.parametrize("form", REBOUND)
def test_constant_that_other_code_may_bind_is_read_at_run_time(form):
    wrap = "SCALE = 128\n{}opt = mp.LossScaleOptimizer(inner, SCALE)\n"
    assert "from_loss_scale" not in transformed(HEAD + wrap.format(""), KERAS_2).source.decode()
    after = transformed(HEAD + wrap.format(REBOUND[form]), KERAS_2).source.decode()
    assert "from_loss_scale(inner, SCALE)" in after
    assert "SCALE = 128" in after


TO_SHIM = {
    "a base of another file": "from other import Mixin\n\n\nclass A(Mixin, {}):\n    pass\n",
    "a class made at run time": "Scaled = type('Scaled', ({},), {{}})\n",
    "a method of the class": "step = {}.apply_gradients\n",
    "a key of a table": "TABLE = {{'amp': {}}}\n",
    "a default": "def wrap(opt, cls={}):\n    return cls(opt, 'dynamic')\n",
    "an argument": "wrap({}, opt)\n",
    "a member of an enumeration": "class Kind(enum.Enum):\n    AMP = {}\n",
    "a decorator's argument": "@register({})\ndef f():\n    pass\n",
    "chosen by a flag": "opt = ({} if fp16 else keep)(opt, 'dynamic')\n",
}


@pytest.mark.parametrize("keras", [2, 3, None])
@pytest.mark.parametrize("form", TO_SHIM)
def test_form_goes_to_the_shim(form, keras):
    body = TO_SHIM[form].format("tf.keras.mixed_precision.experimental.LossScaleOptimizer")
    made = "opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')\n"
    result = transformed("import tensorflow as tf\n" + body + made, Options(keras=keras))
    after = result.source.decode()
    assert "tf.keras" not in after
    assert after.count("tfls.keras.mixed_precision.experimental.LossScaleOptimizer") == 2
    assert "LossScaleOptimizer(opt, 'dynamic')" in after
    assert any("go to the shim" in finding.message for finding in result.findings)


@pytest.mark.parametrize("options", ALL, ids=["2", "3", "both", "shim"])
def test_name_that_means_the_final_class_elsewhere_keeps_its_meaning(options):
    source = textwrap.dedent("""
        import tensorflow as tf
        from tensorflow.keras.mixed_precision import LossScaleOptimizer

        if tf.version.VERSION < "2.4":
            LossScaleOptimizer = tf.keras.mixed_precision.experimental.LossScaleOptimizer
        opt = LossScaleOptimizer(inner, "dynamic")
        """)
    result = transformed(source, options)
    assert 'opt = LossScaleOptimizer(inner, "dynamic")' in result.source.decode()
    assert "LS908" in {finding.code for finding in result.findings}


def test_nothing_is_said_to_go_to_the_shim_that_is_not_there():
    source = textwrap.dedent("""\
        import tensorflow as tf

        if tf.__version__.startswith("1."):
            scales = tf.train.experimental
        else:
            scales = tf.compat.v1.mixed_precision
        scale = scales.FixedLossScale(2.0)
        """)
    result = transformed(source, KERAS_2)
    assert result.source.decode() == source
    assert not any("go to the shim" in finding.message for finding in result.findings)
