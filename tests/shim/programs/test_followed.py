"""The originals of the programs in `followed.py` compute what their migrated forms must."""

import pytest

from programs.execution import MAJOR_MINOR, execute_files
from programs.followed import FOLLOWED

HERE = [case for case, followed in FOLLOWED.items() if MAJOR_MINOR in followed.original]
VERSIONS = sorted({version for followed in FOLLOWED.values() for version in followed.original})


@pytest.mark.skipif(MAJOR_MINOR not in VERSIONS, reason="no original runs here")
def test_originals_compute_what_is_expected(tmp_path):
    for number, case in enumerate(HERE):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert execute_files(FOLLOWED[case].files, str(folder)) == FOLLOWED[case].expected, case
