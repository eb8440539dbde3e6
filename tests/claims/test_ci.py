"""The page "In CI": its commands are typed in a repository, and do what it says."""

import json
import os
import re
import subprocess
import sys

import pytest
from documents import ROOT, Text, blocks

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
CHECK, BASELINE, HOOK, MANY = (block.code for block in blocks(Text("docs/ci.md", 1, PAGE)))
REVIEWS = re.findall(r"`(--report [^`]*)`", PAGE)
(CONTAINER,) = re.findall(r"`(git config [^`]*)`", PAGE)
POLICY = "tensorflow.keras.mixed_precision.experimental.Policy"
LEGACY = "import tensorflow as tf\n\nopt = tf.train.experimental.DynamicLossScale()\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with a retired class, which is the working directory."""
    command = tmp_path / "bin" / "tf-lossscale"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable}\nimport sys\nfrom tf_lossscale._cli.main import main\nsys.exit(main())"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    folder = tmp_path / "repositories" / "project"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(LEGACY)
    subprocess.run(["git", "init", "-q"], check=True)
    return folder


def type_(block: str) -> list:
    """The statuses of the lines of a block, and what each prints."""
    lines = block.strip().splitlines()
    ran = [
        subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        for line in lines
    ]
    assert [process.stderr for process in ran] == [""] * len(lines)
    return [(process.returncode, process.stdout) for process in ran]


def test_the_check_fails_while_a_retired_class_is_used(repository):
    ((status, text),) = type_(CHECK)
    assert status == 1
    assert text.startswith("train.py:3:7: LS2")
    assert (repository / "train.py").read_text() == LEGACY
    (repository / "train.py").write_text("import tensorflow as tf\n")
    assert type_(CHECK)[0][0] == 0


def test_a_program_that_uses_the_final_api(repository):
    final = CHECK.replace("--to shim ", "")
    assert type_(final)[0][0] == 1
    subprocess.run(["bash", "-c", final.replace("--check", "--write --allow-dirty")], check=True)
    assert "compat.v1.mixed_precision.DynamicLossScale" in (repository / "train.py").read_text()
    assert [type_(check)[0][0] for check in (final, CHECK)] == [0, 1]


def test_a_baseline_accepts_what_is_there(repository):
    assert [status for status, _ in type_(BASELINE)] == [0, 0]
    (repository / "train.py").write_text("# moved\n" + LEGACY + LEGACY.splitlines()[2])
    ((status, text),) = type_(BASELINE.splitlines()[1])
    assert (status, text.count(": LS2")) == (1, 1)


def test_what_a_baseline_accepts_is_written(repository):
    type_(BASELINE)
    write = BASELINE.splitlines()[1].replace("--check", "--write --allow-dirty")
    assert type_(write)[0][0] == 0
    assert "tf_lossscale" in (repository / "train.py").read_text()


def test_reports_for_reviews(repository):
    (github, sarif) = (type_(f"{CHECK.strip()} {option}")[0] for option in REVIEWS)
    assert (sarif[0], github[0]) == (1, 1)
    assert sarif[1].startswith("train.py:3:7: LS2")
    assert json.loads((repository / "lossscale.sarif").read_text())["runs"][0]["results"]
    assert github[1].startswith("::notice file=train.py,line=3,")


def test_paths_in_reports_are_relative_to_the_working_directory(repository, monkeypatch):
    (repository / "src").mkdir()
    (repository / "train.py").rename(repository / "src" / "train.py")
    for directory, path in ((".", "src/train.py"), ("src", "train.py")):
        monkeypatch.chdir(repository / directory)
        (github, _) = (type_(f"{CHECK.strip()} {option}")[0] for option in REVIEWS)
        assert github[1].startswith(f"::notice file={path},line=3,")
        with open("lossscale.sarif", encoding="utf-8") as file:
            (result, *_) = json.load(file)["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": path}


def test_the_hook(repository):
    (entry,) = re.findall(r"entry: (.*)", HOOK)
    (arguments,) = re.findall(r"args: \[(.*)\]", HOOK)
    assert f"{entry} {arguments.replace(',', '')}" == ("tf-lossscale migrate --check --to shim"), (
        "the command of the first section"
    )
    shipped = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert f"entry: {entry}\n" in shipped
    for line in ("pass_filenames: false", "always_run: true"):
        assert line in HOOK
        assert shipped.count(line) == 2


def test_the_hook_checks_a_commit_of_configurations(repository, tmp_path, monkeypatch):
    """With pre-commit itself; the command is the one on the path, so nothing is installed."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "store"))
    hook = re.sub("    additional_dependencies: .*\n", "", HOOK)
    hook = hook.replace("language: python", "language: system")
    (repository / ".pre-commit-config.yaml").write_text(hook)
    (repository / "train.py").unlink()
    (repository / "policy.json").write_text(json.dumps({"class": POLICY}))
    subprocess.run(["git", "add", "."], check=True)
    command = [sys.executable, "-m", "pre_commit", "run"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "policy.json:1:" in ran.stdout


def test_a_script_without_an_extension_is_checked_if_it_is_named(repository):
    (repository / "train").write_text("#!/usr/bin/env python\n" + LEGACY)
    (repository / "train.py").write_text("import train\n")
    assert [type_(check)[0][0] for check in (CHECK, f"{CHECK.strip()} train")] == [0, 1]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="changes owners, as root")
def test_a_container(repository):
    (repository / "pyproject.toml").write_text('[tool.tf-lossscale]\nto = "shim"\n')
    for name in (".", ".git", "pyproject.toml", "train.py"):
        os.chown(name, 54321, 54321)
    command = ["tf-lossscale", "migrate", "--check"]
    assert subprocess.run(command, stderr=subprocess.PIPE, check=False).returncode == 2
    (repository / ".gitignore").write_text("ignored.py\n")
    (repository / "ignored.py").write_text(LEGACY)
    named = [*command, "--settings", "pyproject.toml"]
    assert _checked(named) == (1, b"2 files checked")
    assert type_(CONTAINER) == [(0, "")]
    assert _checked(command) == _checked(named) == (1, b"1 file checked")


def _checked(command: list) -> tuple:
    """The status of a command, and how many files it has checked."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    (files,) = re.findall(rb"^\d+ files? checked", ran.stdout, re.MULTILINE)
    return ran.returncode, files


def test_many_repositories(repository, monkeypatch):
    monkeypatch.chdir(repository.parent.parent)
    ran = subprocess.run(["bash", "-c", MANY], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("1 repositories/project/\n", "")
    with open("project.json", encoding="utf-8") as file:
        assert json.load(file)["summary"]["safe"] == 1
