"""What a message says to do is done, literally, and the program computes what it computed.

The programs and the expected results are in `tests/shim/programs/followed.py`. All are migrated in
one run, each in a folder of its own.
"""

import collections
import json
import os

import processes
import pytest
from programs.execution import MAJOR_MINOR
from programs.followed import FOLLOWED, done

TARGETS = {"shim": ["--to", "shim"], "2": ["--keras", "2"], "3": ["--keras", "3"]}
KERAS = "3" if int(MAJOR_MINOR.split(".")[1]) > 15 else "2"
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"


def migrated(command_line, target):
    """The findings that are left to a person, after all edits, by the folder of the program."""
    argv = ["migrate", ".", "--write", "--allow-dirty", "--report", "json", *TARGETS[target]]
    report = json.loads(command_line.run(*argv).out)
    assert not report["errors"]
    found = collections.defaultdict(list)
    for finding in report["findings"]:
        if finding["outcome"] == "manual":
            found[finding["path"].partition("/")[0]].append(finding)
    return found


def is_executed(case, target):
    """Each program is for one target: for the shim and the final API in turn, if it has both."""
    if LONG or target not in ("shim", KERAS):
        return target in ("shim", KERAS)
    turn = ("shim", KERAS)[list(FOLLOWED).index(case) % 2]
    return target == turn or turn not in FOLLOWED[case].targets


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_message_says_is_right(command_line, tmp_path, target):
    cases = [case for case, followed in FOLLOWED.items() if target in followed.targets]
    folders = {case: f"case{number}" for number, case in enumerate(cases)}
    for case in cases:
        for name, text in FOLLOWED[case].files.items():
            command_line.path(f"{folders[case]}/{name}").write_text(text)
    found = migrated(command_line, target)
    for case in cases:
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
    executed = [case for case in cases if is_executed(case, target)]
    for case in cases:
        followed = FOLLOWED[case]
        left = {finding["code"] for finding in found[folders[case]]}
        assert left <= set(followed.left), (case, found[folders[case]])
        if case in executed:
            files = {
                name: command_line.path(f"{folders[case]}/{name}").read_text()
                for name in followed.files
            }
            folder = str(tmp_path / folders[case])
            # In a process of its own: some replace methods of TensorFlow's class.
            actual = processes.run_program("programs/execute_files.py", json.dumps(files), folder)
            assert actual == followed.expected, (case, files)
