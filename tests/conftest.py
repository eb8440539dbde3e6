"""Takes a sample or a share of the cases of each test, and orders the files.

`@pytest.mark.sampled(4)` runs one in four of a test's cases, and all of them in `make test-long`.
`--share 1/2` runs one half of each test's cases, and `--share 2/2` the others: two environments of
the matrix divide them (`tox.ini`). A test with one case is always run.

The hash of its name decides about a case, so that a new case changes nothing for the others.
"""

import collections
import os
import zlib

SHORT = ("tests/codemods/", "tests/codemods/rules/")
"""Folders whose files take little time, the least last: so all processes end at the same time."""


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="2/3 is the second third of each test's cases")


def pytest_collection_modifyitems(config, items):
    """Puts the short files last, and leaves out the cases that are not in the sample or share."""
    items.sort(key=lambda item: sum(item.nodeid.startswith(path) for path in SHORT))
    if os.environ.get("TFLS_TEST_SIZE") == "long":
        return
    sample = [item for item in items if is_in_sample(item, config)]
    part, count = map(int, config.getoption("share").split("/"))
    chosen = set(share_of(sample, part - 1, count))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def is_in_sample(item, config):
    """Whether a case is in the sample of its test; one named on the command line always is."""
    marker = item.get_closest_marker("sampled")
    return not marker or item.nodeid in config.args or hash_of(item) % marker.args[0] == 0


def share_of(items, part, count):
    """Yields the cases of one environment: `part` of `count`, but at least one of each test."""
    cases = collections.defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    for alike in cases.values():
        # Other digits than those that decide about the sample.
        share = [item for item in alike if (hash_of(item) >> 16) % count == part]
        yield from share or alike[:1]


def hash_of(item):
    """A number that follows from the name of a case alone."""
    return zlib.crc32(item.nodeid.partition("::")[2].encode())
