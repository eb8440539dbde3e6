"""What a message says to do is done, literally, and the program computes what it computed.

The programs and the expected results are in `tests/shim/programs/followed.py`. All are migrated in
one run for each target, each in a folder of its own. A message of a rule that no program follows
fails `test_each_message_is_followed`.
"""

import collections
import importlib.metadata
import json
import os
import re
import types
from typing import Iterator

import pytest
from programs.followed import FOLLOWED, done, executed
from tf_lossscale_codemods.engine import notebook
from tf_lossscale_codemods.rules import codes, to_shim
from tf_lossscale_codemods.rules.keras import keras3_plain_loop

TARGETS = {
    "shim": ["--to", "shim"],
    "2": ["--keras", "2"],
    "3": ["--keras", "3"],
    "unsafe": ["--keras", "3", "--unsafe"],
}
# Not from `tf.keras`: the tests of the codemods fork, which is slow in a process with TensorFlow.
KERAS = importlib.metadata.version("keras").split(".")[0]
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
NOT_TO_FOLLOW = {
    "right as it is: each TensorFlow version takes a branch that scales the loss",
    "import only {}: nothing here reads the module, which TensorFlow {} removed",
}
"""Messages of what is right, and of an edit."""


def migrated(command_line, target):
    """The findings that are not edits, after all edits, by the folder of the program."""
    argv = ["migrate", ".", "--write", "--allow-dirty", "--report", "json", *TARGETS[target]]
    report = json.loads(command_line.run(*argv).out)
    assert not report["errors"]
    found = collections.defaultdict(list)
    for finding in report["findings"]:
        if not finding["applied"]:
            found[finding["path"].partition("/")[0]].append(finding)
    return found


def is_executed(case, target):
    """Each program is for one target: for the shim and the final API in turn, if it has both."""
    if target == "unsafe":
        return KERAS == "3"
    if LONG or target not in ("shim", KERAS):
        return target in ("shim", KERAS)
    turn = ("shim", KERAS)[list(FOLLOWED).index(case) % 2]
    return target == turn or turn not in FOLLOWED[case].targets


def first_run(command_line, target):
    """The folders of the programs that have a message for a target, and their findings."""
    cases = [case for case, followed in FOLLOWED.items() if target in followed.targets]
    folders = {case: f"case{number}" for number, case in enumerate(cases)}
    for case in cases:
        for name, text in FOLLOWED[case].files.items():
            command_line.path(f"{folders[case]}/{name}").write_text(text)
    return folders, migrated(command_line, target)


@pytest.mark.parametrize(
    "target",
    [*(pytest.param(target, marks=pytest.mark.slow) for target in ("shim", "2")), "3", "unsafe"],
)
def test_what_a_message_says_is_right(command_line, tmp_path, target):
    folders, found = first_run(command_line, target)
    for case in folders:
        followed = FOLLOWED[case]
        messages = [(finding["code"], finding["message"]) for finding in found[folders[case]]]
        assert any(code == followed.code and followed.message in text for code, text in messages), (
            case,
            messages,
        )
        for name, before, after in followed.edits:
            path = command_line.path(f"{folders[case]}/{name}")
            path.write_text(done(path.read_text(), before, after))
    found = migrated(command_line, target)
    programs = {}
    for case in folders:
        followed = FOLLOWED[case]
        left = [finding for finding in found[folders[case]] if is_left(finding, followed)]
        assert {finding["code"] for finding in left} <= set(followed.left), (case, left)
        if is_executed(case, target):
            programs[case] = {
                name: command_line.path(f"{folders[case]}/{name}").read_text()
                for name in followed.files
            }
    actual = executed(programs, str(tmp_path))
    for case, program in programs.items():
        assert actual[case] == FOLLOWED[case].expected, (case, program)


def is_left(finding, followed):
    """Whether a finding is one for a person, or the note that the program follows."""
    is_same = finding["code"] == followed.code and followed.message in finding["message"]
    return finding["outcome"] == "manual" or is_same


def is_sentence(value):
    return isinstance(value, str) and value.count(" ") > 2


def messages_of(function: types.FunctionType, seen: set) -> Iterator[str]:
    """The sentences among the constants of modules that a function of a rule reads."""
    codes_left = [function.__code__]
    while codes_left:
        code = codes_left.pop()
        codes_left += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, (str, dict)):
                texts = value.values() if isinstance(value, dict) else [value]
                yield from (text for text in texts if is_sentence(text))
            is_of_rules = ".rules" in getattr(value, "__module__", "")
            if isinstance(value, types.FunctionType) and is_of_rules and value not in seen:
                seen.add(value)
                yield from messages_of(value, seen)


def all_messages():
    """The messages of all findings that are not edits, with `{}` for what is filled in."""
    functions = [to_shim.reports_of_written, keras3_plain_loop._why_not]
    for rule in codes.rules():
        functions += filter(None, [rule.reports, rule.in_data])
    found = {message for function in functions for message in messages_of(function, set())}
    return sorted({*found, notebook._IN_MAGIC} - NOT_TO_FOLLOW)


def pattern(message):
    """What finds a message in which the placeholders are filled in."""
    parts = re.split(r"\{\w*\}", message.replace("{{", "\0").replace("}}", "\1"))
    written = [part.replace("\0", "{").replace("\1", "}") for part in parts]
    return re.compile(".+".join(map(re.escape, written)))


def test_each_message_is_followed(command_line):
    found = []
    for target in TARGETS:
        _, by_folder = first_run(command_line, target)
        found += [finding["message"] for findings in by_folder.values() for finding in findings]
    missing = [text for text in all_messages() if not any(map(pattern(text).search, found))]
    assert not missing
