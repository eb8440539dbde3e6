"""The guides of the documentation: each step for the TensorFlow that is installed.

Here that is the new one. The commands of the other environment are not run: what they change in the
program is on the page, and what the old program writes, its checkpoints and records, was recorded
(`tests/guides/record.py`). `make guides` follows both guides from start to end, in environments
that it makes.
"""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import sys
import tarfile
from typing import Dict, List, NamedTuple

import pytest
import tensorflow as tf
from follow_guide import ROOT, Follower, fits, section_of, steps_of

from tf_lossscale._cli.main import main

SKIPPED = (
    ()
    if os.environ.get("TFLS_TEST_SIZE") == "long"
    else ("pytest", "v1.jsonl", "final.jsonl", "2.21-fit.jsonl", "--steps 100")
)
"""Commands that only `make test-long` and `make guides` run: they start TensorFlow once more."""

RECORDED = ROOT / "tests" / "data" / "guides"


class Guide(NamedTuple):
    """A guide, and the versions of TensorFlow that it and its program are for.

    Attributes:
      recorded: the files that the old program writes.
      old: the TensorFlow at its beginning; at its end it is 2.21, with Keras 3.
      bridge: the step after which the program runs on each TensorFlow between them.
      between: those of our matrix.
      commands: trains the program of that step, and compares it with the old one.
    """

    recorded: str
    old: str
    bridge: int
    between: List[str]
    commands: List[str]


GUIDES = {
    "guide-tf1": Guide(
        "tf1.tar.gz",
        "1.15",
        6,
        ["2.3", "2.4", "2.8", "2.11", "2.15", "2.21 with Keras 2"],
        [
            "cp -r start run-new",
            "tf-lossscale record now.jsonl train.py --model-dir run-new",
            "tf-lossscale compare 1.15.jsonl now.jsonl",
        ],
    ),
    "guide-keras": Guide(
        "keras.tar.gz",
        "2.8",
        6,
        ["2.4", "2.11", "2.15", "2.21 with Keras 2"],
        [
            "cp start.h5 model.h5",
            "tf-lossscale record now.jsonl train.py",
            "tf-lossscale compare 2.8.jsonl now.jsonl",
        ],
    ),
}


def version() -> str:
    """Of the TensorFlow of this process, as `GUIDES` writes it."""
    number = ".".join(tf.__version__.split(".")[:2])
    return number + (" with Keras 2" if os.environ.get("TF_USE_LEGACY_KERAS") else "")


def environment_of(name: str) -> str:
    """The environment of the guide that this one stands for; empty if none."""
    return {GUIDES[name].old: "old", "2.21": "new"}.get(version(), "")


HERE = [name for name, guide in GUIDES.items() if version() in (guide.old, "2.21", *guide.between)]


class Quick(Follower):
    """Runs the commands on checkpoints in this process, which has imported TensorFlow."""

    def output(self, line: str, environment: str = "", stdin: str = "", status: int = 0) -> str:
        if not line.startswith("tf-lossscale checkpoint "):
            return super().output(line, environment, stdin, status)
        said, before = io.StringIO(), os.getcwd()
        os.chdir(str(self.folder))
        try:
            with contextlib.redirect_stdout(said):
                assert main(shlex.split(line)[1:]) == status, said.getvalue()
        finally:
            os.chdir(before)
        return said.getvalue()


def follower(name: str, folder: pathlib.Path) -> Follower:
    """Follows a guide with this interpreter, in a copy of its example."""
    environment = environment_of(name)
    recorded = "" if environment == "old" else GUIDES[name].recorded
    return _follower(name, folder, recorded, environment or "here")


def _follower(name: str, folder: pathlib.Path, recorded: str, environment: str) -> Follower:
    shutil.copytree(str(ROOT / "examples" / name), str(folder / "example"))
    if recorded:
        with tarfile.open(str(RECORDED / recorded)) as archive:
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(str(folder / "example"), **safe)
    programs = os.path.dirname(sys.executable)
    folders = [programs] if _has_command(programs) else [_command(folder / "bin"), programs]
    here = {environment: folders}
    return Quick(folder / "example", here, _path(folder), skipped=SKIPPED)


def _has_command(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "tf-lossscale"))


def _command(folder: pathlib.Path) -> str:
    """Our command, where the package is imported from its source without being installed."""
    folder.mkdir()
    script = folder / "tf-lossscale"
    main = "import sys; from tf_lossscale._cli.main import main; sys.exit(main())"
    script.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{main}' \"$@\"\n", encoding="utf-8")
    script.chmod(0o755)
    return str(folder)


def _path(folder: pathlib.Path) -> Dict[str, str]:
    """`PYTHONPATH` with the codemods under their installed name, where they are not installed."""
    if importlib.util.find_spec("tf_lossscale_codemods") is not None:
        return {}
    packages = folder / "packages"
    packages.mkdir()
    (packages / "tf_lossscale_codemods").symlink_to(ROOT / "codemods")
    return {"PYTHONPATH": os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "guide-tf1" else []) for name in HERE],
)
def test_each_step_works(name, tmp_path, read_here):
    following = follower(name, tmp_path)
    environment = environment_of(name)
    if environment:
        for step in steps_of(name):
            following.follow(step)
        assert len(following.ran) >= 8
        return
    for step in steps_of(name)[: GUIDES[name].bridge]:
        following.follow(step)
    assert following.ran == []
    printed = [following.output(command, "here") for command in GUIDES[name].commands]
    assert fits(["Same: …", "…"], printed[-1]), printed


def is_without_bump(losses: Dict[str, float], whole: Dict[str, float]) -> bool:
    """Whether losses after the stop are those of the run that was not stopped, but for rounding."""
    return all(abs(losses[step] - whole[step]) < 0.05 * whole[step] for step in losses)


@pytest.mark.skipif(version() != "2.21", reason="the program continues on Keras 3")
@pytest.mark.slow
def test_a_half_trained_run_continues_without_a_bump(tmp_path, read_here):
    """A run of TensorFlow 2.3 with Adam under mixed_float16, stopped at step 100."""
    following = _follower("guide-half-trained", tmp_path, "half-trained.tar.gz", "new")
    following.follow(section_of("guide-keras", "Your half-trained run"))
    printed = following.printed["python train.py --steps 200"]
    found = re.findall(r"^step (\d+), loss ([\d.]+), loss scale ([\d.]+)$", printed, re.M)
    traces = json.loads((ROOT / "examples" / "traces" / "half_trained.json").read_text("utf-8"))
    whole = traces["whole"]
    assert [step for step, _, _ in found] == [str(step) for step in range(105, 201, 5)]
    assert {step: float(scale) for step, _, scale in found}.items() <= whole["scale"].items()
    assert is_without_bump({step: float(loss) for step, loss, _ in found}, whole["loss"])
    assert is_without_bump(traces["continued"]["loss"], whole["loss"])
    assert not is_without_bump(traces["weights only"]["loss"], whole["loss"])


BY_HAND = {
    "from tf_lossscale.keras import": "from tensorflow.keras import",
    "get_scaled_loss": "scale_loss",
    "optimizer.loss_scale": "optimizer.dynamic_scale",
    "        gradients = optimizer.get_unscaled_gradients(gradients)\n": "",
    "        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)\n": "",
    "Adam(0.003)": "Adam(0.003, global_clipnorm=1.0)",
}
"""What the guide for Keras says to edit to remove the shim."""


@pytest.mark.slow
@pytest.mark.skipif(version() != "2.21", reason="the program continues on Keras 3")
def test_the_shim_is_removed_by_hand(tmp_path):
    """The section "Optional: remove the shim" of the guide for Keras."""
    following = _follower("guide-keras", tmp_path, GUIDES["guide-keras"].recorded, "here")
    for step in steps_of("guide-keras")[: GUIDES["guide-keras"].bridge]:
        following.follow(step)
    following.output("tf-lossscale migrate --keras 3 --write", "here")
    path = following.folder / "train.py"
    source = path.read_text("utf-8")
    for old, new in BY_HAND.items():
        assert source.count(old) == 1
        source = source.replace(old, new)
    path.write_text(source, "utf-8")
    following.output("cp start.h5 model.h5")
    said = following.output("tf-lossscale record hand.jsonl train.py", "here")
    assert said.startswith("iterations 299, "), "of 300 steps, one is skipped"
    verdict = following.output("tf-lossscale compare 2.8.jsonl hand.jsonl", "here", status=1)
    assert verdict.startswith("Different: the inner optimizers have global_clipnorm none and 1.")


def test_the_loop_of_the_example_unscales_and_clips():
    train = (ROOT / "examples" / "guide-keras" / "train.py").read_text("utf-8")
    calls = ("get_scaled_loss", "get_unscaled_gradients", "clip_by_global_norm", "apply_gradients")
    places = [train.index(f".{call}(") for call in calls]
    assert places == sorted(places)
    finetune = (ROOT / "examples" / "guide-keras" / "finetune.py").read_text("utf-8")
    assert 0 < finetune.index(".compile(") < finetune.index(".fit(")


def test_what_a_page_must_show():
    assert fits(["a", "…", "c"], "a\nb\nc\n")
    assert fits(["a…", "…"], "a b\nc")
    assert fits([], "anything")
    assert not fits(["a"], "a\nb\n")
    assert not fits(["a", "…"], "b\na\n")
