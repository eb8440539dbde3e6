"""`tf-lossscale --print-completion SHELL`."""

import re
import subprocess
import sys

import pytest
from tf_lossscale_codemods.cli.command import OTHER_OPTIONS

from tf_lossscale._cli.main import OTHERS, main

# Asks bash for the completions of a command line, as the Tab key does.
ASK = """
source {script}
COMP_WORDS=({words})
COMP_CWORD={index}
$(complete -p tf-lossscale | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completions(script, line):
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    code = ASK.format(script=script, words=quoted, index=len(words) - 1)
    ran = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_script_names_the_subcommands(capsys, shell):
    assert main(["--print-completion", shell]) == 0
    script = capsys.readouterr().out
    for name in ("migrate", "explain", *OTHERS):
        assert name in script


def test_bash_completes(capsys, tmp_path):
    assert main(["--print-completion=bash"]) == 0
    script = tmp_path / "script.sh"
    script.write_text(capsys.readouterr().out)
    assert "migrate" in completions(script, "tf-lossscale mi")
    assert "--unsafe" in completions(script, "tf-lossscale migrate --un")
    assert set(completions(script, "tf-lossscale migrate --to ")) >= {"shim", "final"}
    (tmp_path / "base.json").touch()
    for option in ("--baseline", "--write-baseline", "--settings"):
        found = completions(script, f"tf-lossscale migrate {option} {tmp_path}/ba")
        assert found == [f"{tmp_path}/base.json"]
    assert "LS301" in completions(script, "tf-lossscale explain LS30")
    assert "--record" in completions(script, "tf-lossscale run --re")


def test_other_subcommands_have_the_options_that_are_completed(capsys):
    assert set(OTHER_OPTIONS) == set(OTHERS)
    for name, options in OTHER_OPTIONS.items():
        main([name, "--help"])
        text = capsys.readouterr().out
        listed = re.findall(r"^  (?:-\w, )?(--[a-z]+(?:-[a-z]+)*)", text, re.MULTILINE)
        assert {*listed} == {"--help", *options}


def test_unknown_shell_and_missing_package(capsys, monkeypatch):
    assert main(["--print-completion", "fish"]) == 2
    assert "choose from bash, zsh, tcsh" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 2
    assert "tf-lossscale[completion]" in capsys.readouterr().err
