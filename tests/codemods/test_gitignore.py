"""What git ignores, against git itself."""

import os
import random
import subprocess

import pytest
from tf_lossscale_codemods.gitignore import IgnoreFiles

PATTERNS = [
    "*.py", "a", "a/", "/a", "a/b", "**/b", "a/**", "**/a/b", "a/**/b", "!*.py", "!a", "!a/",
    "*", "!*/", "?.py", "[ab].py", "[!a].py", "[a-b]*", "\\!x.py", "\\#x.py", "# comment", "",
    "x.py ", "b\\ ", "a*b", "*/b", "a/*", "!a/b", "**", "/*", "[[:alpha:]].py", "a/x.py",
    "!/a/x.py", "b.py/", "**.py", "a**b", "[", "a[", "\\", "[]a].py", "[a\\]b].py", "*[0-9]*",
    "./a", "a//b", "/", "x.p\\y",
]  # fmt: skip
NAMES = ["a", "b", "ab", "a1b"]
FILES = ["a.py", "b.py", "x.py", "!x.py", "#x.py", "].py", "a", "b", "x.py "]


def git(*arguments: str, cwd: object, stdin: str = "") -> str:
    ran = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", *arguments],
        cwd=str(cwd), input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def ours(top: str) -> set:
    """The paths that a walk comes by and finds ignored, and those below them that it never sees."""
    ignored = set()

    def walk(directory: str, files: IgnoreFiles) -> None:
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            if entry.name in (".git", ".gitignore"):
                continue
            if files.ignores(entry.path, entry.is_dir()):
                ignored.add(os.path.relpath(entry.path, top))
            elif entry.is_dir():
                walk(entry.path, files.below(entry.path))

    walk(top, IgnoreFiles.around(top))
    return ignored


def test_the_same_as_git(tmp_path):
    choices = random.Random(20)
    top = str(tmp_path)
    git("init", "-q", cwd=top)
    for first in NAMES:
        for second in NAMES:
            folder = tmp_path / first / second
            folder.mkdir(parents=True)
            for name in FILES[:3]:
                (folder / name).write_text("")
        for name in FILES[:6]:
            (tmp_path / first / name).write_text("")
    for name in FILES[:6] + FILES[8:]:
        (tmp_path / name).write_text("")
    for number in range(60):
        written = {}
        for where in (".", "a", "a/b", ".git/info"):
            name = "exclude" if where == ".git/info" else ".gitignore"
            lines = choices.sample(PATTERNS, choices.randint(0, 4))
            (tmp_path / where / name).write_text("\n".join(lines) + "\n")
            written[where] = lines
        shown = git(
            "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", cwd=top
        )
        theirs = {path.rstrip("/") for path in shown.split("\0") if path}
        # git names a directory once all in it is ignored; we name what a pattern matched.
        found = ours(top)
        checked = {
            path
            for path in all_paths(top)
            if any(is_at_or_below(path, one) for one in found)
            != any(is_at_or_below(path, one) for one in theirs)
        }
        assert not checked, (number, written)


def all_paths(top: str) -> list:
    paths = []
    for directory, directories, files in os.walk(top):
        if ".git" in directories:
            directories.remove(".git")
        for name in files:
            if name != ".gitignore":
                paths.append(os.path.relpath(os.path.join(directory, name), top))
    return paths


def is_at_or_below(path: str, above: str) -> bool:
    return path == above or path.startswith(above + "/")


@pytest.mark.parametrize("named", [".", "build", "build/deep"])
def test_a_directory_that_is_named_is_looked_into_though_it_is_ignored(tmp_path, named):
    git("init", "-q", cwd=tmp_path)
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / "build" / "deep").mkdir(parents=True)
    files = IgnoreFiles.around(os.path.realpath(str(tmp_path / named)))
    path = os.path.realpath(str(tmp_path / named / "x.py"))
    assert not files.ignores(path, is_directory=False)


def test_a_file_without_a_git_directory_counts_too(tmp_path):
    (tmp_path / ".gitignore").write_text("out\n")
    files = IgnoreFiles.around(str(tmp_path))
    assert files.ignores(str(tmp_path / "out"), is_directory=True)
