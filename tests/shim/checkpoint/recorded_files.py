"""The files of the real classes in `tests/data/fixtures`, and what each one holds."""

import glob
import json
import os

import processes

FIXTURES = os.path.join(processes.REPOSITORY, "tests", "data", "fixtures")
NAMES = {"dynamic_scale": "loss_scale", "step_counter": "good_steps"}


def folders(pattern):
    found = sorted(glob.glob(os.path.join(FIXTURES, *pattern.split("/"))))
    assert found, pattern
    return found


def facts(folder):
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
        return json.load(file)


def files(folder):
    """The files of a recording that can be inspected where they lie."""
    expected = facts(folder)
    keys = ("prefix", "file", "saver_prefix", "checkpoint_prefix")
    names = [expected[key] for key in keys if key in expected]
    return [os.path.join(folder, name) for name in names if not name.endswith(".tar.gz")]


def all_files():
    return [path for folder in folders("*/*/*") for path in files(folder)]


def saved_models():
    """The folders of recordings whose SavedModel is packed, if it is not small."""
    return folders("*/*/model_*_savedmodel")


def label(path):
    return os.path.relpath(path, FIXTURES).replace(os.sep, "-")


def bytes_of(prefix):
    """All files of a checkpoint."""
    contents = {}
    for path in sorted(glob.glob(glob.escape(prefix) + ".*")):
        with open(path, "rb") as file:
            contents[path[len(prefix) :]] = file.read()
    assert contents, prefix
    return contents
