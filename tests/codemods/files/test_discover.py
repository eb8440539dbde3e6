"""Which files are checked: each file once, in a stable order."""

import os

import pytest
from tf_lossscale_codemods.files.directories import Directory
from tf_lossscale_codemods.files.discover import Candidate, Note, NoteKind, discover
from tf_lossscale_codemods.files.excludes import Excludes


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(*paths: str, links=()):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("")
        for link, target in links:
            (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(target, tmp_path / link)
        return tmp_path

    return make


def files(*paths: str, excludes=()):
    found = list(discover(paths or ["."], Excludes(excludes, os.getcwd())))
    assert not [
        entry for entry in found if isinstance(entry, Note) and entry.kind is NoteKind.ERROR
    ]
    return [entry.path for entry in found if isinstance(entry, Candidate)]


def skipped():
    notes = [entry for entry in discover(["."], Excludes()) if isinstance(entry, Note)]
    return {note.path: note.why for note in notes if note.kind is NoteKind.SKIPPED}


def test_python_stubs_and_notebooks_in_the_order_of_their_names(tree):
    tree("b.py", "a.pyi", "c.ipynb", "d.pyw", "a/z.py", "a/.hidden.py", "x.pyc", "y.txt", "py")
    assert files() == ["a/.hidden.py", "a/z.py", "a.pyi", "b.py", "c.ipynb", "d.pyw"]


def test_what_is_named_needs_no_suffix_and_may_be_an_environment(tree):
    tree("script", ".venv/x.py")
    assert files("script") == ["script"]
    assert files(".venv") == [".venv/x.py"]


def test_several_paths_that_overlap_give_each_file_once(tree):
    tree("a/b.py", "a/c/d.py", "e.py")
    assert files("a/c", "a", "a/b.py") == ["a/c/d.py", "a/b.py"]
    assert files("a/b.py", ".") == ["a/b.py", "a/c/d.py", "e.py"]
    assert files("e.py", "./e.py", os.path.abspath("e.py")) == ["e.py"]


@pytest.mark.parametrize("name", [".venv", "venv", "env", ".tox", ".nox"])
def test_virtual_environments_by_name(tree, name):
    tree(f"{name}/lib/a.py", "b.py")
    assert files() == ["b.py"]
    assert skipped() == {name: "is a virtual environment (by its name)"}


def test_a_package_that_is_called_like_one(tree):
    tree("env/__init__.py", "env/world.py", "venv/pyvenv.cfg", "venv/__init__.py", "main.py")
    assert files() == ["env/__init__.py", "env/world.py", "main.py"]
    assert skipped() == {"venv": "is a virtual environment (has a pyvenv.cfg)"}


def test_virtual_environments_by_their_configuration(tree):
    tree("tools/py3/pyvenv.cfg", "tools/py3/lib/a.py", "tools/b.py")
    assert files() == ["tools/b.py"]
    assert skipped() == {"tools/py3": "is a virtual environment (has a pyvenv.cfg)"}


@pytest.mark.parametrize("name", [".git", "__pycache__", ".ipynb_checkpoints", "node_modules"])
def test_version_control_and_caches(tree, name):
    tree(f"a/{name}/b.py", "c.py")
    assert files() == ["c.py"]
    assert set(skipped()) == {f"a/{name}"}


def test_a_link_to_a_file_that_the_walk_finds_anyway(tree):
    tree("z.py", links=[("a.py", "z.py")])
    assert files() == ["z.py"]


def test_links_to_directories_and_loops(tree):
    tree("pkg/a.py", links=[("also", "pkg"), ("pkg/loop", ".."), ("pkg/self", ".")])
    assert files() == ["pkg/a.py"]


def test_a_link_into_a_virtual_environment(tree):
    tree("a.py", "elsewhere/pyvenv.cfg", "elsewhere/x.py", links=[("src", "elsewhere")])
    assert files() == ["a.py"]


def test_a_broken_link_is_reported(tree):
    tree("a.py", links=[("b.py", "nowhere.py")])
    assert files() == ["a.py"]
    assert skipped()["b.py"].startswith("is a broken symbolic link")


@pytest.mark.parametrize(
    ("glob", "left"),
    [
        ("gen", ["a.py", "src/b.py"]),
        ("src/gen", ["a.py", "gen/d.py", "src/b.py"]),
        ("src/*", ["a.py", "gen/d.py"]),
        ("*/b.py", ["a.py", "gen/d.py", "src/gen/c.py"]),
        ("src/", ["a.py", "gen/d.py"]),
        ("b.py", ["a.py", "gen/d.py", "src/gen/c.py"]),
        ("nothing", ["a.py", "gen/d.py", "src/b.py", "src/gen/c.py"]),
    ],
)
def test_excludes(tree, glob, left):
    tree("a.py", "src/b.py", "src/gen/c.py", "gen/d.py")
    assert files(excludes=[glob]) == left


def test_a_file_that_is_named_far_below_an_excluded_directory(tree):
    tree("gen/a/b/c.py")
    assert files("gen/a/b/c.py", excludes=["gen"]) == []


def test_a_pipe_is_an_error_where_it_is_named_and_nothing_elsewhere(tree):
    tree("a.py")
    os.mkfifo("b.py")
    assert files() == ["a.py"]
    (found,) = discover(["b.py"], Excludes())
    assert found == Note("b.py", NoteKind.ERROR, "is neither a file nor a directory")


def test_a_directory_that_cannot_be_read_is_an_error_and_the_walk_goes_on(tree, monkeypatch):
    tree("a/b.py", "c.py")
    entries = Directory.entries

    def denied(directory):
        if os.path.basename(directory.path) == "a":
            raise PermissionError(13, "Permission denied", directory.path)
        return entries(directory)

    monkeypatch.setattr(Directory, "entries", denied)
    error, candidate = discover(["."], Excludes())
    assert error == Note(
        "a", NoteKind.ERROR, "cannot be read: permission denied; change its mode, or --exclude it"
    )
    assert candidate.path == "c.py"


# Only Linux shows a process its open files there.
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists no open files")
def test_a_deep_tree_is_read_on_both_sides_of_each_folder_with_few_open_files(tree):
    folders = ["m/" * depth for depth in range(60)]
    tree(*(f"{folder}{name}" for folder in folders for name in ("a.py", "z.py")))
    before = len(os.listdir("/proc/self/fd"))
    read, most = [], 0
    for entry in discover(["."], Excludes()):
        assert isinstance(entry, Candidate)
        assert entry.read() == b""
        read.append(entry.path)
        most = max(most, len(os.listdir("/proc/self/fd")))
    assert len(read) == 120
    assert most - before < 20


def test_a_folder_that_becomes_a_link_during_the_walk_is_not_entered(tree, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").write_text("")
    top = tree("a.py", "b/c.py")
    walk = discover(["."], Excludes())
    first = next(walk)
    os.rename(top / "b", top.parent / f"{top.name}-moved")
    os.symlink(outside, top / "b")
    (note,) = walk
    assert first.path == "a.py"
    assert isinstance(note, Note)
    assert note.kind is NoteKind.ERROR
    assert "symbolic link" in note.why
