"""Takes a sample or a share of the cases of each test, and orders the files.

`@pytest.mark.sampled(4)` runs one in four of a test's cases, and all of them in `make test-long`
and, where `TFLS_TEST_CASES` is `all`, in tests of the usual size, as in `make versions`.
With `each="program"`, it runs at least one case of each `program`: examples stay, and of their
versions or forms it takes some. The Python version decides which, so that the environments of the
matrix, which have Python 3.7 to 3.13, take different ones. If the command line names a test or a
case, all run.

`--share 1/2` runs one half of each test's cases, and `--share 2/2` the others: two environments of
the matrix divide them (`tox.ini`). Each runs at least one case of every test. There are exceptions:

- `everywhere` marks the examples of faults, of which each environment runs all cases
- `by_value("mode")` marks tests with a program for each mode, which runs in one environment only
- `by_file` marks files that need no TensorFlow, or test processes: their tests are divided, too
- `--of tests/shim/keras` divides this folder, and the marked files; all cases of the others run

The hash of its name decides about a case, so that no sample has only one value of an axis.
"""

import collections
import os
import sys
import zlib

IS_LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
RUNS_ALL = IS_LONG or os.environ.get("TFLS_TEST_CASES") == "all"
LONG_FILES = (
    "tests/codemods/rules/test_second_step.py",
    "tests/codemods/rules/test_followed_messages.py",
    "tests/codemods/run/test_ended.py",
    "tests/codemods/run/test_statuses.py",
    "tests/codemods/run/test_streams.py",
    "tests/shim/keras/test_random_steps.py",  # in `make test-long`
)
"""The long files, which come first: one at the end would leave a core idle."""
SHORT = ("tests/codemods/", "tests/codemods/rules/")
"""Folders whose files take little time, the least last: so all processes end at the same time."""


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="2/3 is the second third of each test's cases")
    parser.addoption("--of", action="append", default=[], help="a folder that `--share` divides")


def pytest_collection_modifyitems(config, items):
    """Orders the files by length; leaves out the cases that are not in the sample or share."""
    items.sort(key=rank)
    if RUNS_ALL:
        return
    sample = sample_of(items, config.args)
    part, count = map(int, config.getoption("share").split("/"))
    folders = tuple(config.getoption("of")) or ("",)
    divided = [item for item in sample if is_divided(item, folders)]
    chosen = {*set(sample).difference(divided), *share_of(divided, part - 1, count)}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def rank(item):
    """Orders the files: the long ones, the others, then the short ones."""
    if item.nodeid.startswith(LONG_FILES):
        return -1
    return sum(item.nodeid.startswith(path) for path in SHORT)


def sample_of(items, named):
    """The cases that are in the sample of their test, at least one of each of its groups."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[group_of(item)].append(item)
    chosen = set()
    for group in groups.values():
        marker = group[0].get_closest_marker("sampled")
        test = group[0].nodeid.partition("[")[0]
        count = min(marker.args[0], len(group)) if marker and test not in named else 1
        group.sort(key=lambda item: hash_of(name_of(item)) & 0xFFFF)
        chosen.update(group[sys.version_info.minor % count :: count])
    return [item for item in items if item in chosen or item.nodeid in named]


def group_of(item):
    """What decides from which cases a sample is taken: the test, and its value of `each`."""
    marker = item.get_closest_marker("sampled")
    each = marker.kwargs.get("each") if marker else None
    return item.nodeid.partition("[")[0], str(item.callspec.params[each]) if each else None


def is_divided(item, folders):
    """Whether environments share the cases of this test, of which each runs a part."""
    if item.get_closest_marker("everywhere"):
        return False
    return item.nodeid.startswith(folders) or bool(item.get_closest_marker("by_file"))


def share_of(items, part, count):
    """Yields the cases of one environment: `part` of `count`, but at least one of each test."""
    cases = collections.defaultdict(list)
    for item in items:
        end = "::" if item.get_closest_marker("by_file") else "["
        cases[item.nodeid.partition(end)[0]].append(item)
    for alike in cases.values():
        # Other digits than those that decide about the sample.
        share = [item for item in alike if (hash_of(decisive(item)) >> 16) % count == part]
        yield from share or alike[:1]


def decisive(item):
    """What decides about the share of a case: its name, or the value that `by_value` marks."""
    marker = item.get_closest_marker("by_value")
    if marker and hasattr(item, "callspec"):
        for parameter in marker.args:
            if parameter in item.callspec.params:
                return str(item.callspec.params[parameter])
    return name_of(item)


def name_of(item):
    """The name of a case in its file."""
    return item.nodeid.partition("::")[2]


def hash_of(text):
    """A number that follows from a text alone."""
    return zlib.crc32(text.encode())
