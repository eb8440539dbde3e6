"""The search for the files that may read names of some modules passes over most others."""

import pytest
from tf_lossscale_codemods.resolve.import_lines import ReaderSearch


@pytest.mark.parametrize(
    ("source", "may_read"),
    [
        (b"# By the License.\n# model\n\nmodel = 'model'\n", False),
        (b"import models\nfrom x import y\nmodel.fit()\n", False),
        (b"ximport model\nmodel = import_it\n", False),
        (b"import os, model\n", True),
        (b"from x import (\n    y,  # )\n    model,\n)\n", True),
        (b"self.model.fit()\n", True),
        (b"(x.  # the one\nmodel)\n", True),
        (b"x.\\\n  model\n", True),
        (b"pytest_plugins = ['model']\n", True),
        (b"from .. import y\n", True),
        (b"from \\\n . import y\n", True),
        (b"importlib.import_module(name)\n", True),
    ],
)
def test_which_files_may_read_a_module(source, may_read):
    assert ReaderSearch(["model", "."]).may_read(source) is may_read


def test_a_relative_import_counts_for_packages_only():
    assert not ReaderSearch(["model"]).may_read(b"from .. import y\n")
