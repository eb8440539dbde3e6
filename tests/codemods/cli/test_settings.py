"""`[tool.tf-lossscale]` in pyproject.toml; the command line wins."""

import json
import os

import pytest
from command_line import CLEAN, FINAL, LEGACY, MANUAL
from tf_lossscale_codemods.cli import migrate, settings
from tf_lossscale_codemods.files import atomic_write


def test_settings_hold_and_the_command_line_wins(legacy):
    legacy.settings('to = "shim"')
    assert b"tfls" in legacy.run("migrate").out
    assert b"tfls" not in legacy.run("migrate", "--to", "final").out


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('ignore = ["LS301"]', 0),
        ('ignore = "LS3"', 0),
        ('select = ["LS1", "LS2"]', 0),
        ('select = ["LS3"]', 1),
        ("keras = 3", 1),
        ("jobs = 1", 1),
        ("mark = true", 1),
        ("unsafe = false\nallow-dirty = false\nexclude = []", 1),
        ('report = ["json"]', 1),
    ],
)
def test_each_key(legacy, text, status):
    legacy.settings(text)
    ran = legacy.run("migrate")
    hides = text.startswith(("ignore", "select"))
    shown = text.translate(str.maketrans("", "", '[]"'))
    assert ran.err == (f"settings from pyproject.toml: {shown}\n" if hides else "")
    assert ran.status == status


@pytest.mark.parametrize(
    ("text", "status", "shown"),
    [
        ('exclude = ["a.py", "b\\n"]', 0, 'exclude = a.py, "b\\n"'),
        ("unsafe = true\nallow-dirty = true", 1, "allow-dirty = true; unsafe = true"),
    ],
)
def test_keys_that_users_must_know_of_are_shown(command_line, text, status, shown):
    command_line.write(a=LEGACY, c=CLEAN)
    command_line.settings(text)
    for argv in (["migrate"], ["migrate", "--write"], ["migrate", "--report", "json"]):
        ran = command_line.run(*argv)
        assert ran.err == f"settings from pyproject.toml: {shown}\n"
    ran = command_line.run("migrate", "--no-settings")
    assert ran.err == ""


def test_keys_that_hide_findings_are_shown_before_anything_is_written(legacy, monkeypatch):
    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write, "replace", fails)
    legacy.settings('exclude = ["c.py"]')
    ran = legacy.run("migrate", "--write", "--jobs", "1")
    assert ran.status == 2
    first, second = ran.err.splitlines()
    assert first == "settings from pyproject.toml: exclude = c.py"
    assert second.startswith("a.py: error: could not be written: ")


def test_a_prefix_of_all_codes_hides_all_findings(legacy):
    legacy.settings('ignore = ["LS"]')
    ran = legacy.run("migrate")
    assert (ran.status, ran.err) == (0, "settings from pyproject.toml: ignore = LS\n")
    assert b"LS3" not in ran.out
    assert legacy.run("migrate", "--no-settings").status == 1


def test_what_the_command_line_overrides_is_not_shown(legacy):
    text = "unsafe = true\nallow-dirty = true\nexclude = ['a.py']"
    legacy.settings(text)
    ran = legacy.run("migrate", "--exclude", "x", "--no-unsafe", "--allow-dirty")
    assert (ran.status, ran.err) == (1, "")


def test_the_command_line_turns_off_what_the_settings_turn_on(command_line):
    command_line.write(a=MANUAL)
    command_line.settings("unsafe = true\nmark = true\nallow-dirty = true")
    assert b"+# TODO(LS906): " in command_line.run("migrate").out
    ran = command_line.run("migrate", "--no-unsafe", "--no-mark", "--no-allow-dirty")
    assert (ran.status, ran.err) == (1, "")
    assert b"TODO" not in ran.out


def test_by_default_there_is_a_worker_for_each_core(command_line, monkeypatch):
    asked = []
    monkeypatch.setattr(migrate, "run", lambda request: asked.append(request.jobs) or 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5}, raising=False)
    assert command_line.run("migrate").status == 0
    command_line.settings("jobs = 4")
    assert command_line.run("migrate").status == 0
    assert asked == [3, 4]


def test_a_file_can_be_named(legacy):
    legacy.settings('to = "shim"', "ci/settings.toml")
    legacy.settings("unsave = true")
    ran = legacy.run("migrate", "--settings", "ci/settings.toml")
    assert (ran.status, ran.err) == (1, "")
    assert b"tfls" in ran.out
    legacy.fails("--settings", "none.toml", says="none.toml: No such file or directory\n")
    legacy.path("empty.toml").write_text("# tf-lossscale\n")
    for name in ("a.py", "empty.toml"):
        says = f"{name}: has no settings in a table [tool.tf-lossscale]\n"
        legacy.fails("--settings", name, says=says)
    says = "--settings cannot be combined with --no-settings"
    legacy.fails("--settings", "ci/settings.toml", "--no-settings", says=says)


def test_without_settings_their_keras_is_no_pin(legacy):
    for text in ('keras = "3"', "'keras' = '3'", 'keras = "2"  # tensorflow==2.8'):
        legacy.settings(text)
        ran = legacy.run("migrate", "--check", "--no-settings", "-v")
        assert "target: Keras 2 (tensorflow 2.15.1 is installed)" in ran.err
    table = '[ tool . "tf-lossscale" ]\nkeras = "3"\n[tool.poetry.dependencies]\nkeras = "^3"\n'
    legacy.path("pyproject.toml").write_text(table)
    ran = legacy.run("migrate", "--check", "--no-settings", "-v")
    assert "target: Keras 3 (keras^3 in pyproject.toml:4)" in ran.err


def test_globs_are_relative_to_the_file_that_has_them(command_line):
    command_line.write(project__src__a=LEGACY, project__src__gen__b=LEGACY)
    command_line.settings('exclude = ["src/gen/*"]', "project/pyproject.toml")
    ran = command_line.run("migrate", "--write", "project/src")
    assert ran.status == 0
    found = command_line.bytes_on_disk()
    assert found["project/src/a.py"] == FINAL
    assert found["project/src/gen/b.py"] == LEGACY


def test_the_nearest_file_counts_and_only_that(command_line):
    command_line.write(inner__a=LEGACY)
    command_line.settings('ignore = ["LS3"]')
    assert command_line.run("migrate", "inner").status == 0
    command_line.path("inner/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert command_line.run("migrate", "inner").status == 1


def test_settings_hold_for_stdin_by_its_name(command_line):
    command_line.settings('ignore = ["LS3"]', "inner/pyproject.toml")
    ran = command_line.run("migrate", "-", "--stdin-filename", "inner/a.py", stdin=LEGACY)
    assert (ran.status, ran.out) == (0, LEGACY)


@pytest.mark.parametrize("name", ["third_party/a.py", "./third_party/b/a.py"])
def test_stdin_with_an_excluded_name_comes_back(command_line, name):
    command_line.settings('exclude = ["third_party"]')
    ran = command_line.run("migrate", "-", "--stdin-filename", name, stdin=LEGACY)
    assert (ran.status, ran.out) == (0, LEGACY)
    assert f"{name}: unchanged: matches --exclude\n" in ran.err
    assert "no files to check" not in ran.err
    words = ("--stdin-filename", name, "--report", "json")
    report = json.loads(command_line.run("migrate", "-", *words, stdin=LEGACY).err)
    assert report["findings"] == []
    ran = command_line.run("migrate", "-", "--stdin-filename", "a.py", stdin=LEGACY)
    assert (ran.status, ran.out) == (1, FINAL)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "to = 'shim'\nunsave = true",
            "toml:3: {table} has the unknown key 'unsave'; the keys",
        ),
        ("write = true", "toml:2: {table} has the unknown key"),
        ("# x\n'to' = 'kears'", "toml:3: {table} to: invalid choice: 'kears'"),
        ("keras = true", "toml:2: {table} keras: must be"),
        ("jobs = 0", "jobs: '0' must be a whole number, 1 or more"),
        ("unsafe = 'yes'", "unsafe: must be true or false"),
        ("select = [1]", "select: must be a list of strings"),
        ("select = ['LS777']", "unknown rule code LS777"),
        ("report = ['xml']", "unknown report format 'xml'"),
        ("[tool.tf-lossscale", "toml:2: is not valid TOML: "),
        ("[tool.tf-lossscale.deep]\nx = 1", "toml:2: {table} has the unknown key 'deep'"),
    ],
)
def test_errors_are_reported_with_their_place(legacy, text, says):
    legacy.settings(text)
    ran = legacy.run("migrate", "--write")
    assert ran.status == 2
    assert says.format(table="[tool.tf-lossscale]") in ran.err
    assert ran.out == b""
    assert legacy.bytes_on_disk()["a.py"] == LEGACY


def test_a_file_that_is_not_text_is_reported(command_line):
    command_line.path("pyproject.toml").write_bytes(b"[tool.tf-lossscale]\nto = '\xff'\n")
    command_line.fails(says="pyproject.toml:2: is not UTF-8")


def test_a_file_without_our_table_is_not_even_parsed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("this is no TOML\n")
    assert settings.load(["."]).values == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.tf_lossscale]\nto = 'shim'", "toml:1: [tool.tf_lossscale] is not read; name the "),
        ("[tool]\n\n[tool.'TF-LossScale']", "toml:3: [tool.TF-LossScale] is not read"),
        ("[tool.tf_loss_scale.deep]\nx = 1", "toml:1: [tool.tf_loss_scale] is not read"),
        ("[tool]\ntf_lossscale = 1", "toml: [tool.tf_lossscale] is not read"),
        (
            "[tool.tf-lossscale]\nto = 'shim'\n[tool.tf_lossscale]\nunsafe = true",
            "toml:3: [tool.tf_lossscale] is not read; name the table [tool.tf-lossscale]\n",
        ),
    ],
)
def test_a_table_whose_name_is_nearly_right_is_reported(legacy, text, says):
    legacy.path("pyproject.toml").write_text(text)
    legacy.fails("--write", says=says)
    legacy.fails("--settings", "pyproject.toml", says=says)
    assert legacy.bytes_on_disk()["a.py"] == LEGACY
    assert legacy.run("migrate", "--no-settings").status == 1


@pytest.mark.parametrize(
    "text",
    [
        "[tool.mypy]\nmodule = 'tf_lossscale.*'\n",
        "[project]\ndependencies = ['tf_lossscale']\n",
        "tool = 'tf_lossscale'\n",
        "tf_lossscale, and no TOML\n",
    ],
)
def test_another_table_that_names_the_package_is_not_reported(legacy, text):
    legacy.path("pyproject.toml").write_text(text)
    assert "tf_lossscale" not in legacy.run("migrate").err


def test_what_is_shown_does_not_mix_with_a_report_on_stderr(command_line):
    command_line.settings("unsafe = true")
    ran = command_line.run("migrate", "-", "--report", "json", stdin=LEGACY)
    assert json.loads(ran.err)["version"] == 1
    ran = command_line.run("migrate", "-", stdin=LEGACY)
    assert "settings from pyproject.toml: unsafe = true\n" in ran.err
