"""What git ignores, against git itself."""

import os
import random
import subprocess
import time

import pytest
from tf_lossscale_codemods.gitignore import LARGEST, IgnoreFiles
from tf_lossscale_codemods.patterns import Patterns

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


def unwarned(path: str, why: str) -> None:
    raise AssertionError(f"{path}: {why}")


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
                walk(entry.path, files.below(entry.path, unwarned))

    walk(top, IgnoreFiles.around(top, unwarned))
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
    files = IgnoreFiles.around(os.path.realpath(str(tmp_path / named)), unwarned)
    path = os.path.realpath(str(tmp_path / named / "x.py"))
    assert not files.ignores(path, is_directory=False)


def test_a_file_without_a_git_directory_counts_too(tmp_path):
    (tmp_path / ".gitignore").write_text("out\n")
    files = IgnoreFiles.around(str(tmp_path), unwarned)
    assert files.ignores(str(tmp_path / "out"), is_directory=True)


# What patterns are made of; put together at random, most of it is nonsense, on which git decides.
PIECES = [
    b"a", b"b", b"c", b"-", b"]", b"[", b"*", b"**", b"**/", b"/**", b"/**/", b"?", b"/", b"\\",
    b"!", b"[ab]", b"[!a]", b"[^b]", b"[a-c]", b"[c-a]", b"[]]", b"[!]]", b"[a-]", b"[-a]",
    b"[\\]]", b"[a\\-c]", b"[[:alpha:]]", b"[![:digit:]b]", b"[[:nothing:]]", b"[[:alpha:]-c]",
    b"[[:]", b"[a-\\c]", b"[[:punct:]]", b" ", b"\\ ", b"\\a", b"\xc3\xa9", b"\xff", b"#", b"\r",
]  # fmt: skip
PARTS = [
    b"a", b"b", b"c", b"ab", b"abc", b"-", b"]", b"a]", b"[", b"\\", b"!a", b"#", b"\xc3\xa9",
    b"\xff", b"a b", b"a ", b"1", b"a-c", b"c:", b"a\r", b"[[:",
]  # fmt: skip


def ignored_by_patterns(patterns: Patterns, path: bytes) -> bool:
    """Whether patterns of the top directory ignore `path` or a directory above it."""
    parts = path.split(b"/")
    above = (b"/".join(parts[:end]) for end in range(1, len(parts)))
    if any(patterns.match(one, is_directory=True) for one in above):
        return True
    return bool(patterns.match(path, is_directory=False))


def test_patterns_made_at_random_match_as_in_git(tmp_path):
    choices = random.Random(10)
    git("init", "-q", cwd=tmp_path)
    paths = sorted({b"/".join(choices.choices(PARTS, k=choices.randint(1, 4))) for _ in range(400)})
    for number in range(150):
        lines = [
            b"".join(choices.choices(PIECES, k=choices.randint(1, 7)))
            for _ in range(choices.randint(1, 3))
        ]
        (tmp_path / ".gitignore").write_bytes(b"\n".join(lines) + b"\n")
        ran = subprocess.run(
            ["git", "-c", "core.excludesFile=/dev/null",
             "check-ignore", "--no-index", "-z", "--stdin"],
            cwd=tmp_path, input=b"\0".join(paths), capture_output=True, check=False,
        )  # fmt: skip
        assert ran.returncode in (0, 1), ran.stderr
        theirs = {path for path in ran.stdout.split(b"\0") if path}
        patterns = Patterns(line[: -line.endswith(b"\r") or None] for line in lines)
        found = {path for path in paths if ignored_by_patterns(patterns, path)}
        assert found == theirs, (number, lines)


@pytest.mark.parametrize(
    "pattern",
    [b"a*" * 1500 + b"b", b"**/a*a/" * 500 + b"b", b"*a" * 1500, b"a**/" * 1000, b"[a-z]*" * 600],
    ids=["stars", "directories", "suffix", "double stars", "brackets"],
)
def test_no_pattern_takes_exponential_time(pattern):
    patterns = Patterns([pattern] * 20)
    for path in (b"a" * 4000, b"a/" * 2000 + b"c", b"aa/" * 1300 + b"a"):
        started = time.process_time()
        patterns.match(path, is_directory=False)
        assert time.process_time() - started < 10


def test_a_megabyte_of_patterns_is_matched_in_milliseconds(tmp_path):
    (tmp_path / ".gitignore").write_bytes(b"*a*\n!b\n" * (LARGEST // 7))
    started = time.process_time()
    files = IgnoreFiles.around(str(tmp_path), unwarned)
    for number in range(100):
        assert not files.ignores(str(tmp_path / f"x{number}"), is_directory=True)
    assert files.ignores(str(tmp_path / "xay"), is_directory=True)
    assert not files.ignores(str(tmp_path / "b"), is_directory=True)
    assert time.process_time() - started < 30
