"""The versions that texts name are those that are tested, required and released."""

import re
import runpy
from typing import Iterable, List, Set

from documents import ROOT, Text, config, markdown, place, prose

import tf_lossscale
from tf_lossscale._versions.base import _INSTALL_HINT
from tf_lossscale._versions.releases import (
    CANDIDATES,
    FIRST_WITH_KERAS_3,
    LAST_WITH_KERAS_2,
    LEGACY_KERAS,
    RELEASES,
    SUPPORTED,
)

_RANGE = re.compile(
    r"[Ff]rom (1\.\d+)(?: \(Python ([\d.]+)\))? to (\d\.\d+)(?: \(Python ([\d.]+)\))?"
)
_LIST = re.compile(r"((?:\d\.\d+, ){3,}\d\.\d+,? and \d\.\d+)")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tested() -> List[str]:
    """Versions of TensorFlow on which tox runs tests, oldest first."""
    return list(dict.fromkeys(release.version for release in RELEASES if release.tox))


def pythons() -> List[str]:
    found = {int(release.python.partition(".")[2]) for release in RELEASES if release.tox}
    return [f"3.{minor}" for minor in sorted(found)]


def pins_of_tox(environment: str) -> Set[str]:
    """What tox installs in an environment, besides the tools of the tests."""
    factors = set(environment.split("-"))
    lines = config("tox.ini")["testenv"]["deps"].split("\n")
    conditional = [line.split(": ") for line in lines if ": " in line]
    return {pin for condition, pin in conditional if factors & set(condition.split(","))}


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
        for match in _RANGE.finditer(plain):
            if [match[1], match[3]] != [first, last]:
                wrong.append(f"{place(text, match.start())}: {match[0]}")
            if match[2] and [match[2], match[4]] != [oldest, newest]:
                wrong.append(f"{place(text, match.start())}: {match[0]}")
    return wrong


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
    codemods, shim = re.search(
        r"`migrate` needs Python ([\d.]+) or later.{,50} Python ([\d.]+) is enough", text
    ).groups()
    assert config("setup.cfg")["options"]["python_requires"] == f">={shim}"
    assert re.search(r'libcst.* python_version >= "([\d.]+)"', read("setup.cfg"))[1] == codemods
    assert f"needs Python {codemods}" in " ".join(read("docs/migrate.md").split())


def test_the_readme_names_the_candidate():
    named = re.findall(r"the candidate ([\w.]+)\. ", " ".join(read("README.md").split()))
    assert named == [release.tensorflow for release in CANDIDATES]


def test_make_and_the_readme_name_the_same_pythons():
    low, high = re.search(r"\(3, (\d+)\) <= .* <= \(3, (\d+)\)", read("Makefile")).groups()
    for text in (read("README.md"), read("Makefile").partition("PYTHON ?=")[0]):
        assert f"(3.{low} to 3.{high})" in text


def test_classifiers_and_ci_name_the_pythons_of_the_matrix():
    listed = re.findall(r"Python :: (3\.\d+)", read("setup.cfg"))
    assert listed == pythons()
    assert f"Pythons {pythons()[0]} to {pythons()[-1]}" in read(".ci/run")
    assert f"Pythons {pythons()[0]} to {pythons()[-1]}" in " ".join(read("CONTRIBUTING.md").split())


def test_the_tested_versions_are_those_of_make_versions():
    versions = runpy.run_path(str(ROOT / "tests" / "versions" / "__main__.py"))
    rows = versions["table"](RELEASES + CANDIDATES)
    assert "\n".join([*versions["HEADER"], *rows]) in read("tests/versions/README.md")
    assert len({release.name for release in RELEASES + CANDIDATES}) == len(rows)


def test_releases_are_in_order():
    numbers = [[int(part) for part in release.version.split(".")] for release in RELEASES]
    assert numbers == sorted(numbers)


def test_tox_has_the_environments_and_pins_of_the_releases():
    environments = {
        f"{release.name}-py{release.python.replace('.', '')}": set(release.requirements)
        for release in RELEASES
        if release.tox
    }
    listed = [
        environment
        for environment in config("tox.ini")["tox"]["env_list"].split()
        if environment.startswith("tf")
    ]
    assert sorted(listed) == sorted(environments)
    for environment, pins in environments.items():
        assert pins_of_tox(environment) == pins, environment
    # All environments with the newest TensorFlow have tf-keras, too.
    newest = RELEASES[-1]
    install = f"tf{newest.version}: python -m pip install --no-deps tf-keras=={newest.tensorflow}"
    assert install in read("tox.ini")


def test_the_tests_that_tox_names_exist():
    """pytest says nothing of a file that it is to ignore and that does not exist."""
    settings = config("tox.ini")
    words = " ".join([*settings["decided"].values(), settings["core"]["tests"]]).split()
    named = [word for word in words if word != "--ignore"]
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_make_and_pip_install_the_newest_release():
    newest = RELEASES[-1].version
    assert re.findall(r"==([\d.]+)\.\*", read("Makefile")) == [newest] * 3
    major, minor = newest.split(".")
    limits = re.findall(r"^ +(?:tensorflow|tf-keras)<([\d.]+)", read("setup.cfg"), re.M)
    assert limits == [f"{major}.{int(minor) + 1}"] * 2
    assert f"TensorFlow {newest} needs Python" in read("Makefile")


def test_texts_name_the_supported_versions():
    assert SUPPORTED in _INSTALL_HINT
    begin, _, last = SUPPORTED.replace(", or", ",? (?:or|and)").rpartition(" ")
    texts = [prose(text) for text in markdown() if text.file != "CHANGELOG.md"]
    found = {version for text in texts for version in re.findall(rf"{begin} (2\.\d+)", text)}
    assert found <= {last}


def test_a_page_has_the_releases_between_which_keras_changed():
    last, first = LAST_WITH_KERAS_2["tensorflow"], FIRST_WITH_KERAS_3["tensorflow"]
    stated = [
        "Keras 2 up to TensorFlow {}.{},".format(*last),
        "Keras 3 from {}.{} on.".format(*first),
        f"`{LEGACY_KERAS}=1`",
    ]
    page = " ".join(read("docs/migrate.md").split())
    assert [release for release in stated if release not in page] == []


def test_the_changelog_begins_with_this_version():
    assert re.search(r"^## ([\d.]+)", read("CHANGELOG.md"), re.M)[1] == tf_lossscale.__version__
