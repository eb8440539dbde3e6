"""The search of a run, which no worker limits, takes bounded time whatever the files contain."""

import os
import re
import signal
import time

import pytest
from command_line import FINAL, LEGACY
from tf_lossscale_codemods.cli import search
from tf_lossscale_codemods.files import work_trees
from tf_lossscale_codemods.run.limits import Limits

SECONDS = 30
"""Processor time allowed for a run; most of the inputs would take hours."""

RE_EXPORT = b"from tensorflow.keras.mixed_precision import experimental as a\n"
MANY = "!=" + ",!=".join(f"2.{number}" for number in range(20, 60))


@pytest.fixture
def timed(command_line):
    """Runs the command and checks that it takes little time."""

    def run(*argv: str):
        started = time.process_time()
        ran = command_line.run("migrate", "--jobs", "1", *argv)
        assert time.process_time() - started < SECONDS
        assert "Traceback" not in ran.err
        return ran

    return run


@pytest.mark.parametrize(
    "use",
    [
        b"# import " + b"." * 300_000,
        b"import os" + b"." * 300_000,
        b"from models import a" + b" " * 6_000 + b"!",
        b"from models import a" + b" " * 6_000 + b"b\n",
        b"from" + b" " * 6_000 + b"models" + b" " * 6_000 + b"import a" + b", a" * 6_000 + b"!",
        b"from models import (\n" + b"a, \\\n" * 100_000,
        b"import models \\\n" * 30_000,
        b"\\\n" * 100_000 + b"import models\n",
        b"# import models (\n" * 30_000,
        b"patch(" * 100_000 + b"models",
    ],
    ids=lambda use: f"{use[:12]} {len(use)}",
)
def test_long_import_lines(command_line, timed, use):
    command_line.write(models=RE_EXPORT, use=use)
    assert timed().status in (0, 1, 2)


KEYS = "".join(f"k{number}.a = 1\n" for number in range(20_000))
CLAUSES = [f"tensorflow{MANY[: 190 - len(str(n))]},!=1.{n}" for n in range(4_500)]
LARGE = {
    "requirements with many clauses": ("requirements.txt", "\n".join(CLAUSES), {1}),
    "a long TOML header over many keys": (
        "pyproject.toml",
        "[tool.tf-lossscale]\n[" + ".".join("a" * 1_000) + "]\n" + KEYS,
        {1, 2},  # some tomli refuses keys of that length
    ),
    "the longest TOML keys": (
        "pyproject.toml",
        "[tool.tf-lossscale]\n[x]\n"
        + "".join(".".join("a" * 1_000) + f".b{number} = 1\n" for number in range(9)),
        {1, 2},
    ),
    "blank lines above a requirement": (
        "pyproject.toml",
        "[tool.poetry.dependencies]\n" + "\n" * 400_000 + "tensorflow = '2.10'\n",
        {1},
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_files_with_versions_or_settings(legacy, timed, kind):
    name, text, statuses = LARGE[kind]
    legacy.path(name).write_text(text)
    assert timed().status in statuses


def test_many_globs_over_deep_directories(command_line, timed):
    globs = [f"{'*a' * 20}{number}" for number in range(100)]
    command_line.settings(f"exclude = {globs}")
    deepest = "/".join(["a" * 5] * 200)
    os.makedirs(deepest)
    command_line.path(f"{deepest}/a.py").write_bytes(LEGACY)
    assert timed().status == 1


@pytest.mark.parametrize("size", [10**9, 10**8])
def test_large_sparse_files(command_line, timed, size):
    for number in range(60):
        with open(f"f{number}.py", "wb") as file:
            file.truncate(size)
    command_line.write(a=LEGACY)
    ran = timed()
    assert ran.status == 2
    assert "f59.py: error: is larger than 32 MB; raise --size-limit, or --exclude it" in ran.err
    assert ("f0.py" in ran.err) == (size > 10**8)


# What no limit of its own ends


@pytest.fixture
def stuck(monkeypatch):
    """The search of a file with this content backtracks for hours."""
    evil = re.compile(rb"(a+)+b")
    monkeypatch.setattr(
        search, "may_concern", lambda data: evil.search(data) or b"LossScale" in data
    )
    return b"a" * 60 + b"c"


def test_a_file_that_takes_too_long_is_one_line(command_line, timed, stuck):
    command_line.write(a=LEGACY, b=stuck, c=LEGACY)
    ran = timed("--write", "--time-limit", "0.4")
    assert (ran.status, ran.err) == (
        2,
        "b.py: error: took more than 0.4 seconds; raise --time-limit, or --exclude it\n",
    )
    files = command_line.bytes_on_disk()
    assert files == {"a.py": FINAL, "b.py": stuck, "c.py": FINAL}
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


@pytest.mark.parametrize("where", ["search", "git"])
def test_a_search_that_takes_too_long_ends_with_an_error(
    command_line, timed, stuck, monkeypatch, where
):
    monkeypatch.setattr(Limits, "all_seconds", 0.4)
    command_line.write(a=LEGACY, b=LEGACY + b"#" + stuck)

    def spins(*_):
        re.search(rb"(a+)+b", stuck)

    if where == "git":
        monkeypatch.setattr(work_trees, "why_not_restorable", spins)
    ran = timed("--write")
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err.startswith("tf-lossscale: error: the search took more than 0.4 seconds; ")
    assert command_line.bytes_on_disk()["a.py"] == LEGACY
