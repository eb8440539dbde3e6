"""The originals of the programs in `followed.py` compute what their migrated forms must."""

import json

import processes
import pytest

from programs.execution import MAJOR_MINOR
from programs.followed import FOLLOWED

HERE = [case for case, followed in FOLLOWED.items() if MAJOR_MINOR in followed.original]
VERSIONS = sorted({version for followed in FOLLOWED.values() for version in followed.original})


@pytest.mark.skipif(MAJOR_MINOR not in VERSIONS, reason="no original runs here")
def test_originals_compute_what_is_expected(tmp_path):
    for number, case in enumerate(HERE):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = json.dumps(FOLLOWED[case].files)
        # In a process of its own: some replace methods of TensorFlow's class.
        actual = processes.run_program("programs/execute_files.py", files, str(folder))
        assert actual == FOLLOWED[case].expected, case
