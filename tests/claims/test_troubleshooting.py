"""Every message in `docs/troubleshooting.md` is one that the named versions raise, and is cured.

The current TensorFlow raises its messages here; those of older versions were recorded.
"""

import json
import re
import runpy
from typing import Dict, List, Set, Tuple

import pytest
from documents import ROOT, Text, blocks, prose
from processes import run_program
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Target

RECORDER = ROOT / "tests" / "data" / "recorders" / "messages.py"
RECORDED = "seen-*.json"
NOW = "2.21"

FINAL, SHIM = Options(Target.FINAL, 3), Options(Target.SHIM, 3)
NEEDS_SHIM = {
    *("contrib", "contrib import", "contrib of v1", "graph rewrite of Keras"),
    *("sum", "sum in a graph"),
}
"""Programs that the page cures with `migrate --to shim`."""

OTHERWISE = {
    "loss_scale called in a function": "by hand where `migrate` does not see the type",
    "policy argument": "by hand",
    "policy attribute": "by hand",
    "hypers": "by hand: a private method",
    "strategy": "by hand: a switch of the shim, or another strategy",
    "dynamic as a string": "no error on Keras 3",
    "subclass": "no error on Keras 3",
    "subclass with a constructor": "no error on Keras 3",
}
"""Programs that the page does not cure with `migrate`, and why."""


REPLACED = ("graph rewrite of Keras", "sum in a graph")
"""Programs that the page, or the page that it links, also cures with `run --replace`."""

REPLACE = """
import tf_lossscale
tf_lossscale.install(replace=True)
{}
tf_lossscale.uninstall()
"""

PROGRAMS: Dict[str, str] = runpy.run_path(str(RECORDER))["PROGRAMS"]
CURED_BY_MIGRATE = {
    name: SHIM if name in NEEDS_SHIM else FINAL for name in PROGRAMS if name not in OTHERWISE
}


def recorded() -> Dict[str, Dict[str, str]]:
    """Version to name of the program to message."""
    found = {}
    for path in sorted((ROOT / "tests" / "data" / "messages").glob(RECORDED)):
        facts = json.loads(path.read_text(encoding="utf-8"))
        version = path.stem.partition("-")[2]
        assert facts["tf"].startswith(version + "."), path
        found[version] = facts["messages"]
    return found


RUN = """
import json, runpy, sys
message_of = runpy.run_path(sys.argv[1])["message_of"]
with open(sys.argv[2], encoding="utf-8") as file:
    found = {name: message_of(each) for name, each in json.load(file).items()}
print("\\n" + json.dumps(found))
"""


@pytest.fixture(scope="module")
def now(tmp_path_factory) -> Dict[str, str]:
    """Message of each program on the current TensorFlow, and of each cured one, as `cured ...`."""
    all_programs = dict(PROGRAMS)
    for name, options in CURED_BY_MIGRATE.items():
        result = transform(("import tensorflow as tf\n" + all_programs[name]).encode(), options)
        all_programs["cured " + name] = result.source.decode()
    for name in REPLACED:
        all_programs["replaced " + name] = REPLACE.format(all_programs[name])
    folder = tmp_path_factory.mktemp("messages")
    (folder / "run.py").write_text(RUN, encoding="utf-8")
    (folder / "programs.json").write_text(json.dumps(all_programs), encoding="utf-8")
    return dict(run_program(str(folder / "run.py"), str(RECORDER), str(folder / "programs.json")))


def page() -> str:
    return (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def sections() -> List[Tuple[str, List[str], str]]:
    """Title, messages and versions of each section that has messages."""
    found = []
    for part in re.split(r"^## ", page(), flags=re.MULTILINE)[1:]:
        lines = [
            line
            for block in blocks(Text("", 1, "## " + part))
            for line in block.code.splitlines()
            if block.language == "text"
        ]
        if lines:
            (versions,) = re.findall(r"^\*TensorFlow (.*?)\.\*", prose(Text("", 1, part)), re.M)
            found.append((part.splitlines()[0], lines, versions))
    return found


def is_in_range(version: str, stated: str) -> bool:
    def number(text: str) -> Tuple[int, ...]:
        return tuple(int(part) for part in text.split("."))

    first, last = re.fullmatch(r"([\d.]+) (?:to ([\d.]+)|and later)", stated).groups()
    return number(first) <= number(version) and (not last or number(version) <= number(last))


def is_raised(line: str, messages: Dict[str, str]) -> bool:
    pattern = ".*".join(map(re.escape, line.split("…")))
    return any(re.match(pattern, message) for message in messages.values() if message)


SECTIONS = {title: (lines, versions) for title, lines, versions in sections()}


@pytest.mark.parametrize("title", SECTIONS)
def test_the_messages_are_those_of_the_versions(title, now):
    lines, stated = SECTIONS[title]
    seen = {**recorded(), NOW: {name: now[name] for name in PROGRAMS}}
    assert len(seen) == 5
    for line in lines:
        assert any(is_raised(line, messages) for messages in seen.values()), line
    raising = {version for version in seen if any(is_raised(line, seen[version]) for line in lines)}
    assert raising == {version for version in seen if is_in_range(version, stated)}


def test_every_recorded_message_is_on_the_page(now):
    lines = [line for those, _ in SECTIONS.values() for line in those]
    explained = {**recorded(), NOW: {name: now[name] for name in PROGRAMS}}
    for version, messages in explained.items():
        for name, message in messages.items():
            private = name == "hypers" and version not in ("2.4", "2.8")  # other names, same cure
            shown = any(is_raised(line, {name: message}) for line in lines)
            assert not message or private or shown, (version, message)


@pytest.mark.parametrize("name", CURED_BY_MIGRATE)
def test_the_cure_works(name, now):
    assert now[name], "there is nothing to cure"
    assert now["cured " + name] == ""


@pytest.mark.parametrize("name", REPLACED)
def test_replacing_works_without_an_edit(name, now):
    assert now["replaced " + name] == ""


def test_every_exception_is_a_program():
    assert NEEDS_SHIM | set(OTHERWISE) <= set(PROGRAMS)


def expanded(text: str) -> Set[str]:
    """The codes that a text links: `LS101 to LS104` are four."""
    codes = set(re.findall(r"LS\d+", text))
    for first, last in re.findall(r"LS(\d+) to LS(\d+)", text):
        codes |= {f"LS{number}" for number in range(int(first), int(last) + 1)}
    return codes


def options_of(command: str, keras: int) -> Options:
    target = Target.SHIM if "--to shim" in command else Target.FINAL
    return Options(target, 3 if "--keras 3" in command else keras)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_fix_finds_the_place_by_the_rules_that_it_links(title, now):
    part = prose(Text("", 1, page().partition(f"## {title}\n")[2].partition("\n## ")[0]))
    fix = part.partition("\nFix: ")[2]
    assert fix
    command, linked = re.search(r"`tf-lossscale (migrate [^`]*)`", fix), expanded(fix)
    if command is None or not linked:
        return
    seen = [*recorded().values(), {name: now[name] for name in PROGRAMS}]
    lines = SECTIONS[title][0]
    names = {
        name
        for messages in seen
        for name, message in messages.items()
        if any(is_raised(line, {name: message}) for line in lines) and name not in OTHERWISE
    }
    assert names
    for name in names:
        found = {
            finding.code
            for options in (options_of(command[1], 3), options_of("migrate", 2))
            for finding in transform(
                ("import tensorflow as tf\n" + PROGRAMS[name]).encode(), options
            ).findings
        }
        assert found & linked, (name, found)
