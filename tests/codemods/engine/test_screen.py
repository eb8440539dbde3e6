"""What Python's parser rules out, LibCST resolves to nothing: the run says the same without it."""

import re
import subprocess
import sys

import pytest
from command_line import LEGACY, PROGRAM
from programs.packages import package
from tf_lossscale_codemods.engine.notes import NO_NAME, NOTHING
from tf_lossscale_codemods.engine.screen import names_made, note_without_place
from tf_lossscale_codemods.engine.transform import FileWork, transform
from tf_lossscale_codemods.facts import Made
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.rules.codes import rules

OPTIONS = [
    Options(),
    Options(keras=3),
    Options(keras=None, unsafe=True),
    Options(target=Target.SHIM),
    Options(mark=True, keras=3, unsafe=True),
]
WITHOUT_PLACE = {
    "a longer name": "import session\nsession.is_mixed_precision_graph_rewrite_enabled()\n",
    "a module of TensorFlow that has no symbol": (
        "from tensorflow.python.training.experimental import mixed_precision_global_state as m\n"
        "m.is_mixed_precision_graph_rewrite_enabled()\n"
    ),
    "a function of another module of TensorFlow": (
        "from tensorflow.python.ops import gen_tpu_ops\ngen_tpu_ops.cross_replica_sum(1)\n"
    ),
    "another library": "from apex import amp\nscaled = amp.LossScaleOptimizer(1)\n",
    "a module of the final API that a package imports": (
        "from tensorflow._api.v2.compat.v1 import mixed_precision\n"
    ),
    "a star import of another module": (
        "from tensorflow.python.ops.gen_tpu_ops import *\nx = name('cross_replica_sum is one')\n"
    ),
    "a longer path in a string": (
        "x = export('__internal__.train.is_mixed_precision_graph_rewrite_enabled')\n"
    ),
    "the name of a policy": "name = 'mixed_float16'\n",
    "a key of a configuration": (
        "p = {'mixed_precision': True}\np['mixed_precision'] = p.get('mixed_precision', 1)\n"
    ),
    "a sentence": "raise ValueError('cross_replica_sum needs a shape, and mixed_precision, too')\n",
}
WITHOUT_NAME = {
    "a function of that name": "def cross_replica_sum(x):\n    pass\n\ny = cross_replica_sum(1)\n",
    "a comment": "x = 1  # LossScaleOptimizer\n",
    "a docstring": '"""See tf.keras.mixed_precision.experimental.LossScaleOptimizer."""\n',
}
UNCERTAIN = {
    "a star import": "from helpers import *\nopt = LossScaleOptimizer(opt)\n",
    "another file of the project": "from .amp import LossScaleOptimizer\n",
    "an object of unknown origin": "def f(tf):\n    return tf.train.experimental.LossScale()\n",
    "a name with several meanings": (
        "from apex import amp\n\n\ndef f(amp):\n    return amp.LossScaleOptimizer(1)\n"
    ),
    "a path in a string": "x = locate('tensorflow.keras.mixed_precision.experimental.Policy')\n",
    "the name of a class": "is_scaled = type(opt).__name__ == 'LossScaleOptimizer'\n",
    "a method that is gone": "gradients = opt.get_unscaled_gradients(gradients)\n",
    "the end of a path": "getattr(tf.keras, 'mixed_precision')\n",
    "a key that is a path": "x = modules['tensorflow.keras.mixed_precision.experimental']\n",
    "an argument that is no key": "x = read(tf.keras, 'mixed_precision')\n",
    "a comment that silences": "x = 1  # lossscale: ignore[LS301]\n",
    "the shim": "import tf_lossscale as tfls\nx = tfls.keras.mixed_precision\n",
    "what Python cannot parse": "print 'LossScaleOptimizer'\n",
}


@pytest.mark.parametrize("name", [*WITHOUT_PLACE, *WITHOUT_NAME])
def test_ruled_out(name):
    source = {**WITHOUT_PLACE, **WITHOUT_NAME}[name].encode()
    note = note_without_place(source, "a.py", Options())
    assert note == (NOTHING if name in WITHOUT_PLACE else NO_NAME)
    assert_resolved_to_nothing(source)


@pytest.mark.parametrize("name", UNCERTAIN)
def test_not_ruled_out(name):
    assert note_without_place(UNCERTAIN[name].encode(), "a.py", Options()) is None


def assert_resolved_to_nothing(source: bytes):
    for options in OPTIONS:
        note = note_without_place(source, "a.py", options)
        if note is not None:
            result = transform(source, options, "a.py")
            assert (result.source, result.findings, result.error) == (source, (), None), options
            assert result.note == note


# Without a place, each of these matters if another file of the program has one.
NEEDS = {
    "an import of the final module": "from tensorflow.keras import mixed_precision\n",
    "the same in a guard": (
        "import tensorflow as tf\n\nif tf.__version__ > '2.3':\n"
        "    import tensorflow.keras.mixed_precision as mp\n"
    ),
    "a method that is assigned": (
        "from a import B\n\n\nclass C(B):\n    get_scaled_loss = lambda self, loss: loss\n"
    ),
    "an asynchronous method": (
        "class C(B):\n    async def get_unscaled_gradients(self, gradients):\n        pass\n"
    ),
    "a method that is imported": "class C(B):\n    from a import get_scaled_loss\n",
    "a mixed policy": "name = 'mixed_float16'\n",
    "the same in bytes": "name = b'mixed_float16'\n",
    "the same in a part": "name = f'{x}, mixed_float16'\n",
    "a private attribute": "def f(opt):\n    return opt._optimizer\n",
    "a private attribute by its name": "def f(opt):\n    return getattr(opt, '_loss_scale')\n",
    "a hyperparameter": "def f(opt):\n    opt.momentum = 0.5\n",
    "a hyperparameter by its name": "def f(opt):\n    setattr(opt, 'beta_1', 0.5)\n",
    "a policy by another name": "def f(keras):\n    keras.config.set_dtype_policy('x')\n",
}
FREE = {
    "a hyperparameter that is read": "def f(opt):\n    return opt.momentum\n",
    "parts of a policy": "name = 'mixed_' 'float16', 'mixed\\x5ffloat16'\n",
    "a step": "def f(model):\n    model.optimizer.apply_gradients(())\n    model.compile('sgd')\n",
    "imports": "import importlib\nfrom . import a\nimport tensorflow as tf\ntf.x(a.y)\n",
}
KEY = "CONFIG = {'mixed_precision': True}\n\n\n"


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", [*WITHOUT_PLACE, *NEEDS, *FREE])
def test_facts_without_libcst(name, options):
    """They are those that LibCST finds, but for what is read only if another file needs it."""
    is_ruled_out = facts_are_those_of_libcst(
        (KEY + {**WITHOUT_PLACE, **NEEDS, **FREE}[name]).encode(), options
    )
    assert not (is_ruled_out and name in NEEDS)
    assert is_ruled_out or name not in FREE


def facts_are_those_of_libcst(source: bytes, options: Options) -> bool:
    """Whether the source is ruled out; then all facts must be the same nevertheless."""
    work = FileWork(source, options, "a.py", "a.py")
    found = work.facts()
    if found.exports is not None:
        return False
    resolved = FileWork(source, options, "a.py", "a.py")
    resolved._is_without_place = False
    # Nothing asks for the traits of other files where no finding can be.
    wanted = resolved.facts()._replace(asks=frozenset())
    assert found._replace(exports=work.exports()) == wanted
    return True


LEGACY_NAME = re.compile(r"\b(?:mixed_precision|experimental|get_\w+|\w*LossScale\w*|loss_scale)\b")


@pytest.mark.parametrize("seed", range(20))
def test_facts_of_random_packages_without_libcst(seed):
    """Also of what is left of them when some of their names are those of the project."""
    for name, source in package(seed).files.items():
        for options in OPTIONS[:4] if name.endswith(".py") else ():
            facts_are_those_of_libcst((KEY + source).encode(), options)
            facts_are_those_of_libcst((KEY + LEGACY_NAME.sub("x", source)).encode(), options)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_examples_of_rules(rule):
    """Whatever a rule finds is not ruled out."""
    for example in rule.examples:
        assert_resolved_to_nothing(example.before.encode())
        facts_are_those_of_libcst((KEY + example.before).encode(), example.options)
        note = note_without_place(example.before.encode(), "a.py", example.options)
        assert note is None or example.outcome is None, example.id


def test_libcst_is_not_imported_if_nothing_is_to_do(tmp_path):
    """Importing it takes longer than searching a thousand files."""
    for number, source in enumerate([*WITHOUT_PLACE.values(), *WITHOUT_NAME.values()]):
        (tmp_path / f"m{number}.py").write_text(source)
    program = PROGRAM.replace(
        "sys.exit(main())",
        "status = main()\nprint('libcst' in sys.modules)\nsys.exit(status)",
    )
    command = [sys.executable, "-c", program, "migrate", "--jobs", "1", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == "False"
    (tmp_path / "legacy.py").write_bytes(LEGACY)
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (1, "True")


OLD = 'tf.__version__ < "2"'
MAKING = {
    "a name": f"old = {OLD}",
    "a part of a tuple": f"old, new = {OLD}, 1",
    "a function": f"def old():\n    return {OLD}",
    "a class": f"class C:\n    old = {OLD}",
    "a method": f"class C:\n    def old(self):\n        return {OLD}",
    "an attribute": f"x.old = {OLD}",
    "an item of an attribute": f"x.old['a'] = {OLD}",
    "an item of a name": f"old = {{}}\nold['a'] = {OLD}",
    "a condition": f"if {OLD}:\n    old = 1",
    "an import": "from flags import new as old",
    "a star": "from pkg.flags import *",
    "a name with a type": f"old: bool = {OLD}",
    "another spelling": f"ﬂag = {OLD}",
}
READING = {
    "an attribute": f"print(x.old, {OLD})",
    "a parameter": f"def f(old={OLD}):\n    return old",
    "a keyword": f"f(old={OLD})",
    "a comment": f"new = {OLD}  # old",
    "another name": f"older = x.older = {OLD}",
}
NAMES_ASKED = ("old", ".old", "ﬂag")


@pytest.mark.parametrize("name", MAKING)
def test_names_that_a_file_gives_a_value_are_looked_at(name):
    """Each name that LibCST says something about is one of them."""
    source = f"import tensorflow as tf\n{MAKING[name]}\n".encode()
    made = FileWork(source, Options(), "a.py", "a.py").made(NAMES_ASKED)
    known = {asked for asked, value in made.items() if value != Made(False)}
    assert known
    assert known <= names_made(source, NAMES_ASKED)


@pytest.mark.parametrize("name", READING)
def test_names_that_a_file_only_reads_are_not_looked_at(name):
    source = f"import tensorflow as tf\n{READING[name]}\n".encode()
    assert names_made(source, NAMES_ASKED[:2]) == frozenset()
    made = FileWork(source, Options(), "a.py", "a.py").made(NAMES_ASKED[:2])
    assert set(made.values()) == {Made(False)}
