"""Programs of several files that the command once split, or changed again in a second run.

All forms are migrated twice, and `several_files` compares the two results.
"""

import itertools

import pytest
from several_files import migrate, migrate_all

TARGETS = [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]]
MP = "tf.keras.mixed_precision.experimental"
CLASS = f"{MP}.LossScaleOptimizer"
FINAL = "tf.keras.mixed_precision.LossScaleOptimizer"
SHIM = "tfls.keras.mixed_precision.experimental.LossScaleOptimizer"
TF = "import tensorflow as tf\n"
OTHER_GROUPS = {
    "policies": f"{MP}.set_policy('float32')\n",
    "v1": "scale = tf.train.experimental.DynamicLossScale()\n",
    "rewrite": "def rewrite(o):\n"
    "    return tf.train.experimental.enable_mixed_precision_graph_rewrite(o)\n",
    "cross-shard": "def total(x):\n    return tf.contrib.tpu.cross_replica_sum(x)\n",
    "contrib": "def manager():\n    return tf.contrib.mixed_precision.FixedLossScaleManager(8)\n",
}
"""Legacy symbols of other groups; a file with more than three groups was once decided alone."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_files_with_many_groups_go_one_way(command_line, options):
    """Everything but the class test fits the final API in one file; both follow a third one."""
    checks = f"def is_scaled(o):\n    return isinstance(o, {CLASS})\n"
    cases = {
        f"{number} groups": {
            "a.py": "\n\n".join([TF, *itertools.islice(OTHER_GROUPS.values(), number), checks]),
            "main.py": f"{TF}import a\n\nopt = {CLASS}(inner, 'dynamic')\na.is_scaled(opt)\n",
            "rewrite.py": f"{TF}import main\n\n\nclass Mine({CLASS}):\n    pass\n",
        }
        for number in range(len(OTHER_GROUPS) + 1)
    }
    for after in migrate_all(command_line, cases, *options).values():
        assert f"isinstance(o, {SHIM})" in after["a.py"]
        assert f"opt = {SHIM}(inner" in after["main.py"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", TARGETS[1:])
def test_the_class_test_and_the_constructor_agree_whatever_the_files_are_called(
    command_line, options
):
    cases = {
        "".join(names): {
            f"{names[0]}.py": f"{TF}\n{''.join(OTHER_GROUPS.values())}\n"
            f"def is_scaled(o):\n    return isinstance(o, {CLASS})\n",
            f"{names[1]}.py": f"{TF}import {names[0]}\n\n"
            f"opt = {CLASS}(tf.keras.optimizers.SGD(), 'dynamic')\n",
            f"{names[2]}.py": f"{TF}import {names[1]}\n\n{OTHER_GROUPS['rewrite']}",
        }
        for names in itertools.permutations("abc")
    }
    after = migrate_all(command_line, cases, *options)
    for checks, main, _ in itertools.permutations("abc"):
        files = after[checks + main + _]
        tested = files[f"{checks}.py"].partition("isinstance(o, ")[2].partition(")")[0]
        assert tested == files[f"{main}.py"].partition("opt = ")[2].partition("(")[0]


REGISTRIES = {
    "a folder that is listed": "import importlib\nimport os\n\nREGISTRY = {}\n"
    "for f in sorted(os.listdir(os.path.dirname(__file__))):\n"
    "    if f.endswith('.py') and not f.startswith('_'):\n"
    "        REGISTRY[f[:-3]] = importlib.import_module('wrappers.' + f[:-3]).wrap\n",
    "a glob": "import glob\nimport importlib\nimport os\n\nREGISTRY = {\n"
    "    f: importlib.import_module(f'{__name__}.{os.path.basename(f)[:-3]}')\n"
    "    for f in glob.glob(os.path.join(os.path.dirname(__file__), '[a-z]*.py'))\n}\n",
    "pkgutil": "import importlib\nimport pkgutil\n\nREGISTRY = {}\n"
    "for found in pkgutil.iter_modules(__path__):\n"
    "    loader = found.module_finder.find_module(found.name)\n"
    "    REGISTRY[found.name] = loader.load_module(found.name)\n",
    "__import__": "REGISTRY = {\n    f: __import__('wrappers.' + f, fromlist=['wrap'])\n"
    "    for f in ('am' + 'p',)\n}\n",
    "a specification": "from importlib import util\nfrom pathlib import Path\n\nREGISTRY = {}\n"
    "for path in Path(__file__).parent.glob('[a-z]*.py'):\n"
    "    spec = util.spec_from_file_location(path.stem, path)\n"
    "    module = util.module_from_spec(spec)\n    spec.loader.exec_module(module)\n"
    "    REGISTRY[path.stem] = module.wrap\n",
    "exec": "import os\n\nREGISTRY = {}\nfor f in os.listdir(os.path.dirname(__file__)):\n"
    "    space = {}\n    exec(compile(open(f).read(), f, 'exec'), space)\n"
    "    REGISTRY[f] = space.get('wrap')\n",
    "a lazy attribute of the package": "import importlib\n\n\ndef __getattr__(name):\n"
    "    return importlib.import_module('.' + name, __name__)\n",
}
CORE = f"""\
import tensorflow as tf


class LoggedScale({CLASS}):
    steps = 0


def is_scaled(opt):
    return isinstance(opt, {CLASS})
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_a_registry_of_files_is_part_of_the_program(command_line, options):
    cases = {
        registry: {
            "main.py": "import core\nimport wrappers\n\ncore.is_scaled(wrappers.REGISTRY)\n",
            "core.py": CORE,
            "wrappers/__init__.py": text,
            "wrappers/amp.py": f"{TF}\n\ndef wrap(opt):\n    return {CLASS}(opt, 'dynamic')\n",
        }
        for registry, text in REGISTRIES.items()
    }
    after = migrate_all(command_line, cases, *options)
    split = [case for case in cases if f"(opt, {SHIM})" not in after[case]["core.py"]]
    split += [case for case in cases if f"return {SHIM}(" not in after[case]["wrappers/amp.py"]]
    assert not split


SPELLINGS = {
    "an import": "from tensorflow.keras.mixed_precision import experimental as mp\n{load}\n"
    "mp.set_policy('float32')\n\n\n"
    "def is_scaled(o):\n    return issubclass(type(o), mp.LossScaleOptimizer)\n",
    "an assignment": "keras = tf.keras\nmp = keras.mixed_precision.experimental\n{load}\n"
    "scale = tf.train.experimental.DynamicLossScale()\nmp.set_policy('float32')\n",
    "an import that may fail": "try:\n    from tensorflow.contrib import mixed_precision as amp\n"
    "except ImportError:\n    amp = None\n{load}\n\n\n"
    "def manager():\n    return amp.FixedLossScaleManager(8)\n",
    "a string": f"{{load}}\nmp = {MP}\nprint(hasattr(mp, 'set_policy'))\n{OTHER_GROUPS['v1']}",
}
"""How a file that loads another one reaches legacy symbols."""
LOADED = """\
import tensorflow as tf
from tensorflow.keras{space} import {name}

policy = {path}.Policy('mixed_float16')


class Mine({path}.LossScaleOptimizer):
    steps = 0


def rewrite(o):
    return tf.train.experimental.enable_mixed_precision_graph_rewrite(o)
"""
MODULES = [
    {"space": "", "name": "mixed_precision", "path": "mixed_precision.experimental"},
    {"space": ".mixed_precision", "name": "experimental", "path": "experimental"},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_what_a_loader_reads_of_tensorflow_is_not_read_of_the_loaded_file(command_line, options):
    """Or the new paths of the loader would decide about the loaded file in a second run."""
    cases = {}
    names = [("a", "b", "'b'"), ("b", "a", "str('a')")]
    for text, module, files in itertools.product(SPELLINGS.values(), MODULES, names):
        loader, loaded, name = files
        load = f"other = importlib.import_module({name})"
        cases[f"{text} {module['name']} {loader}"] = {
            f"{loader}.py": f"{TF}import importlib\n{text.format(load=load)}",
            f"{loaded}.py": LOADED.format(**module),
        }
    after = migrate_all(command_line, cases, *options)
    files = [text for case in cases for text in after[case].values() if "class Mine" in text]
    assert len(files) == len(cases)
    is_for_shim = options == TARGETS[0]
    assert all(("from tf_lossscale.keras" in text) is is_for_shim for text in files)


def own_import_beside_a_star(name, imported, lines):
    """The scale goes into the constructor, so that nothing needs the import any more."""
    return {
        "main.py": f"{TF}{''.join(lines)}\nopt = {CLASS}(\n    tf.keras.optimizers.SGD(0.1), "
        f"{name}.DynamicLossScale(16.0, 2)\n)\n",
        "c.py": f"from tensorflow.mixed_precision import {imported}\n\n\ndef four():\n"
        f"    return {name}.FixedLossScale(4.0)\n",
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_an_import_that_the_edit_removes_decides_nothing(command_line, options):
    """Neither the first run nor the second; another file binds the same name."""
    cases = {}
    for imported in ("experimental as scales", "experimental"):
        name = imported.split()[-1]
        own = f"from tensorflow.mixed_precision import {imported}\n"
        for other in ("from c import *\n", f"from c import {name}\n"):
            for lines in itertools.permutations([own, other]):
                cases["".join(lines)] = own_import_beside_a_star(name, imported, lines)
    for after in migrate_all(command_line, cases, *options).values():
        assert "tensorflow.mixed_precision import" not in after["c.py"]


LADDER = """\
import tensorflow as tf
{flag}


class Settings:
    def __init__(self):
        if {test}:
            self.module = tf.keras.mixed_precision.experimental
        else:
            self.module = tf.keras.mixed_precision

    def wrap(self, optimizer):
        options = dict(loss_scale="dynamic") if {test} else dict()
        return self.module.LossScaleOptimizer(optimizer, **options)


opt = Settings().wrap(inner)
print(opt.get_scaled_loss(loss))
"""
FLAGS = {
    "version[0] == 2 and version[1] < 4": "version = [int(n) for n in tf.__version__.split('.')]",
    "MINOR < 4": "MAJOR, MINOR = map(int, tf.__version__.split('.')[:2])",
    "not hasattr(tf.keras.mixed_precision, 'LossScaleOptimizer')": "",
    "compat.OLD": "import compat",
}


@pytest.mark.sampled(2, each="test")
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "3"]])
@pytest.mark.parametrize("test", FLAGS)
def test_a_ladder_of_modules_in_an_attribute_runs_on_keras_3(command_line, test, options):
    """As in deepfakes/faceswap, 2021: both modules are renamed, or the new one is reported."""
    files = {
        "compat.py": f"{TF}\nOLD = tf.__version__.startswith('2.3')\n",
        "main.py": LADDER.format(flag=FLAGS[test], test=test),
    }
    result = migrate(command_line, files, *options)
    assert "self.module = tfls.keras.mixed_precision.experimental\n" in result.sources["main.py"]
    new = "self.module = tfls.keras.mixed_precision\n"
    reported = [line for line in result.findings if line.endswith("manual")]
    assert new in result.sources["main.py"] or reported


LOOP_OF_AN_IMPORTED_OPTIMIZER = """\
import tensorflow as tf
from optim import opt

v = tf.Variable(1.0)
with tf.GradientTape() as tape:
    loss = opt.get_scaled_loss(v * v)
grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))
opt.apply_gradients(zip(grads, [v]))
"""


@pytest.mark.parametrize("maker", [f"{CLASS}(inner, 'dynamic')", f"{FINAL}(inner)"])
def test_an_optimizer_has_the_methods_that_another_file_calls(command_line, maker):
    """With `--unsafe`, it once had Keras 3's class, which has none of them, without a finding."""
    files = {"optim.py": f"{TF}\nopt = {maker}\n", "main.py": LOOP_OF_AN_IMPORTED_OPTIMIZER}
    after = migrate(command_line, files, "--keras", "3", "--unsafe").sources
    assert "opt = tfls.keras.mixed_precision.LossScaleOptimizer(inner)" in after["optim.py"]
    assert after["main.py"] == LOOP_OF_AN_IMPORTED_OPTIMIZER


PLAIN_LOOP = """\
import tensorflow as tf
{}
v = tf.Variable(1.0)
opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
with tf.GradientTape() as tape:
    loss = opt.get_scaled_loss(v * v)
grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))
opt.apply_gradients(zip(grads, [v]))
{}
"""
USES = ["apply_gradients([(1.0, v)])", "minimize(v, [v])", "loss_scale", "dynamic"]


def test_a_loop_stays_where_another_file_uses_its_optimizer(command_line):
    """With `--unsafe`, Keras 3's class once divided what the other file applies by the scale."""
    passed, alone = (
        PLAIN_LOOP.format("import other\n", "other.go(opt, v)"),
        PLAIN_LOOP.format("", ""),
    )
    cases = {"alone": {"main.py": alone, "other.py": "import main\n\nprint(main.v)\n"}}
    for use in USES:
        gets = f"def go(o, v):\n    print(o.{use})\n"
        reads = f"from main import opt, v\n\nprint(opt.{use})\n"
        cases[f"gets it: {use}"] = {"main.py": passed, "other.py": gets}
        cases[f"reads it: {use}"] = {"main.py": alone, "other.py": reads}
    for case, after in migrate_all(command_line, cases, "--keras", "3", "--unsafe").items():
        assert (".scale_loss(" in after["main.py"]) is (case == "alone"), case


STEP = """\
import tensorflow as tf


class Net(tf.keras.Model):
    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.loss_of(data)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
"""


@pytest.mark.parametrize(
    "setter", [f"{MP}.set_policy", "tf.keras.mixed_precision.set_global_policy"]
)
def test_a_policy_goes_with_a_training_step_that_is_imported(command_line, setter):
    """Under Keras 3's policy, its class divided by the scale what the step had not scaled."""
    main = (
        f"{TF}from {{}} import Net\n\n{setter}('mixed_float16')\nnet = Net()\nnet.compile('sgd')\n"
    )
    cases = {
        "directly": {"main.py": main.format("net"), "net.py": STEP},
        "through another file": {
            "main.py": main.format("nets"),
            "nets.py": "from net import Net\n",
            "net.py": STEP,
        },
    }
    for case, after in migrate_all(command_line, cases, "--keras", "3").items():
        assert f"\n{setter.replace('tf.', 'tfls.', 1)}('mixed_float16')" in after["main.py"], case


POLICY = f"""\
{TF}{{imports}}
tf.keras.mixed_precision.experimental.set_policy('mixed_float16')
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.5), 'mse')
"""
STEP_OF_OPTIMIZER = """\
def step(optimizer, tape, loss, v):
    optimizer.apply_gradients(zip(tape.gradient(loss, v), v))
"""
OF_TRAINER = "    def step(self, tape, loss, v):\n        {}.apply_gradients([(loss, v)])\n"


def of_trainer(optimizer, attribute):
    """A class that applies gradients with an attribute, which is an optimizer."""
    start = f"class Trainer:\n    def __init__(self, model):\n        {attribute} = {optimizer}\n\n"
    return start + OF_TRAINER.format(attribute)


WITH_MODEL_OPTIMIZER = {
    "argument": {"main.py": f"{STEP_OF_OPTIMIZER}{POLICY}step(model.optimizer, t, l, v)\n"},
    "argument of another file": {
        "main.py": POLICY.replace("{imports}", "import steps")
        + "steps.step(model.optimizer, t, l, v)\n",
        "steps.py": STEP_OF_OPTIMIZER,
    },
    "attribute": {"main.py": POLICY + of_trainer("model.optimizer", "self.opt")},
    "attribute of the same name": {
        "main.py": POLICY + of_trainer("model.optimizer", "self.optimizer")
    },
    "getattr": {"main.py": POLICY + of_trainer("getattr(model, 'optimizer')", "self.opt")},
    "a method": {"main.py": POLICY + "step = getattr(model.optimizer, 'apply_gradients')\n"},
    **{
        case: {"main.py": f"import operator\n{POLICY}{reading}.apply_gradients(pairs)\n"}
        for case, reading in {
            "attrgetter": "operator.attrgetter('optimizer')(model)",
            "vars": "vars(model)['optimizer']",
            "the dictionary": "model.__dict__['optimizer']",
            "get of the dictionary": "vars(model).get('optimizer')",
            "a key in a variable": "vars(model)[name]",
            "the method behind getattr": "object.__getattribute__(model, 'optimizer')",
            "a name in a variable": "NAME = 'optimizer'\ngetattr(model, NAME)",
            "names of a loop": "for name in ('loss', 'optimizer'):\n    getattr(model, name)",
            "a parameter": "get = lambda x, name: getattr(x, name)\nget(model, 'optimizer')",
            "a name that is put together": "getattr(model, 'opti' + 'mizer')",
        }.items()
    },
    "a pattern": {
        "main.py": POLICY
        + "match model:\n    case tf.keras.Model(optimizer=opt):\n"
        + "        opt.apply_gradients(pairs)\n"
    },
    "attrgetter of a path": {
        "main.py": "from operator import attrgetter\n"
        + POLICY
        + "attrgetter('optimizer.apply_gradients')(model)(pairs)\n"
    },
    "methodcaller": {
        "main.py": "from operator import methodcaller\n"
        + POLICY
        + "methodcaller('apply_gradients', pairs)(model.optimizer)\n"
    },
    "a method that is put together": {
        "main.py": POLICY + "getattr(model.optimizer, f'apply_{what}')(pairs)\n"
    },
    "compiled by name": {
        "main.py": POLICY.replace("model.compile", "getattr(model, 'compile')")
        + "opt = model.optimizer\nopt.apply_gradients(pairs)\n"
    },
    "beside a class with its own": {
        "main.py": POLICY
        + of_trainer("tf.keras.optimizers.SGD(0.1)", "self.optimizer")
        + "\n\nclass Net(tf.keras.Model):\n"
        + OF_TRAINER.format("self.optimizer")
    },
    "below another file": {
        "main.py": POLICY.replace("{imports}", "import fit"),
        "fit.py": "import steps\n\ndef fit(model):\n    steps.step(model.optimizer, 0, 1, 2)\n",
        "steps.py": STEP_OF_OPTIMIZER,
    },
}
WITH_OWN_OPTIMIZER = {
    "its own attribute": {
        "main.py": POLICY + of_trainer("tf.keras.optimizers.SGD(0.1)", "self.optimizer")
    },
    "what is only looked at": {
        "main.py": POLICY
        + of_trainer("tf.keras.optimizers.SGD(0.1)", "self.opt")
        + "print(model.optimizer, model.optimizer.learning_rate, model.optimizer is None)\n"
        + "rate = getattr(model.optimizer, 'lr', None)\n"
        + "for name in ('loss', 'name'):\n    print(getattr(model, name), vars(model)['loss'])\n"
        + "loss = getattr(tf.keras.losses, config['loss'])\n"
    },
    "the step of Keras 3": {
        "main.py": STEP_OF_OPTIMIZER
        + POLICY
        + "step(model.optimizer, tape, model.optimizer.scale_loss(loss), v)\n"
    },
}


AS_VALUE = "import tensorflow as tf\n\nmp = tf.keras.mixed_precision.experimental\nuse(mp)\n"


def test_a_message_names_every_place_of_the_program(command_line):
    """Each file alone goes to the shim, too: then its message named its own place only."""
    places = {"a.py": AS_VALUE, "b.py": AS_VALUE}
    for between in (
        {"main.py": "import a, b\n"},
        {"main.py": "import to_a, to_b\n", "to_a.py": "import a\n", "to_b.py": "import b\n"},
    ):
        messages = migrate(command_line, {**places, **between}).messages
        assert "once this line and b.py:4 are changed" in messages
        assert "once this line is changed" not in messages
    apart = {"main.py": "import to_a\n", "to_b.py": "import b\n", "to_a.py": "import a\n"}
    messages = migrate(command_line, {**places, **apart}).messages
    assert messages.count("once this line is changed") == 2
    assert "b.py" not in messages


def test_a_policy_goes_with_model_optimizer(command_line):
    """On Keras 3, each of these left the weights as they were, and no finding said so."""
    cases = {**WITH_MODEL_OPTIMIZER, **WITH_OWN_OPTIMIZER}
    sources = {
        case: {name: text.replace("{imports}", "") for name, text in files.items()}
        for case, files in cases.items()
    }
    expected = {case: case in WITH_MODEL_OPTIMIZER for case in cases}
    after = migrate_all(command_line, sources, "--keras", "3")
    assert {case: "tfls" in files["main.py"] for case, files in after.items()} == expected
