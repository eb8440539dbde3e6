"""What each module of `decision/` answers about the files of small runs."""

import pytest
from tf_lossscale_codemods.decision.decide import Connections, decide
from tf_lossscale_codemods.decision.exports import ReExports, names_read
from tf_lossscale_codemods.decision.modules import Modules
from tf_lossscale_codemods.decision.programs import programs_of
from tf_lossscale_codemods.facts import UNREAD, FileFacts, Links, Need
from tf_lossscale_codemods.model import Group, Options

FILES = [
    "/p/main.py",
    "/p/amp.py",
    "/p/tensorflow.py",
    "/p/pkg/__init__.py",
    "/p/pkg/amp.py",
    "/p/pkg/steps/__init__.py",
    "/p/pkg/steps/loop.py",
    "/p/src/other.py",
]


@pytest.mark.parametrize(
    ("path", "importer", "file"),
    [
        (".loop", "/p/pkg/steps/__init__.py", "/p/pkg/steps/loop.py"),
        (".", "/p/pkg/steps/loop.py", "/p/pkg/steps/__init__.py"),
        ("..", "/p/pkg/steps/loop.py", "/p/pkg/__init__.py"),
        ("..amp", "/p/pkg/steps/loop.py", "/p/pkg/amp.py"),
        ("pkg.amp", "/p/pkg/steps/loop.py", "/p/pkg/amp.py"),
        ("amp", "/p/main.py", "/p/amp.py"),
        ("other", "/p/main.py", "/p/src/other.py"),
        # Either can be meant: one from the top of the project, one from the folder of the script.
        ("amp", "/p/pkg/steps/loop.py", None),
        ("tensorflow", "/p/main.py", None),
        ("main", "/p/main.py", None),
        ("loop", "/p/main.py", None),
    ],
)
def test_the_file_of_a_module(path, importer, file):
    assert Modules(FILES).find(path, importer) == file


def programs(files, links):
    modules = Modules(links)
    programs, _ = programs_of(files, links, modules)
    return sorted(map(sorted, programs))


def importing(*paths):
    return Links(imports=frozenset(paths))


def test_a_module_with_nothing_to_decide_joins_no_programs():
    links = {
        "/p/a.py": Links(),
        "/p/b.py": Links(),
        "/p/util.py": Links(),
        "/p/main_a.py": importing("a", "util"),
        "/p/main_b.py": importing("b", "util"),
    }
    both = programs(["/p/a.py", "/p/b.py"], links)
    assert both == [["/p/a.py", "/p/main_a.py"], ["/p/b.py", "/p/main_b.py"]]


def test_a_file_that_imports_two_modules_joins_them():
    links = {"/p/a.py": Links(), "/p/b.py": Links(), "/p/main.py": importing("a", "b")}
    assert programs(["/p/a.py", "/p/b.py"], links) == [["/p/a.py", "/p/b.py", "/p/main.py"]]


def test_the_file_of_a_package_runs_with_each_of_its_modules():
    files = ["/p/pkg/__init__.py", "/p/pkg/a.py"]
    assert programs(files, dict.fromkeys(files, Links())) == [files]


def test_a_conftest_runs_with_the_tests_below_its_folder():
    files = ["/p/tests/a/test_a.py", "/p/tests/conftest.py"]
    assert programs(files, dict.fromkeys([*files, "/p/b.py"], Links())) == [files]


def test_a_file_that_could_not_be_read_may_import_every_other_one():
    files = ["/p/a.py", "/q/b.py"]
    links = {**dict.fromkeys(files, Links()), "/r/long.py": UNREAD}
    assert programs(files, links) == [[*files, "/r/long.py"]]


def test_names_are_read_through_files_that_import_all_names():
    links = {
        "/p/a.py": Links(),
        "/p/middle.py": Links(imports=frozenset(["a"]), stars=frozenset(["a"])),
        "/p/main.py": Links(imports=frozenset(["middle"]), reads={"middle": frozenset(["amp"])}),
    }
    names = names_read(links, Modules(links))
    assert names == {"/p/a.py": {"amp"}, "/p/middle.py": {"amp"}}


@pytest.mark.parametrize("unsafe", [False, True])
def test_contrib_classes_go_to_the_shim_wherever_they_are(unsafe):
    """So nobody needs to know of which program a file is: all imports are read only for that."""
    need = Need(Group.CONTRIB, "LS102", "FixedLossScaleManager", "nothing has its numbers", 3, 4)
    own = FileFacts(groups=frozenset([Group.CONTRIB]), needs=(need,))
    facts = {"/p/main.py": own, "/p/amp.py": own}
    exports = ReExports(facts, Modules(FILES))
    apart, together = (
        decide(facts, Connections(programs), exports, Options(unsafe=unsafe))["/p/main.py"].on_shim
        for programs in ([frozenset([file]) for file in facts], [frozenset(facts)])
    )
    assert set(apart) == set(together) == {Group.CONTRIB}
    assert (apart == together) is not unsafe
