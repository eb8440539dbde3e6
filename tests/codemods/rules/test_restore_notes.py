"""LS409 notes each way in which a program restores beside an optimizer, and nothing else."""

import json
import textwrap

import pytest
from tf_lossscale_codemods.model import Options
from verbs import transformed

HEAD = """\
import tensorflow as tf

opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
"""
MADE = "tf.train.Checkpoint(net=net, opt=opt)"
NOTED = {
    "an attribute of an object": f"""
        class Trainer:
            def __init__(self):
                self.state = {MADE}
            def resume(self):
                self.state.restore("run/c")
        """,
    "an attribute that another object has": f"""
        class Trainer:
            def __init__(self):
                self.ckpt = {MADE}
        Trainer().ckpt.restore("run/c")
        """,
    "a manager": f"""
        tf.train.CheckpointManager({MADE}, "run", 3).restore_or_initialize()
        """,
    "a manager that is passed": "def f(m):\n    m.restore_or_initialize()\n",
    "the latest": f"""
        {MADE}.restore(tf.train.latest_checkpoint("run")).expect_partial()
        """,
    "a parameter": "def resume(ckpt, path):\n    ckpt.restore(path)\n",
    "what a function returns": f"def make():\n    return {MADE}\nmake().restore('run/c')\n",
    "a method as a value": f"restore = {MADE}.restore\nrestore('run/c')\n",
    "an element": f"state = {{'ckpt': {MADE}}}\nstate['ckpt'].restore('run/c')\n",
    "a global name": f"def f():\n    global c\n    c = {MADE}\ndef g():\n    c.read('run/c')\n",
    "a subclass": "class C(tf.train.Checkpoint):\n    pass\nC(net=net).restore('run/c')\n",
    "a walrus": f"if (c := {MADE}):\n    c.restore('run/c')\n",
    "weights by name": "net.load_weights('w.h5', by_name=True)\n",
    "weights of itself": """
        class Net(tf.keras.Model):
            def warm(self):
                self.load_weights("w")
        """,
    "a model": "tf.keras.models.load_model('m', compile=False)\n",
    "an imported function": """
        from tensorflow.keras.models import load_model
        load_model("m")
        """,
    "a Saver": "tf.compat.v1.train.Saver().restore(session, 'run/m')\n",
    "initializers": "tf.compat.v1.train.init_from_checkpoint('run/m', {'/': 'net/'})\n",
    "a backup": "callbacks = [tf.keras.callbacks.experimental.BackupAndRestore('b')]\n",
}
NOT_NOTED = {
    "a class of the file": """
        class Window:
            def restore(self):
                pass
        Window().restore()
        """,
    "a model that reads its weights itself": """
        class Net(tf.keras.Model):
            def load_weights(self, path):
                pass
        Net().load_weights("w")
        """,
    "another library": "import git\ngit.Repo('.').restore('file')\n",
    "a canvas": "def f(canvas):\n    canvas.restore()\n    canvas.read('x')\n",
    "a file": "with open('x') as file:\n    file.read()\n",
    "a function of the file": "def load_model(path):\n    pass\nload_model('m')\n",
    "a snapshot of another library": """
        import snapshots
        checkpoint = snapshots.Checkpoint()
        checkpoint.restore("c")
        """,
    "a model of another library": "import torch\ntorch.nn.Module().load_weights('w')\n",
}
COMPILED = """\
import tensorflow as tf

tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
net.compile("adam", "mse")
net.load_weights("w")
"""


def codes(source):
    result = transformed(source, Options(keras=3))
    return [finding.code for finding in result.findings]


@pytest.mark.parametrize("case", sorted(NOTED))
def test_restores_are_noted(case):
    assert codes(HEAD + textwrap.dedent(NOTED[case])).count("LS409") == 1


@pytest.mark.parametrize(("keras", "count"), [(2, 0), (3, 1), (None, 1)])
def test_where_the_target_is_keras_3_or_unknown_the_line_has_the_names(keras, count):
    source = HEAD + f"mine = {MADE}\nmine.restore('run/c')\n"
    found = transformed(source, Options(keras=keras)).findings
    messages = [finding.message for finding in found if finding.code == "LS409"]
    assert len(messages) == count
    assert all("write tfls.checkpoints.restore('run/c', mine)" in text for text in messages)


@pytest.mark.parametrize("case", sorted(NOT_NOTED))
def test_other_methods_are_not_noted(case):
    assert "LS409" not in codes(HEAD + textwrap.dedent(NOT_NOTED[case]))


def test_compile_wraps_an_optimizer_under_a_policy():
    assert "LS409" in codes(COMPILED)


IMPORTING = f"import tensorflow as tf\nfrom optim import net, opt\nc = {MADE}\nc.restore('run/c')\n"
APART = IMPORTING.replace("from optim import net, opt\n", "net, opt = tf.Module(), tf.Module()\n")


@pytest.mark.parametrize(("main", "count"), [(IMPORTING, 1), (APART, 0)])
def test_a_file_that_imports_the_optimizer_is_noted_there(main, count, command_line):
    command_line.write(optim=HEAD.encode(), main=main.encode())
    ran = command_line.run("migrate", ".", "--keras", "3", "--report", "json")
    found = [finding for finding in json.loads(ran.out)["findings"] if finding["code"] == "LS409"]
    assert [finding["path"] for finding in found] == ["optim.py"] * count
