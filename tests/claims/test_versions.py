"""The versions that texts name are those that are tested, required and released."""

import configparser
import re
from typing import Iterable, List

import pytest
from documents import ROOT, Text, markdown, place, prose

import tf_lossscale

_RANGE = re.compile(
    r"[Ff]rom (1\.\d+)(?: \(Python ([\d.]+)\))? to (\d\.\d+)(?: \(Python ([\d.]+)\))?"
)
_LIST = re.compile(r"((?:\d\.\d+, ){3,}\d\.\d+,? and \d\.\d+)")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def config(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / name)
    return parser


def environments() -> List[str]:
    """Those with a TensorFlow; the one of LibCST has none."""
    found = config("tox.ini")["tox"]["env_list"].split()
    return [each for each in found if each.startswith("tf")]


def tested() -> List[str]:
    """Versions of TensorFlow, oldest first."""
    found = [re.match(r"tf([\d.]+)", each)[1] for each in environments()]
    return sorted(set(found), key=lambda each: [int(part) for part in each.split(".")])


def pythons() -> List[str]:
    found = {re.search(r"-py3(\d+)", each)[1] for each in environments()}
    return [f"3.{minor}" for minor in sorted(map(int, found))]


def wrong_lists(texts: Iterable[Text]) -> List[str]:
    """Lists of five versions or more: each is meant to be the list of those that are tested."""
    wrong = []
    for text in texts:
        plain = re.sub(r"\n", " ", prose(text))
        for match in _LIST.finditer(plain):
            if re.findall(r"\d\.\d+", match[1]) != tested():
                wrong.append(f"{place(text, match.start())}: {match[1]}")
    return wrong


def wrong_ranges(texts: Iterable[Text]) -> List[str]:
    """`from 1.15 to 2.21`: from the oldest version that is tested to the newest, with Pythons."""
    first, last = tested()[0], tested()[-1]
    oldest, newest = pythons()[0], pythons()[-1]
    wrong = []
    for text in texts:
        plain = re.sub(r"\n", " ", prose(text))
        ranges = re.finditer(
            r"[Ff]rom (1\.\d+)(?: \(Python ([\d.]+)\))? to (\d\.\d+)(?: \(Python ([\d.]+)\))?",
            plain,
        )
        for match in ranges:
            if [match[1], match[3]] != [first, last]:
                wrong.append(f"{place(text, match.start())}: {match[0]}")
            if match[2] and [match[2], match[4]] != [oldest, newest]:
                wrong.append(f"{place(text, match.start())}: {match[0]}")
    return wrong


def required_for(package: str) -> str:
    """The Python from which setup.cfg installs a package."""
    line = next(
        line
        for line in config("setup.cfg")["options"]["install_requires"].splitlines()
        if line.startswith(package)
    )
    return re.search(r'python_version >= "([\d.]+)"', line)[1]


def test_lists_of_versions_are_those_of_the_matrix():
    texts = [Text(name, 1, read(name)) for name in ("README.md", "docs/index.md")]
    assert any(_LIST.search(prose(text).replace("\n", " ")) for text in texts)
    assert wrong_lists(texts) == []


def test_ranges_of_versions_are_those_of_the_matrix():
    texts = [text for text in markdown() if text.file != "CHANGELOG.md"]
    texts.append(Text("setup.cfg", 1, read("setup.cfg")))
    assert wrong_ranges(texts) == []


def test_the_readme_names_the_pythons_that_are_required():
    text = " ".join(read("README.md").split())
    shim, codemods = re.search(
        r"shim needs Python ([\d.]+) or later; .{,40} needs ([\d.]+) or later", text
    ).groups()
    assert config("setup.cfg")["options"]["python_requires"] == f">={shim}"
    assert codemods == required_for("libcst")
    assert f"needs Python {codemods}" in " ".join(read("docs/migrate.md").split())


def test_make_and_the_readme_name_the_same_pythons():
    low, high = re.search(r"\(3, (\d+)\) <= .* <= \(3, (\d+)\)", read("Makefile")).groups()
    for text in (read("README.md"), read("Makefile").partition("PYTHON ?=")[0]):
        assert f"(3.{low} to 3.{high})" in text


def test_classifiers_and_ci_name_the_pythons_of_the_matrix():
    listed = re.findall(r"Python :: (3\.\d+)", read("setup.cfg"))
    assert listed == pythons()
    assert f"Pythons {pythons()[0]} to {pythons()[-1]}" in read(".ci/run")
    assert f"Pythons {pythons()[0]} to {pythons()[-1]}" in " ".join(read("CONTRIBUTING.md").split())


def test_pins_are_of_the_versions_that_the_environments_are_named_after():
    for factor, pin in re.findall(r"^ +tf([\d.]+): tensorflow\S*==([\d.]+)", read("tox.ini"), re.M):
        assert pin.startswith(factor + ".")
        assert factor in tested()


def test_the_target_version_of_the_tools_is_the_oldest_python():
    assert f'target-version = "py{pythons()[0].replace(".", "")}"' in read("pyproject.toml")


def test_the_changelog_begins_with_this_version():
    assert re.search(r"^## ([\d.]+)", read("CHANGELOG.md"), re.M)[1] == tf_lossscale.__version__


@pytest.mark.parametrize(
    ("check", "claim"),
    [
        (wrong_lists, "tested on 1.15, 2.3, 2.4, 2.5 and 2.21"),
        (wrong_ranges, "on every TensorFlow from 1.15 to 2.22"),
        (wrong_ranges, "from 1.15 (Python 3.7) to 2.21 (Python 3.14)"),
    ],
)
def test_a_wrong_version_is_found(check, claim):
    assert check([Text("docs/made-up.md", 1, claim)])


def test_versions_are_compared_as_numbers():
    assert tested()[0] == "1.15"
    assert tested()[-1] == "2.21"
    assert pythons()[0] == "3.7"
