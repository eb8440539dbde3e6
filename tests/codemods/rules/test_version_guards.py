"""Version guards: a legacy branch beside a current one is left, every other one is renamed.

Both are reported, once. More forms of guards are among the programs of `execution/`.
"""

import json
import sys
import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transform_once as transform

KERAS = "tf.keras.mixed_precision"
TARGETS = {
    "final, Keras 2": Options(),
    "final, Keras 3": Options(keras=3),
    "shim": Options(target=Target.SHIM),
}
HEAD = """\
import importlib
import tensorflow as tf
from distutils.version import LooseVersion, LooseVersion as V, StrictVersion
from packaging import version
from . import compat

NAME = "tensorflow"
IS_TF_2_3 = tf.__version__.startswith("2.3")
is_old = has_contrib = False
if tf.__version__ < "2.4":
    is_old = True
try:
    tf.contrib
    has_contrib = True
except AttributeError:
    pass
MAJOR, MINOR = (int(n) for n in tf.__version__.split(".")[:2])
from tensorflow.python.keras.optimizer_v2 import optimizer_v2


class Settings:
    is_old = MINOR < 4


def is_old_by_number():
    return MAJOR == 2 and MINOR < 4


def asked():
    try:
        tf.estimator
    except AttributeError:
        return False
    return True


env = compat.Env()
env.minor = int(tf.__version__.split(".")[1])
FLAGS = {}
FLAGS["old"] = hasattr(tf, "contrib")
env.flags["old"] = tf.__version__.startswith("1.")

"""


def transformed(source, options):
    return transform(textwrap.dedent(source).encode(), options)


CONDITIONS = [
    "tf.__version__ < '2.4'",
    "tf.version.VERSION <= '2.3'",
    "'2.4.0' > tf.__version__",
    "not tf.__version__ >= '2.4'",
    "LooseVersion(tf.__version__) < LooseVersion('2.4.0')",
    "LooseVersion(tf.__version__) < '2.4'",
    "V(tf.__version__) < '2.4'",
    "StrictVersion(tf.__version__) < '2.4'",
    "LooseVersion(tf.__version__) < '2.4rc1'",
    "LooseVersion(tf.__version__) == '2.3.0'",
    "LooseVersion(tf.__version__) in ('2.2.0', '2.3.0')",
    "not LooseVersion('2.4') <= tf.__version__",
    "'2.0' <= StrictVersion(tf.__version__) < '2.4'",
    "tuple(map(int, tf.__version__.split('.')[:2])) < (2, 4)",
    "tf.__version__.startswith('2.3')",
    "tf.__version__.startswith('1.')",
    "gpu and tf.__version__ < '2.2'",
    "env.minor < 4",
    "tf.keras.__version__ < '2.4'",
    "importlib.metadata.version('tensorflow') < '2.4'",
    "IS_TF_2_3",
    "hasattr(tf.keras.mixed_precision, 'experimental')",
    "gpu and hasattr(tf.keras.mixed_precision, 'experimental')",
    "'contrib' in vars(tf)",
    "(found := tf.__version__) < '2.4'",
    "sys.modules['tensorflow'].__version__ < '2.4'",
    "importlib.util.find_spec('tensorflow.contrib')",
    "importlib.metadata.distribution(NAME).version < '2.4'",
    "not tf.compat.v1.control_flow_v2_enabled()",
    "is_old",
    "has_contrib",
    "isinstance(opt, optimizer_v2.OptimizerV2)",
    "hasattr(opt, '_hyper')",
    "MINOR < 4",
    "Settings.is_old",
    "Settings().is_old",
    "asked()",
    "FLAGS['old']",
    "env.flags['old']",
    "'OptimizerV2' in [one.__name__ for one in type(opt).__mro__]",
]
NEW = [
    "tf.__version__ >= '2.1'",
    "tf.__version__.startswith('2.')",
    "not is_old_by_number()",
    "MAJOR > 1",
    "hasattr(tf.keras.mixed_precision, 'set_global_policy')",
    "not hasattr(tf, 'contrib')",
    "LooseVersion(tf.__version__) >= LooseVersion('2.4')",
    "LooseVersion(tf.__version__) >= '2.4.0'",
    "V(tf.__version__) >= V('2.4')",
    "StrictVersion(tf.__version__) >= '2.4'",
    "LooseVersion('2.3') <= tf.__version__",
    "LooseVersion(tf.__version__) != '2.3.0'",
    "LooseVersion(tf.__version__) > LooseVersion('2.4rc1')",
    "version.parse(tf.__version__) in (version.parse('2.4'), version.parse('2.21'))",
    "str(version.parse(tf.__version__)) == '2.21.0'",
    "version.parse(tf.__version__).release >= (2, 4)",
    "version.parse(tf.__version__).minor >= 4",
    "tuple(int(n) for n in tf.__version__.split('.')[:2]) >= (2, 4)",
    "gpu or tf.__version__[0] == '2'",
    "gpu and tf.__version__.startswith('2.')",
    "gpu and (fp16 or MAJOR > 1) and not tf.__version__.startswith('2.0.')",
    "gpu or tf.__version__.startswith('1.')",
]
"""The newest TensorFlow takes these branches."""
FAILING = [
    "version.parse(tf.__version__) < '2.4'",
    "version.parse(tf.__version__) < LooseVersion('2.4')",
    "version.parse(tf.__version__) > (2, 4)",
    "LooseVersion(tf.__version__) < 2.4",
    "LooseVersion(tf.__version__) >= LooseVersion('new')",
    "int(tf.__version__.split('.')[1]) < '4'",
    "tf.__version__ < 2.4",
    "tf.__version__ > None",
    "tf.__version__.startswith(2)",
    "tf.__version__.split('.') < (2, 4)",
    "list(version.parse(tf.__version__)) < [2, 4]",
]
"""Python raises an error for these comparisons."""


@pytest.mark.sampled(3, each="test")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("test", CONDITIONS)
def test_branch_without_a_current_one_is_renamed_and_reported(test, target):
    use = "{}.keras.mixed_precision.experimental.set_policy('mixed_float16')"
    source = f"{HEAD}if {test}:\n    {use.format('tf')}\n"
    result = transformed(source, TARGETS[target])
    assert use.format("tfls") in result.source.decode()
    assert [finding.outcome for finding in result.findings if finding.code == "LS908"] == [
        Safety.MANUAL
    ]
    again = transform(result.source, TARGETS[target])
    assert again.source == result.source


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("test", FAILING)
def test_comparison_that_fails_is_not_understood(test, target):
    use = "tf.keras.mixed_precision.experimental.set_policy('mixed_float16')"
    result = transformed(f"{HEAD}if {test}:\n    {use}\n", TARGETS[target])
    assert result.error is None
    expected = transformed(f"{HEAD}if unknown(tf.__version__):\n    {use}\n", TARGETS[target])
    findings = [(finding.code, finding.message) for finding in result.findings]
    assert findings == [(finding.code, finding.message) for finding in expected.findings]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("test", NEW)
def test_branch_of_the_newest_tensorflow_is_not_reported(test, target):
    use = "tf.keras.mixed_precision.experimental.set_policy('mixed_float16')"
    source = f"{HEAD}if {test}:\n    {use}\n"
    result = transformed(source, TARGETS[target])
    assert use not in result.source.decode()
    assert [finding.code for finding in result.findings if finding.outcome is Safety.MANUAL] == []


OLD = "tf.keras.mixed_precision.experimental.LossScaleOptimizer"
MAKE = f"def old(opt):\n    return {OLD}(opt, 'dynamic')\n\n"
FORMS = {
    "a table of functions": f"{MAKE}made = {{'1': old, '2': new}}\nmade[tf.__version__[0]](opt)",
    "a table in a class": f"class Made:\n    by = dict(v1={OLD})\nMade().by.get(tf.__version__)(o)",
    "a table of flags": f"{{True: lambda opt: {OLD}(opt, 8), False: new}}[IS_TF_2_3](opt)",
    "a list": f"[new, {OLD}][int(tf.__version__ < '2.4')](opt)",
    "a table that is kept": f"self.made = {{'1': {OLD}}}\nself.made[tf.__version__[0]](opt)",
    "a function": f"{MAKE}if IS_TF_2_3:\n    opt = old(opt)",
    "a function of a function": f"{MAKE}def wrap(o):\n    return old(o)\nIS_TF_2_3 and wrap(opt)",
    "a method": f"class Made:\n    def wrap(self, opt):\n        return {OLD}(opt)\n"
    "if IS_TF_2_3:\n    opt = Made().wrap(opt)",
    "a method of two classes": f"class Made:\n    def wrap(self, opt):\n        return {OLD}(opt)\n"
    "a, b = Made(), New()\nif IS_TF_2_3:\n    a.wrap(opt)\nelse:\n    b.wrap(opt)",
    "a class": f"class Made({OLD}):\n    pass\nopt = tf.__version__ < '2.4' and Made(opt) or opt",
    "a decorator": f"@only_if(IS_TF_2_3)\n{MAKE}",
    "a decorator that asks": f"def only(f):\n    return f if IS_TF_2_3 else new\n@only\n{MAKE}",
    "match": f"match tf.__version__[0]:\n    case '1':\n        {OLD}(opt)",
    "a guarded case": f"match opt:\n    case x if IS_TF_2_3:\n        {OLD}(x)",
    "a comprehension": f"[{OLD}(opt) for opt in opts if IS_TF_2_3]",
    "a loop": f"for opt in opts if IS_TF_2_3 else ():\n    {OLD}(opt)",
    "or": f"opt = tf.__version__ > '2.4' and opt or {OLD}(opt)",
    "partial": f"make = partial({OLD}) if IS_TF_2_3 else new",
    "a handler": f"try:\n    tf.keras.optimizers.legacy\nexcept AttributeError:\n    {OLD}(opt)",
    "else": f"try:\n    import tensorflow.contrib\nexcept ImportError:\n    1\nelse:\n    {OLD}(o)",
    "an import": "try:\n    from tensorflow.compat import v1 as tf\n    old = 1\n"
    f"except ImportError:\n    old = 0\nif old:\n    {OLD}(opt)",
    "a module": f"try:\n    import tensorflow.contrib as c\nexcept ImportError:\n    c = None\n"
    f"if c is not None:\n    {OLD}(opt)",
    "a module that is None before": "c = None\ntry:\n    import tensorflow.contrib as c\n"
    f"except ImportError:\n    pass\n{OLD}(opt) if c else opt",
    "a module of a global": "c = None\ndef load():\n    global c\n    try:\n"
    "        from tensorflow import contrib as c\n    except ImportError:\n        pass\n"
    f"if c:\n    {OLD}(opt)",
    "a module that is read": "try:\n    c = tf.contrib\n    print(c)\nexcept Exception:\n"
    f"    c = None\nhas = bool(c)\nif has:\n    {OLD}(opt)",
    "a module of a condition": "c = None\nif IS_TF_2_3:\n    c = tf.contrib\n"
    f"if c:\n    {OLD}(opt)",
    "a module or None": f"c = tf.contrib if IS_TF_2_3 else None\nif c:\n    {OLD}(opt)",
    "a part of a module": "try:\n    from tensorflow.contrib import slim\nexcept ImportError:\n"
    f"    slim = None\nif not slim:\n    raise_later()\nelse:\n    {OLD}(opt)",
    "TensorFlow beside a module": "try:\n    import tensorflow as tf2, tensorflow.contrib\n"
    f"except ImportError:\n    tf2 = None\nif tf2:\n    {OLD}(opt)",
    "suppress": "old = False\nwith contextlib.suppress(ImportError):\n"
    f"    import tensorflow.contrib\n    old = True\nif old:\n    {OLD}(opt)",
    "a default": f"def wrap(opt, old=IS_TF_2_3):\n    return {OLD}(opt) if old else opt",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_guards_are_reported_once(form, target):
    if "match" in FORMS[form] and sys.version_info < (3, 10):
        pytest.skip("this Python has no match statement")
    result = transformed(HEAD + FORMS[form] + "\n", TARGETS[target])
    assert OLD not in result.source.decode()
    assert [finding.outcome for finding in result.findings if finding.code == "LS908"] == [
        Safety.MANUAL
    ]
    again = transform(result.source, TARGETS[target])
    assert again.source == result.source
    assert [finding.outcome for finding in again.findings if finding.code == "LS908"] == [
        Safety.MANUAL
    ]


@pytest.mark.parametrize(
    "form",
    [
        f"{MAKE}if gpu:\n    opt = old(opt)",
        f"{MAKE}if IS_TF_2_3:\n    old(opt)\nelse:\n    opt = {KERAS}.LossScaleOptimizer(opt)",
        f"@unittest.skipIf(IS_TF_2_3, 'old')\n{MAKE}",
        f"made = {{'old': {OLD}}}[name](opt)",
        f"if IS_TF_2_3:\n    scale = None\n    if scale is None:\n        pass\n{OLD}(opt)",
        f"opt = {OLD}(opt)\nif IS_TF_2_3:\n    opt.minimize(loss)",
        f"dtype = getattr(tf, args.dtype)\nif dtype == tf.float16:\n    {OLD}(opt)",
        f"if backend.startswith('tensorflow'):\n    {OLD}(opt)",
        f"@register('tensorflow')\n{MAKE}",
        f"try:\n    tpu = tf.TPU()\nexcept ValueError:\n    tpu = None\nif tpu:\n    {OLD}(opt)",
        f"try:\n    import tensorflow\n    a = 1\nexcept ImportError:\n    a = 0\na and {OLD}(opt)",
        f"if tf.__version__ < '2':\n    raise RuntimeError\n{OLD}(opt)",
        f"try:\n    import tensorflow as t\nexcept ImportError:\n    t = None\nt and {OLD}(opt)",
        "try:\n    import tensorflow.compat.v1 as t\n    from tensorflow.keras import layers\n"
        f"except ImportError:\n    t = None\nif t:\n    {OLD}(opt)",
        "try:\n    from tensorflow.keras import mixed_precision as m\nexcept ImportError:\n"
        f"    m = None\nif m:\n    {OLD}(opt)",
        "try:\n    import tensorflow.contrib as c\nexcept ImportError:\n    c = None\n"
        f"if c.layers.flatten(x):\n    {OLD}(opt)",
        f"{MAKE}if IS_TF_2_3:\n    tf.app.run(old)\nelse:\n    app.run(old)",
    ],
)
def test_what_no_version_decides_is_not_reported(form):
    result = transformed(f"{HEAD}{form}\n", TARGETS["shim"])
    assert not [finding for finding in result.findings if finding.code == "LS908"]


@pytest.mark.parametrize("test", ["gpu", "sys.version_info < (3, 8)"])
def test_branch_of_another_condition_is_rewritten(test):
    source = f"{HEAD}if {test}:\n    {KERAS}.experimental.set_policy('mixed_float16')\n"
    result = transformed(source, Options())
    assert f"    {KERAS}.set_global_policy('mixed_float16')\n" in result.source.decode()
    assert not [finding for finding in result.findings if finding.code == "LS908"]


@pytest.mark.parametrize(
    "binds",
    [
        "from tensorflow.keras.mixed_precision import experimental as mp",
        "mp = tf.keras.mixed_precision.experimental",
    ],
)
@pytest.mark.parametrize("use", ["LossScaleOptimizer(opt, 'dynamic')", "global_policy()"])
@pytest.mark.parametrize("target", TARGETS)
def test_module_used_inside_and_outside_a_guard_is_moved_by_one_run(target, use, binds):
    source = f"""\
{HEAD}{binds}
if hasattr(tf.keras.mixed_precision, "set_global_policy"):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
else:
    mp.set_policy("mixed_float16")
print(mp.{use})
"""
    first = transformed(source, TARGETS[target])
    after = first.source.decode()
    assert "tensorflow.keras.mixed_precision" not in after
    assert "tf.keras.mixed_precision.experimental" not in after
    assert use.partition(",")[0] in after
    assert transform(first.source, TARGETS[target]).source == first.source


@pytest.mark.parametrize("target", TARGETS)
def test_a_current_branch_goes_to_the_shim_with_the_old_one(target):
    condition = 'version.parse(tf.__version__) < version.parse("2.4")'
    source = f"""\
import tensorflow as tf
from packaging import version

if {condition}:
    tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
else:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
"""
    result = transformed(source, TARGETS[target])
    after = source.replace("    tf.keras", "    tfls.keras")
    assert result.source.decode().replace("import tf_lossscale as tfls\n", "") == after
    (note,) = [finding for finding in result.findings if finding.code == "LS908"]
    assert (note.outcome, note.is_left) == (Safety.SAFE, False)


@pytest.mark.parametrize("target", TARGETS)
def test_an_import_of_the_shim_that_always_succeeds_is_reported(target):
    """What handled its error on later versions is not run any more."""
    source = """\
try:
    from tensorflow.contrib.mixed_precision import LossScaleOptimizer
    has_contrib = True
except ImportError:
    has_contrib = False
"""
    result = transformed(source, TARGETS[target])
    assert "from tf_lossscale.contrib.mixed_precision import" in result.source.decode()
    (finding,) = [finding for finding in result.findings if finding.code == "LS908"]
    assert finding.outcome is Safety.MANUAL
    assert "this import succeeds on every TensorFlow" in finding.message


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("names", "lines"), [("mixed_precision as mp", [2]), ("mixed_precision as mp, slim", [2, 6])]
)
def test_a_module_of_the_shim_is_none_only_beside_another_import(names, lines, target):
    """The import is reported; what tests its result is right if the shim has all that is tried."""
    source = f"""\
try:
    from tensorflow.contrib import {names}
except ImportError:
    mp = None
if mp is not None:
    opt = mp.LossScaleOptimizer(opt, manager)
"""
    result = transformed(source, TARGETS[target])
    assert [finding.line for finding in result.findings if finding.code == "LS908"] == lines


LEGACY = "from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer"
CURRENT = "from tensorflow.keras.mixed_precision import LossScaleOptimizer"
HAS = "hasattr(tf.keras.mixed_precision, 'experimental')"
CALLS = ("LossScaleOptimizer(opt, 'dynamic')", "LossScaleOptimizer(opt)")
TESTED_AGAIN = {
    "branches": "if {0}:\n    {1}\nelse:\n    {2}",
    "one branch": "if {0}:\n    {1}",
    "an expression": "{1} if {0} else {2}",
    "an exit": "def wrap(opt):\n    if {0}:\n        return {1}\n    return {2}",
    "a flag": "OLD = {0}\nif OLD:\n    {1}\nelse:\n    {2}",
    "a flag of a different try": "try:\n    import tensorflow.contrib\n    OLD = 1\n"
    "except ImportError:\n    OLD = 0\nif OLD:\n    {1}\nelse:\n    {2}",
    "functions": "def old(opt):\n    {1}\ndef new(opt):\n    {2}\nold(opt) if {0} else new(opt)",
    "arguments": "more = {{'loss_scale': 8}} if {0} else {{}}\nLossScaleOptimizer(opt, **more)",
    "an item": "more = {{}}\nif {0}:\n    more['dynamic'] = True\nLossScaleOptimizer(opt, **more)",
}


@pytest.mark.parametrize("imports", [(LEGACY, CURRENT), (CURRENT, LEGACY)])
@pytest.mark.parametrize("form", TESTED_AGAIN)
def test_another_test_beside_a_tried_import_is_reported(form, imports):
    """The shim has both classes on every version, so the first is always imported."""
    source = "import tensorflow as tf\ntry:\n    {}\nexcept ImportError:\n    {}\n".format(*imports)
    source += TESTED_AGAIN[form].format(HAS, *CALLS) + "\n"
    first = transformed(source, TARGETS["shim"])
    again = transform(first.source, TARGETS["shim"])
    assert again.source == first.source
    for result in (first, again):
        (finding,) = [finding for finding in result.findings if finding.code == "LS908"]
        assert finding.outcome is Safety.MANUAL
        assert "the `try` that binds this succeeds on every TensorFlow" in finding.message


@pytest.mark.parametrize(
    "uses",
    [
        "if {0}:\n    {1}\nelse:\n    {2}",
        "mp.LossScaleOptimizer(opt, 'dynamic') if {0} else mp.LossScaleOptimizer(opt)",
    ],
)
def test_another_test_beside_a_module_that_is_tried_is_reported(uses):
    source = """\
import tensorflow as tf
try:
    from tensorflow.keras.mixed_precision import experimental as mp
except ImportError:
    from tensorflow.keras import mixed_precision as mp
"""
    source += uses.format(HAS, "mp.set_policy('float16')", "mp.set_global_policy('float16')")
    found = transformed(source + "\n", TARGETS["shim"]).findings
    assert [finding.outcome for finding in found if finding.code == "LS908"] == [Safety.MANUAL]


ELSEWHERE = {
    "a try": ("try:\n    {}\nexcept ImportError:\n    {}\nOLD = {}\n", Safety.MANUAL),
    "a try with a flag": (
        "try:\n    {}\n    OLD = True\nexcept ImportError:\n    {}\n    OLD = False\n",
        Safety.SAFE,
    ),
    "a test": ("OLD = {2}\nif OLD:\n    {0}\nelse:\n    {1}\n", Safety.SAFE),
}


@pytest.mark.parametrize("form", ELSEWHERE)
def test_another_test_in_a_different_file_is_reported(form, command_line):
    binds, outcome = ELSEWHERE[form]
    files = {
        "compat.py": "import tensorflow as tf\n" + binds.format(LEGACY, CURRENT, HAS),
        "main.py": "from compat import OLD, LossScaleOptimizer\nopt = {} if OLD else {}\n".format(
            *CALLS
        ),
    }
    for name, source in files.items():
        command_line.path(name).write_text(source)
    argv = ["migrate", ".", "--write", "--allow-dirty", "--report", "json", "--to", "shim"]
    for _ in range(2):
        findings = json.loads(command_line.run(*argv).out)["findings"]
        found = [finding for finding in findings if finding["code"] == "LS908"]
        assert {finding["outcome"] for finding in found if finding["path"] == "main.py"} == {
            outcome.value
        }


@pytest.mark.parametrize("imports", [(LEGACY, CURRENT), (CURRENT, LEGACY)])
@pytest.mark.parametrize(
    "uses",
    [
        "{1}",
        "if gpu:\n    {1}\nelse:\n    {2}",
        "if is_first:\n    {1}\nelse:\n    {2}",
        "if 'dynamic' in vars(LossScaleOptimizer):\n    {2}\nelse:\n    {1}",
        "opt = old() if {0} else new()\n{1}",
        "if {0}:\n    LossScaleOptimizer(old, 8)\nelse:\n    LossScaleOptimizer(new, 8)",
        "if {0} and isinstance(opt, (Other, LossScaleOptimizer)):\n    opt = opt.inner",
        "if {0}:\n    {1}\nelse:\n    raise RuntimeError",
    ],
)
def test_uses_that_fit_an_import_that_is_tried_are_right(uses, imports):
    source = """\
try:
    import tensorflow as tf
    {}
    is_first = True
except ImportError:
    {}
    is_first = False
""".format(*imports)
    source += uses.format(HAS, *CALLS) + "\n"
    found = transformed(source, TARGETS["shim"]).findings
    assert [finding.outcome for finding in found if finding.code == "LS908"] == [Safety.SAFE]


MODULES = {
    "in both branches": (
        "if OLD:\n    mp = tf.keras.mixed_precision.experimental\n"
        "else:\n    mp = tf.keras.mixed_precision\n"
    ),
    "as a default": (
        "mp = tf.keras.mixed_precision\nif OLD:\n    mp = tf.keras.mixed_precision.experimental\n"
    ),
    "in two statements": (
        "if OLD:\n    mp = tf.keras.mixed_precision.experimental\n"
        "if not OLD:\n    mp = tf.keras.mixed_precision\n"
    ),
    "by imports": (
        "if OLD:\n    import tensorflow.keras.mixed_precision.experimental as mp\n"
        "else:\n    import tensorflow.keras.mixed_precision as mp\n"
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", MODULES)
def test_module_of_each_version_is_renamed(form, target):
    """And the names that are read from it need no edit, as the shim's modules have them."""
    old = "OLD = version.parse(tf.__version__) < version.parse('2.4')\n"
    source = f"{HEAD}{old}{MODULES[form]}opt = mp.LossScaleOptimizer(opt)\n"
    first = transformed(source, TARGETS[target])
    after = first.source.decode()
    assert "tf.keras.mixed_precision" not in after
    assert "tensorflow.keras.mixed_precision" not in after
    assert not [finding for finding in first.findings if finding.is_left]
    again = transform(first.source, TARGETS[target])
    assert again.source == first.source
    assert not [finding for finding in again.findings if finding.is_left]


@pytest.mark.parametrize("probe", ["hasattr({1}, {0})", "{} in dir({})"])
def test_what_tests_the_version_is_not_renamed(probe):
    """The shim's module has the names of every version."""
    test = probe.format("'set_global_policy'", "tf.keras.mixed_precision")
    source = f"{HEAD}if not ({test}):\n    {KERAS}.experimental.set_policy('mixed_float16')\n"
    assert test in transformed(source, TARGETS["shim"]).source.decode()


@pytest.mark.parametrize(
    ("test", "is_text"),
    [
        ("tf.__version__ < '2.4'", True),
        ("tf.__version__[2] < '4'", True),
        ("float(tf.__version__[:3]) < 2.4", True),
        ("int(tf.__version__.split('.')[1]) < 4", False),
        ("tf.__version__.split('.')[0] < '2'", False),
        ("[int(n) for n in tf.__version__.split('.')[:2]] < [2, 4]", False),
        ("version.parse(tf.__version__) < version.parse('2.4')", False),
    ],
)
def test_versions_that_are_compared_as_text_are_reported(test, is_text):
    source = f"{HEAD}if {test}:\n    {KERAS}.experimental.set_policy('mixed_float16')\n"
    result = transformed(source, TARGETS["shim"])
    assert ("LS913" in [finding.code for finding in result.findings]) is is_text


def test_a_branch_is_reported_at_its_first_name_in_every_run():
    source = f"""\
{HEAD}try:
    from tensorflow.keras.mixed_precision import LossScaleOptimizer, Policy
except ImportError:
    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer, Policy
"""
    first = transformed(source, TARGETS["final, Keras 3"])
    again = transform(first.source, TARGETS["final, Keras 3"])
    for result in (first, again):
        found = [finding.symbol for finding in result.findings if finding.code == "LS908"]
        assert found == ["LossScaleOptimizer"]


def test_a_name_that_is_bound_often_is_followed_once():
    rebinds = "    flag = flag or other\n    if flag:\n        opt = tf.foo(opt)\n" * 150
    source = f"{HEAD}def make(opt, flag):\n{rebinds}    return flag and {OLD}(opt)\n"
    result = transformed(source.replace("tf.foo", OLD), TARGETS["shim"])
    assert not [finding for finding in result.findings if finding.code == "LS908"]


WRAP = f"opt = {OLD}(opt, 'dynamic')"
CONTRIB = "opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)"
RIGHT_AS_THEY_ARE = {
    "a legacy name in the branch that is taken": "if tf.__version__.startswith('2.'):\n"
    f"    {WRAP}\nelse:\n    {CONTRIB}\n",
    "branches for two ranges, as in prouast/prpy": """\
if version.parse(tf.__version__) <= version.parse("2.11"):
    from keras.mixed_precision.loss_scale_optimizer import LossScaleOptimizerV3 as Scaled
elif version.parse(tf.__version__) > version.parse("2.11"):
    from keras.mixed_precision.loss_scale_optimizer import LossScaleOptimizerV3 as Scaled
else:
    raise ImportError
opt = Scaled(opt)
""",
    "a class test of a private path, as in Cerebras/modelzoo": """\
from tensorflow.python.training.experimental.loss_scale_optimizer import (
    MixedPrecisionLossScaleOptimizer,
)
if isinstance(opt, MixedPrecisionLossScaleOptimizer) or isinstance(opt, tf.Module):
    opt = MixedPrecisionLossScaleOptimizer(opt, 8)
""",
    "a class test of a public class by its private path": "from tensorflow.python.training import "
    f"optimizer\nif isinstance(opt, optimizer.Optimizer):\n    {WRAP}\n",
    "a test for what another statement needs, as in fastestimator/fastestimator": f"""\
def make(opt):
    if hasattr(opt, "_create_hypers"):
        opt._create_hypers()
    {WRAP}
    return opt
for name in make(opt).names:
    make(name)
""",
    "a test for a module that every version has": "if hasattr(tf, 'keras') and "
    f"hasattr(tf.keras, 'mixed_precision'):\n    {WRAP}\n",
    "a class that is looked for by its name, as in Cerebras/modelzoo": "def wrap(opt):\n"
    "    names = [one.__name__ for one in type(opt).__mro__]\n    if 'OptimizerV2' in names:\n"
    f"        return {OLD}(opt, 8)\n    raise ValueError(opt)\n",
    "an error without eager execution": "def wrap(opt):\n    if not tf.executing_eagerly():\n"
    f"        raise RuntimeError\n    {WRAP}\n    return opt\n",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", RIGHT_AS_THEY_ARE)
def test_what_scales_on_every_version_needs_nothing(form, target):
    source = HEAD.replace('__version__ < "2.4"', "test") + RIGHT_AS_THEY_ARE[form]
    result = transformed(source, TARGETS[target])
    assert not any(reported.outcome is Safety.MANUAL for reported in result.findings)


@pytest.mark.parametrize(
    "form", ["if {}:\n    {}\nelse:\n    raise E", "if not {}:\n    raise E\n{}"]
)
def test_another_branch_that_raises_is_named(form):
    has = "hasattr(tf.keras.mixed_precision, 'experimental')"
    result = transformed(f"import tensorflow as tf\n{form.format(has, WRAP)}\n", Options())
    (finding,) = (reported for reported in result.findings if reported.outcome is Safety.MANUAL)
    assert "the other one raises an error: write tfls.keras" in finding.message


def test_a_sum_over_shards_scales_no_loss():
    """In a second run, too, when it is no legacy name any more."""
    source = (
        "import tensorflow as tf\n"
        "opt = tf.contrib.tpu.CrossShardOptimizer(opt)\n"
        "try:\n    import tensorflow.contrib as contrib\n"
        "except ImportError:\n    contrib = None\n"
        "if contrib is not None:\n"
        "    opt = contrib.mixed_precision.LossScaleOptimizer(opt, manager)\n"
    )
    for target in ("shim", "final, Keras 3"):
        for _ in range(2):
            result = transformed(source, TARGETS[target])
            found = [finding for finding in result.findings if finding.code == "LS908"]
            assert [finding.outcome for finding in found] == [Safety.MANUAL]
            source = result.source.decode()


@pytest.mark.parametrize(
    "imported",
    ["from tensorflow.keras import layers", "from tensorflow.python.framework import ops"],
)
def test_what_is_missing_only_without_tensorflow_is_no_flag(imported):
    name = imported.split()[-1]
    source = (
        f"try:\n    import tensorflow as tf\n    {imported}\nexcept ImportError:\n"
        f"    {name} = None\nif {name}:\n"
        '    opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")\n'
    )
    findings = transformed(source, TARGETS["shim"]).findings
    assert not [finding for finding in findings if finding.code == "LS908"]
