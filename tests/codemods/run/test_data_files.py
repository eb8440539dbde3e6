"""Configurations that name a legacy path: one finding for each, and no edit (LS912)."""

import json
import os
import time

import pytest

NEW = "tf_lossscale.keras.mixed_precision.experimental"
OLD = "tensorflow.keras.mixed_precision.experimental"
TARGETS = [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]]
NAMING = {
    "config.json": ('{{"wrap": ["{}", 8]}}\n', 12),
    "config.yaml": ("optimizer:\n  _target_: {}\n", 13),
    "config.yml": ("- !!python/name:{}\n", 17),
    "setup.cfg": ("[options]\nwrap = {}\n", 8),
    "train.gin": ("train.wrap = @{}()\n", 15),
    "train.toml": ('wrap = "{}"\n', 9),
    "names.txt": ("{}\n", 1),
    "train.ini": ("[train]\nwrap: {}\n", 7),
}


def migrate(command_line, *options):
    ran = command_line.run("migrate", ".", "--no-settings", "--report", "json", *options)
    return ran.status, json.loads(ran.out)


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("options", TARGETS)
@pytest.mark.parametrize("name", NAMING)
def test_a_path_is_reported_at_its_place_and_stays(command_line, name, options):
    text, column = NAMING[name]
    source = text.format(f"{OLD}.LossScaleOptimizer")
    command_line.path(name).write_text(source)
    status, report = migrate(command_line, "--write", "--allow-dirty", *options)
    (finding,) = report["findings"]
    assert (finding["code"], finding["outcome"], finding["applied"]) == ("LS912", "manual", False)
    assert (finding["path"], finding["line"]) == (name, source.count("\n"))
    assert (finding["column"], finding["symbol"]) == (column, "LossScaleOptimizer")
    assert f"write {NEW}.LossScaleOptimizer" in finding["message"]
    assert status == 1
    assert command_line.path(name).read_text() == source
    command_line.path(name).write_text(source.replace(OLD, NEW))
    assert migrate(command_line, *options)[1]["findings"] == []


@pytest.mark.parametrize(
    ("path", "twin"),
    [
        ("tf.contrib.tpu.CrossShardOptimizer", "tfls.contrib.tpu.CrossShardOptimizer"),
        ("tensorflow.contrib.tpu:CrossShardOptimizer", "tf_lossscale.contrib.tpu,"),
        ("tensorflow.contrib.mixed_precision", "tf_lossscale.contrib.mixed_precision,"),
        (f"{OLD}.Policy.name", f"{NEW}.Policy,"),
        (
            "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite",
            "tf_lossscale.train.experimental.enable_mixed_precision_graph_rewrite",
        ),
        (
            "tensorflow.python.keras.mixed_precision.loss_scale_optimizer.LossScaleOptimizer",
            "tf_lossscale.keras.mixed_precision.LossScaleOptimizer",
        ),
    ],
)
def test_the_message_has_the_path_to_write(command_line, path, twin):
    command_line.path("config.yaml").write_text(f"wrap: {path}\n")
    (finding,) = migrate(command_line, "--to", "shim")[1]["findings"]
    assert f"write {twin}" in finding["message"]


def test_a_path_in_a_file_that_is_python_by_chance_is_reported(command_line):
    """For Python, it is the annotation of an attribute with another name."""
    command_line.path("names.txt").write_text("tensorflow.contrib.tpu:CrossShardOptimizer\n")
    (finding,) = migrate(command_line, "--to", "shim")[1]["findings"]
    assert finding["code"] == "LS912"


QUIET = {
    "requirements.txt": f"{OLD}.Policy\n",
    "constraints-dev.txt": f"{OLD}.Policy\n",
    "CHANGELOG.txt": f"{OLD}.Policy\n",
    "package-lock.json": f'"{OLD}.Policy"\n',
    "README.md": f"{OLD}.Policy\n",
    "notes.txt": f"We replaced {OLD}.Policy with the final class.\n",
    "listing.txt": f"opt = {OLD}.LossScaleOptimizer(opt, 8)\n",
    "flags.json": '{"mixed_precision": true, "policy": "mixed_float16"}\n',
    "final.yaml": "policy: tensorflow.keras.mixed_precision.Policy\n",
    "ours.yaml": f"policy: {NEW}.Policy\n",
    "other.yaml": "optimizer: apex.contrib.mixed_precision.LossScaleOptimizer\n",
    "silent.yaml": f"policy: {OLD}.Policy  # lossscale: ignore[LS912] read by TensorFlow 1.15\n",
    "binary.cfg": f"\0{OLD}.Policy\n",
    "data.json": f'["{OLD}.Policy"]\n' + " " * 2**20,
    ".venv/lib/config.json": f'["{OLD}.Policy"]\n',
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_configuration_or_no_legacy_path_is_left(command_line, name):
    os.makedirs(os.path.dirname(command_line.path(name)), exist_ok=True)
    command_line.path(name).write_text(QUIET[name])
    command_line.path("main.py").write_text("print()\n")
    status, report = migrate(command_line, "--to", "shim")
    assert (status, report["findings"], report["errors"]) == (0, [], [])


SILENCING = {
    "unused.yaml": ("a: x  # lossscale: ignore[LS912]\n", ["LS900"]),
    "other.yaml": (f"wrap: {OLD}.Policy  # lossscale: ignore[LS101]\n", ["LS912", "LS900"]),
    "words.yaml": (f"wrap: {OLD}.Policy  # lossscale: ignored\n", ["LS912", "LS900"]),
    "bare.toml": (f"wrap = '{OLD}.Policy'  # lossscale: ignore LS912\n", ["LS912", "LS900"]),
    "all.ini": (f"[a]\nwrap = {OLD}.Policy  # lossscale: ignore\n", []),
    "names.txt": (f"{OLD}.Policy  # lossscale: ignore LS912\n", ["LS912", "LS900"]),
    "prose.txt": ("Write `x  # lossscale: ignore[LS912]`.\n", []),
    "listing.txt": (f"opt = {OLD}.LossScaleOptimizer(opt)  # lossscale: ignore[LS301]\n", []),
    "text.json": ('["# lossscale: ignore[LS912]"]\n', []),
}


@pytest.mark.parametrize("name", SILENCING)
def test_a_comment_that_silences_nothing_is_reported(command_line, name):
    text, codes = SILENCING[name]
    command_line.path(name).write_text(text)
    status, report = migrate(command_line, "--to", "shim")
    assert [finding["code"] for finding in report["findings"]] == codes
    assert status == bool(codes)
    assert migrate(command_line, "--to", "shim", "--ignore", "LS9")[1]["findings"] == []


def test_bytes_that_are_not_utf_8_do_not_stop_the_run(command_line):
    command_line.path("old.ini").write_bytes(
        f"name = caf\xe9\nwrap = {OLD}.Policy\n".encode("latin-1")
    )
    status, report = migrate(command_line, "--to", "shim")
    assert [(reported["line"], reported["column"]) for reported in report["findings"]] == [(2, 8)]
    assert status == 1


def test_ignore_and_exclude_apply(command_line):
    command_line.path("old.yaml").write_text(f"wrap: {OLD}.Policy\n")
    assert migrate(command_line, "--ignore", "LS912")[1]["findings"] == []
    assert migrate(command_line, "--exclude", "*.yaml")[1]["findings"] == []


@pytest.mark.parametrize(
    "text",
    [
        "tensorflow" + ".keras" * 150_000,
        "tf.contrib. " * 80_000,
        "mixed_precision" + " " * 1_000_000,
    ],
    ids=["deep", "many", "spaces"],
)
def test_a_long_line_takes_little_time(command_line, text):
    command_line.path("long.json").write_text(f"tf.mixed_precision {text}")
    start = time.monotonic()
    status, _ = migrate(command_line, "--to", "shim")
    assert status in (0, 1)
    assert time.monotonic() - start < 20


def test_a_file_is_searched_once_however_it_is_named(command_line):
    command_line.path("conf").mkdir()
    command_line.path("conf/old.yaml").write_text(f"wrap: {OLD}.Policy\n")
    paths = ["conf/old.yaml", ".", "conf"]
    ran = command_line.run("migrate", *paths, "--no-settings", "--report", "json")
    assert len(json.loads(ran.out)["findings"]) == 1


def test_python_behind_a_link_is_python(command_line):
    source = f"import tensorflow as tf\np = tf{OLD[len('tensorflow') :]}.Policy('float32')\n"
    command_line.path("policy.txt").write_text(source)
    os.symlink("policy.txt", command_line.path("policy.py"))
    status, report = migrate(command_line, "--write", "--allow-dirty", "--to", "shim")
    assert (status, [reported["code"] for reported in report["findings"]]) == (0, ["LS602"])
    assert "tfls" in command_line.path("policy.txt").read_text()


@pytest.mark.parametrize("name", ["json", "sarif"])
def test_reports_of_the_command_are_no_configurations(command_line, name):
    command_line.path("old.py").write_text(f"patch('{OLD}.Policy')\n")
    argv = ["migrate", ".", "--no-settings", "--to", "shim"]
    command_line.run(*argv, "--report", f"{name}:report.json")
    assert OLD in command_line.path("report.json").read_text()
    findings = migrate(command_line, "--to", "shim")[1]["findings"]
    assert [finding["path"] for finding in findings] == ["old.py"]
