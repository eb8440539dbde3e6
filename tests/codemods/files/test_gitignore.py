"""Which files git ignores by the ignore files as they are read here, compared with git itself."""

import os
import random
import subprocess
import time

import pytest
from tf_lossscale_codemods.files.gitignore import LARGEST, IgnoreFiles
from tf_lossscale_codemods.files.patterns import Patterns
from tf_lossscale_codemods.files.repository import Repositories

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


def around(directory: str) -> IgnoreFiles:
    every_name = ("",)
    repositories = Repositories(unwarned, every_name, ask_git=False)
    return IgnoreFiles.around(directory, unwarned, repositories)


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """The home directory of a user without git settings."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return home


def ours(top: str) -> set:
    """The paths that a walk finds ignored, and those below them that it never visits."""
    ignored = set()

    def walk(directory: str, files: IgnoreFiles) -> None:
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            if entry.name in (".git", ".gitignore"):
                continue
            if files.ignores(entry.path, entry.is_dir()):
                ignored.add(os.path.relpath(entry.path, top))
            elif entry.is_dir():
                walk(entry.path, files.below(entry.path, unwarned))

    walk(top, around(top))
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


def ignored_by_git(top: str, paths: list) -> set:
    """Those of `paths` that git ignores by all its settings, its index taken into account."""
    ran = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"],
        cwd=top, input="\0".join(paths), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr
    return {path for path in ran.stdout.split("\0") if path}


def test_the_same_as_git_with_the_file_of_the_user_and_tracked_files(tmp_path, home):
    choices = random.Random(30)
    top = str(tmp_path)
    git("init", "-q", cwd=top)
    for folder in (".", "a", "b", "a/b", "b/a", "a/b/ab"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in FILES[:6] + FILES[8:]:
            (tmp_path / folder / name).write_text("")
    (home / ".config" / "git").mkdir(parents=True)
    paths = all_paths(top)
    tracked_and_matching = 0
    for number in range(60):
        for where in (".gitignore", "a/.gitignore", ".git/info/exclude"):
            lines = choices.sample(PATTERNS, choices.randint(0, 2))
            (tmp_path / where).write_text("\n".join(lines) + "\n")
        lines = choices.sample(PATTERNS, choices.randint(1, 4))
        (home / ".config" / "git" / "ignore").write_text("\n".join(lines) + "\n")
        git("read-tree", "--empty", cwd=top)
        before = ignored_by_git(top, paths)
        tracked = choices.sample(paths, choices.randint(0, 4))
        git("update-index", "--add", "-z", "--stdin", cwd=top, stdin="\0".join(tracked))
        tracked_and_matching += len(before.intersection(tracked))
        found = ours(top)
        mine = {path for path in paths if any(is_at_or_below(path, one) for one in found)}
        assert mine == ignored_by_git(top, paths), (number, lines, tracked)
    assert tracked_and_matching > 20


@pytest.fixture
def repository(tmp_path, monkeypatch):
    git("init", "-q", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    return os.path.realpath(str(tmp_path))


def write(path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({}, ".config/git/ignore"),
        ({".gitconfig": "[core]\nexcludesFile = ~/mine"}, "mine"),
        ({".gitconfig": "[core]\nexcludesFile = {home}/mine"}, "mine"),
        ({".config/git/config": "[core]\nexcludesFile = ~/mine"}, "mine"),
        ({".gitconfig": "[include]\npath = more", "more": "[core]\nexcludesFile = ~/me"}, "me"),
        (
            {
                ".gitconfig": "[user]\nname = A",
                ".config/git/config": "[core]\nexcludesFile = ~/mine",
            },
            "mine",
        ),
    ],
)
def test_the_ignore_file_of_the_user_is_found_where_git_finds_it(repository, home, settings, where):
    for name, text in settings.items():
        write(home / name, text.format(home=home) + "\n")
    for name in (".config/git/ignore", "mine", "me"):
        write(home / name, "x.py\n" if name == where else "other.py\n")
    assert ignored_by_git(repository, ["x.py", "other.py"]) == {"x.py"}
    files = around(repository)
    assert files.ignores(os.path.join(repository, "x.py"), is_directory=False)
    assert not files.ignores(os.path.join(repository, "other.py"), is_directory=False)


@pytest.mark.parametrize("how", ["XDG_CONFIG_HOME", "link", "GIT_CONFIG_GLOBAL", "relative"])
def test_less_common_places_of_the_ignore_file_of_the_user(repository, home, monkeypatch, how):
    write(home / "elsewhere" / "git" / "ignore", "x.py\n")
    if how == "XDG_CONFIG_HOME":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "elsewhere"))
    elif how == "link":
        os.symlink("elsewhere", home / ".config")
    elif how == "GIT_CONFIG_GLOBAL":
        write(home / "config", "[core]\nexcludesFile = ~/elsewhere/git/ignore\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "config"))
    else:
        write(home / ".gitconfig", "[core]\nexcludesFile = local\n")
        with open("local", "w", encoding="utf-8") as file:
            file.write("x.py\n")
    assert ignored_by_git(repository, ["x.py"]) == {"x.py"}
    assert around(repository).ignores(os.path.join(repository, "x.py"), is_directory=False)


@pytest.mark.parametrize("value", ["", "/dev/null"])
def test_the_ignore_file_of_the_user_can_be_switched_off(repository, home, value):
    write(home / ".config/git/ignore", "x.py\n")
    write(home / ".gitconfig", f"[core]\nexcludesFile = {value}\n")
    assert ignored_by_git(repository, ["x.py"]) == set()
    assert not around(repository).ignores(os.path.join(repository, "x.py"), is_directory=False)


@pytest.mark.parametrize("key", ["core.excludesFile", "include.path"])
def test_a_repository_cannot_name_the_ignore_file_of_the_user(repository, home, key):
    write(home / "hostile", "*.py\n[core]\n")
    write(home / "hostile-config", f"[core]\nexcludesFile = {home}/hostile\n")
    value = "hostile" if key == "core.excludesFile" else "hostile-config"
    git("config", key, str(home / value), cwd=repository)
    write(home / ".config/git/ignore", "mine.py\n")
    files = around(repository)
    assert not files.ignores(os.path.join(repository, "x.py"), is_directory=False)
    assert files.ignores(os.path.join(repository, "mine.py"), is_directory=False)


def test_without_git_the_usual_ignore_file_of_the_user_counts(repository, home, monkeypatch):
    write(home / ".config/git/ignore", "mine.py\n")
    monkeypatch.setenv("PATH", str(home))
    assert around(repository).ignores(os.path.join(repository, "mine.py"), is_directory=False)


def test_the_ignore_file_of_the_user_counts_in_git_work_trees_only(tmp_path, home):
    write(home / ".config/git/ignore", "x.py\n")
    path = os.path.realpath(str(tmp_path / "x.py"))
    assert not around(os.path.dirname(path)).ignores(path, is_directory=False)


@pytest.mark.parametrize("kind", ["pipe", "large", "directory"])
def test_an_ignore_file_of_the_user_that_cannot_be_used_gives_one_warning(repository, home, kind):
    path = home / ".config" / "git" / "ignore"
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"x\n" * (LARGEST // 2 + 1))
    warnings = []
    repositories = Repositories(lambda *warned: warnings.append(warned), (".py",), ask_git=False)
    files = IgnoreFiles.around(repository, unwarned, repositories)
    for name in ("x.py", "y.py"):
        assert not files.ignores(os.path.join(repository, name), is_directory=False)
    why = "it has more than 1,048,576 bytes" if kind == "large" else "it is not a regular file"
    assert warnings == [(str(path), f"is ignored: {why}")]


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
    files = around(os.path.realpath(str(tmp_path / named)))
    path = os.path.realpath(str(tmp_path / named / "x.py"))
    assert not files.ignores(path, is_directory=False)


def test_a_file_without_a_git_directory_counts_too(tmp_path):
    (tmp_path / ".gitignore").write_text("out\n")
    files = around(str(tmp_path))
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
    files = around(str(tmp_path))
    for number in range(100):
        assert not files.ignores(str(tmp_path / f"x{number}"), is_directory=True)
    assert files.ignores(str(tmp_path / "xay"), is_directory=True)
    assert not files.ignores(str(tmp_path / "b"), is_directory=True)
    assert time.process_time() - started < 30
