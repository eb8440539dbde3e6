"""The optimizer is made in one file, passed on in a second, and tested in a third.

Each program is safe by evidence in all three files, and falls when any piece of it is removed.
"""

import pytest
from several_files import migrate

FINAL = "tf.keras.mixed_precision.LossScaleOptimizer"
EXPERIMENTAL = "tf.keras.mixed_precision.experimental.LossScaleOptimizer"
OPTIM = """\
import tensorflow as tf


def build():
    return {wrap}
"""
TRAINER = """\
import tensorflow as tf


class Trainer:
    def __init__(self, opt, clip=None):
        self.opt = opt

    def scaled(self, loss):
        if isinstance(self.opt, {name}):
            loss = self.opt.get_scaled_loss(loss)
        return loss
"""
FUNCTION = """\
import tensorflow as tf


def scaled(loss, opt=None):
    return opt.get_scaled_loss(loss) if isinstance(opt, {name}) else loss
"""
METHOD = """\
import tensorflow as tf


class Trainer:
    def scaled(self, loss, opt):
        return opt.get_scaled_loss(loss) if isinstance(opt, {name}) else loss
"""
SEEN = {
    "an argument of a class": (
        {"trainer.py": TRAINER},
        "from optim import build\nfrom trainer import Trainer\n\ntrainer = Trainer(build())\n",
    ),
    "a keyword": (
        {"trainer.py": TRAINER},
        "import optim\nimport trainer\n\nmine = trainer.Trainer(clip=1, opt=optim.build())\n",
    ),
    "an argument of a function": (
        {"trainer.py": FUNCTION},
        "from optim import build\nfrom trainer import scaled\n\nopt = build()\nscaled(1, opt)\n",
    ),
    "nothing or an optimizer": (
        {"trainer.py": FUNCTION},
        "from optim import build\nfrom trainer import scaled\n\nscaled(1, build())\nscaled(1)\n",
    ),
    "through a function of another file": (
        {"trainer.py": FUNCTION, "step.py": "import trainer\n\n\ndef step(opt):\n"
         "    return trainer.scaled(1, opt)\n"},
        "from optim import build\nfrom step import step\n\nstep(build())\n",
    ),
    "through a module that re-exports": (
        {"trainer.py": FUNCTION, "api.py": "from optim import *\nfrom trainer import scaled\n"},
        "from api import build, scaled\n\nscaled(1, build())\n",
    ),
    "a method": (
        {"trainer.py": METHOD},
        "from optim import build\nfrom trainer import Trainer\n\nTrainer().scaled(1, build())\n",
    ),
    "in a package": (
        {"pkg/__init__.py": "", "pkg/trainer.py": TRAINER,
         "pkg/main.py": "import optim\nfrom .trainer import Trainer\n\nTrainer(optim.build())\n"},
        "from pkg import main\n",
    ),
}  # fmt: skip

# What is added to or replaced in `main.py`, and the outcome of the class test then.
REMOVED = {
    "a second call with the optimizer of a model": (
        "\nfrom trainer import Trainer\n\nTrainer(model.optimizer)\n", "", "manual"
    ),
    "a second call with something computed": ("\nTrainer(recipes.build(1))\n", "", "unsafe"),
    "a second call with what a library returns": (
        "\nimport library\n\nTrainer(library.build())\n", "", "unsafe"
    ),
    "a second call with stars": ("\nTrainer(*arguments)\n", "", "unsafe"),
    "the class passed on": ("\nrun(Trainer)\n", "", "unsafe"),
    "a subclass": ("\n\nclass Mine(Trainer):\n    pass\n", "", "unsafe"),
    "another name": ("\nT = Trainer\n", "", "unsafe"),
    "an import under another name": ("\nfrom trainer import Trainer as T\n", "", "unsafe"),
    "by its text": ('\ngetattr(trainer, "Trainer")(other)\n', "", "unsafe"),
    "a star import": ("", "from trainer import *\n\nTrainer(build())\n", "unsafe"),
    "nobody calls": ("", "from trainer import Trainer\n", "unsafe"),
    "a file that cannot be parsed": ("\nprint 'two'\n", "", "unsafe"),
}  # fmt: skip
MAIN = "from optim import build\nfrom trainer import Trainer\n\ntrainer = Trainer(build())\n"


def optim(wrap: str) -> str:
    return OPTIM.format(wrap=wrap)


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "3")], ids=" ".join)
@pytest.mark.parametrize("case", SEEN.values(), ids=SEEN)
def test_followed_to_the_constructor(case, options, command_line):
    files, main = case
    name, wrap = FINAL, FINAL + "(tf.keras.optimizers.SGD())"
    tests = {file: text.replace("{name}", name) for file, text in files.items()}
    migrated = migrate(command_line, {**tests, "main.py": main, "optim.py": optim(wrap)}, *options)
    assert {one.split(" ", 1)[1] for one in migrated.findings} == {"LS401 safe"}
    assert len(migrated.findings) == 2
    assert migrated.sources["main.py"] == main


@pytest.mark.parametrize("case", REMOVED.values(), ids=REMOVED)
def test_falls_without_its_evidence(case, command_line):
    added, instead, outcome = case
    files = {
        "optim.py": optim(FINAL + "(tf.keras.optimizers.SGD())"),
        "trainer.py": TRAINER.format(name=FINAL),
        "other.py": (instead or MAIN) + added,
    }
    if not instead:
        files["main.py"] = MAIN
    migrated = migrate(command_line, files, "--to", "shim")
    assert f"trainer.py:9 LS401 {outcome}" in migrated.findings
    assert migrated.sources["trainer.py"] == files["trainer.py"]


def test_a_notebook_that_calls_is_unknown(command_line):
    files = {
        "optim.py": optim(FINAL + "(tf.keras.optimizers.SGD())"),
        "trainer.py": TRAINER.format(name=FINAL),
        "main.py": MAIN,
        "try.ipynb": '{"cells": [{"cell_type": "code", "source": ["from trainer import Trainer\\n",'
        ' "Trainer(model.optimizer)"]}], "nbformat": 4}',
    }
    migrated = migrate(command_line, files, "--to", "shim")
    assert "trainer.py:9 LS401 unsafe" in migrated.findings


def test_one_file_of_the_program_does_not_know_its_callers(command_line):
    source = TRAINER.format(name=FINAL) + f"\n\nTrainer({FINAL}(tf.keras.optimizers.SGD()))\n"
    private = source.replace("Trainer", "_Trainer")
    for text, outcome in ((source, "unsafe"), (private, "safe")):
        migrated = migrate(command_line, {"trainer.py": text}, "--to", "shim")
        assert f"trainer.py:9 LS401 {outcome}" in migrated.findings
        ran = command_line.run("migrate", "-", "--to", "shim", stdin=text.encode())
        assert f"9:33: LS401 {outcome}" in ran.err


class TestWhatOtherFilesChange:
    """A file that imports the one with the test compiles the model, or assigns an attribute."""

    MODEL = f"""\
import tensorflow as tf


class Scaled(tf.keras.Model):
    def train_step(self, data):
        if isinstance(self.optimizer, {FINAL}):
            print("scaled")


model = Scaled()
model.compile({FINAL}(tf.keras.optimizers.SGD()))
"""
    OWN = TRAINER.format(name=FINAL).replace("= opt\n", f"= {FINAL}(opt)\n")

    @pytest.mark.parametrize(
        ("other", "outcome"),
        [
            ("import model\nimport re\n\nre.compile('x')\n", "safe"),
            ("import model\n\nmodel.Scaled().compile('sgd')\n", "manual"),
            ("import mid\n\nmid.model.Scaled().compile('sgd')\n", "manual"),
            ("import model\nfrom keras import load_model\n\nload_model('x')\n", "manual"),
            ("import os\n\nmodel.compile('sgd')\n", "safe"),
        ],
        ids=["none", "compiled", "through another file", "loaded", "not linked"],
    )
    def test_compile(self, other, outcome, command_line):
        files = {"model.py": self.MODEL, "mid.py": "import model\n", "main.py": other}
        migrated = migrate(command_line, files, "--keras", "3")
        assert f"model.py:6 LS401 {outcome}" in migrated.findings

    @pytest.mark.parametrize(
        ("other", "outcome"),
        [
            ("t.opt == 1\n", "safe"),
            ("t.opt = make()\n", "unsafe"),
            ("setattr(t, 'opt', make())\n", "unsafe"),
        ],
    )
    def test_attribute(self, other, outcome, command_line):
        files = {"trainer.py": self.OWN, "main.py": "from trainer import Trainer\n\n" + other}
        migrated = migrate(command_line, files, "--to", "shim")
        assert f"trainer.py:9 LS401 {outcome}" in migrated.findings


class TestTheSameClassOrNone:
    """A test of the experimental class is False for the final one, and the other way around."""

    WRAP = EXPERIMENTAL + "(tf.keras.optimizers.SGD(), {})"
    OTHER = "tf.mixed_precision.experimental.DynamicLossScale(multiplier=3.0)"

    def files(self, scale, test="", trainer=TRAINER):
        return {
            "optim.py": optim(self.WRAP.format(scale)),
            "trainer.py": trainer.format(name=EXPERIMENTAL) + test,
            "main.py": MAIN,
        }

    def test_both_move(self, command_line):
        migrated = migrate(command_line, self.files('"dynamic"'))
        assert migrated.findings == ["optim.py:5 LS301 safe", "trainer.py:9 LS301 safe"]

    def test_the_constructor_stays(self, command_line):
        files = self.files(self.OTHER)
        migrated = migrate(command_line, files)
        assert {one for one in migrated.findings if "LS301" in one} == {
            "optim.py:5 LS301 manual",
            "trainer.py:9 LS301 manual",
        }
        assert migrated.sources["trainer.py"] == files["trainer.py"]
        assert "resolve optim.py first" in migrated.messages

    def test_the_test_stays(self, command_line):
        files = self.files('"dynamic"', f"\n\nclass Mine({EXPERIMENTAL}):\n    pass\n")
        migrated = migrate(command_line, files)
        assert set(migrated.findings) == {
            "optim.py:5 LS301 manual",
            "trainer.py:9 LS301 manual",
            "trainer.py:14 LS301 manual",
        }
        assert migrated.sources == files
        assert "resolve trainer.py first" in migrated.messages

    def test_a_third_file_stays_with_them(self, command_line):
        other = TRAINER.replace("Trainer", "Other").format(name=EXPERIMENTAL)
        main = MAIN + "\nfrom other import Other\n\nOther(build())\n"
        files = {**self.files(self.OTHER), "other.py": other, "main.py": main}
        migrated = migrate(command_line, files)
        assert {one.split()[-1] for one in migrated.findings if "LS301" in one} == {"manual"}

    def test_files_without_a_flow_between_them_are_independent(self, command_line):
        files = self.files(self.OTHER)
        files["alone.py"] = optim(self.WRAP.format('"dynamic"'))
        migrated = migrate(command_line, files)
        assert "alone.py:5 LS301 safe" in migrated.findings

    def test_a_file_written_for_keras_3_keeps_its_class_and_its_test(self, command_line):
        wrap = FINAL + "(tf.keras.optimizers.SGD())"
        files = {
            "optim.py": optim(wrap) + f"\n\nopt = {wrap}\nopt.scale_loss(1.0)\n",
            "trainer.py": TRAINER.format(name=FINAL),
            "main.py": MAIN,
        }
        migrated = migrate(command_line, files, "--keras", "3")
        assert migrated.findings == ["trainer.py:9 LS401 manual"]
        assert migrated.sources == files


class TestTheClassOfKeras3:
    """`--unsafe` uses it only if no file of the run needs a method that it lacks."""

    LOOP = """\
import tensorflow as tf

opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(tf.keras.optimizers.SGD(), "dynamic")
with tf.GradientTape() as tape:
    loss = opt.get_scaled_loss(loss_of(model(x), y))
grads = tape.gradient(loss, model.trainable_variables)
grads = opt.get_unscaled_gradients(grads)
opt.apply_gradients(zip(grads, model.trainable_variables))
"""
    CLIPS = (
        "grads = opt.get_unscaled_gradients(grads)\ngrads, _ = tf.clip_by_global_norm(grads, 1)\n"
    )

    def test_a_plain_loop_in_every_file(self, command_line):
        files = {"one.py": self.LOOP, "two.py": self.LOOP}
        migrated = migrate(command_line, files, "--keras", "3", "--unsafe")
        assert all("scale_loss" in source for source in migrated.sources.values())

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(
                LOOP.replace("grads = opt.get_unscaled_gradients(grads)\n", CLIPS), id="clips"
            ),
            pytest.param(
                "def step(opt, loss):\n    return opt.get_scaled_loss(loss)\n", id="scales"
            ),
            pytest.param("get = 'get_scaled_loss'\nprint 'two'\n", id="cannot be parsed"),
        ],
    )
    def test_not_if_another_file_needs_more(self, other, command_line):
        command_line.write(one=self.LOOP.encode(), two=other.encode())
        argv = ("migrate", ".", "--write", "--keras", "3", "--unsafe")
        command_line.run(*argv)
        after = command_line.bytes_on_disk()
        assert b"tfls.keras.mixed_precision" in after["one.py"]
        assert b".scale_loss" not in after["one.py"]
        command_line.run(*argv)
        assert command_line.bytes_on_disk() == after
