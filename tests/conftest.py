"""Takes a sample of the tests that are the product of many parameters, and orders the files.

`@pytest.mark.sampled(4)` runs one in four of a test's cases, and all of them in `make test-long`.
The hash of its name decides about a case, so that a new case changes nothing for the others.
"""

import os
import zlib

SHORT = ("tests/codemods/", "tests/codemods/rules/")
"""Folders whose files take little time, the least last: so all processes end at the same time."""


def pytest_collection_modifyitems(config, items):
    """Puts the short files last, and leaves out the cases that are not in the sample."""
    items.sort(key=lambda item: sum(item.nodeid.startswith(path) for path in SHORT))
    if os.environ.get("TFLS_TEST_SIZE") == "long":
        return
    left_out = set()
    for item in items:
        marker = item.get_closest_marker("sampled")
        # A case that is named on the command line is always run.
        if marker and item.nodeid not in config.args:
            name = item.nodeid.partition("::")[2]
            if zlib.crc32(name.encode()) % marker.args[0]:
                left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
