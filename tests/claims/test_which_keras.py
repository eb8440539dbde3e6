"""The commands of `docs/which-keras.md` run, and print the lines that the page names."""

import re
import runpy
import shlex

from command_parsers import entry_point
from documents import ROOT, Text, blocks

from tf_lossscale._versions.releases import RELEASES

PAGE = (ROOT / "docs" / "which-keras.md").read_text(encoding="utf-8")
SCRIPT = "import tensorflow as tf\n\nopt = tf.keras.mixed_precision.LossScaleOptimizer(opt)\n"


def command_lines():
    lines = [line for block in blocks(Text("", 1, PAGE)) for line in block.code.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("tf-loss")]


def test_doctor_prints_the_lines_that_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    assert ["doctor"] in command_lines()
    assert entry_point()(["doctor"]) == 0
    printed = dict(re.findall(r"^(\S+) {2,}(.+)$", capsys.readouterr().out, re.MULTILINE))
    for name in re.findall(r"line `([\w.]+)` shows", PAGE):
        assert printed[name]
    keras = printed["tf.keras"].partition(".")[0]
    assert f"target: Keras {keras} " in printed["migrate"]


def test_each_migrate_command_runs_and_targets_its_keras(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    commands = [words for words in command_lines() if words[0] == "migrate"]
    assert [words[-1] for words in commands] == ["3", "2"]
    for words in commands:
        status = entry_point()([*words, "--jobs", "1"])
        output = capsys.readouterr().out
        # Only Keras 3 has another class of this name.
        assert (status, "+import tf_lossscale" in output) == (
            (1, True) if "3" in words else (0, False)
        )
        assert (tmp_path / "train.py").read_text() == SCRIPT, "nothing is written"


def test_the_tested_versions_are_those_of_make_versions():
    versions = runpy.run_path(str(ROOT / "tests" / "versions" / "__main__.py"))
    rows = versions["table"](RELEASES)
    assert "\n".join([*versions["HEADER"], *rows]) in PAGE
    assert len({release.name for release in RELEASES}) == len(rows)
