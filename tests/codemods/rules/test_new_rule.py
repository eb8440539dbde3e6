"""The rule that CONTRIBUTING.md adds as an example works as it is printed there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Dict

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = "tf_lossscale/_paths.py, in SYMBOLS"
RULE = "codemods/rules/v1/v1_step_loss_scale.py"
RUNS_ITS_EXAMPLES = """
from tf_lossscale_codemods.model import Target
from tf_lossscale_codemods.rules.codes import rules
from verbs import check, transformed

(rule,) = (one for one in rules() if "LS206" in one.codes)
for example in rule.examples:
    check(example)
shim = rule.examples[0]._replace(target=Target.SHIM)
print(len(rule.examples), transformed("import tensorflow as tf\\n"
    "tf.train.experimental.StepLossScale(8)\\n", shim.options).source.decode())
"""


def pieces() -> Dict[str, str]:
    """The Python blocks of the section, by the place that their first line names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n## A new rule\n")[1].split("\n## ")[0]
    return dict(re.findall(r"```python\n# ([^\n]*)\n(.*?)```", section, re.DOTALL))


@pytest.fixture
def package(tmp_path):
    """A copy of both packages with the pieces in place."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name, copy in (("tf_lossscale", "tf_lossscale"), ("codemods", "tf_lossscale_codemods")):
        shutil.copytree(str(ROOT / name), str(tmp_path / copy), ignore=ignored)
    found = pieces()
    assert set(found) == {TABLE, RULE}
    paths = tmp_path / "tf_lossscale" / "_paths.py"
    table, head = paths.read_text(encoding="utf-8"), "SYMBOLS: Tuple[Symbol, ...] = (\n"
    assert table.count(head) == 1
    paths.write_text(table.replace(head, head + found[TABLE]), encoding="utf-8")
    rule = tmp_path / RULE.replace("codemods/", "tf_lossscale_codemods/", 1)
    rule.write_text(found[RULE], encoding="utf-8")
    return tmp_path


def run(package: pathlib.Path, *arguments: str) -> str:
    places = [str(package), str(ROOT / "tests" / "codemods")]
    ran = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        cwd=str(package),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_its_examples_run_its_shim_is_used_and_its_page_is_written(package):
    printed = run(package, "-c", RUNS_ITS_EXAMPLES)
    assert printed.startswith("2 ")
    assert "tfls.train.experimental.StepLossScale(8)" in printed
    run(package, str(ROOT / "docs" / "rule_pages.py"), "pages")
    assert "LS206" in (package / "pages" / "v1-step-loss-scale.md").read_text(encoding="utf-8")
    index = (package / "pages" / "index.md").read_text(encoding="utf-8")
    assert "[LS206](v1-step-loss-scale.md)" in index


def test_the_example_passes_the_linter():
    """As a part of `make lint`; the row of the table stands in a tuple of several."""
    found = pieces()
    table = f"SYMBOLS = (\n    {found[TABLE]}    {found[TABLE]})\n"
    sources = {RULE: found[RULE], "tf_lossscale/_paths.py": table}
    for name, source in sources.items():
        for words in (["check", "--ignore", "F821,D100"], ["format", "--check"]):
            ran = subprocess.run(
                [sys.executable, "-m", "ruff", *words, "--stdin-filename", name, "-"],
                input=source,
                cwd=str(ROOT),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stdout
    assert "tests/package/test_public_api.py" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
