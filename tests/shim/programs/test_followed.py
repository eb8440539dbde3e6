"""The originals of the programs in `followed.py` compute what their migrated forms must."""

import pytest

from programs.execution import MAJOR_MINOR
from programs.followed import FOLLOWED, executed

HERE = [case for case, followed in FOLLOWED.items() if MAJOR_MINOR in followed.original]
VERSIONS = sorted({version for followed in FOLLOWED.values() for version in followed.original})


@pytest.mark.skipif(MAJOR_MINOR not in VERSIONS, reason="no original runs here")
def test_originals_compute_what_is_expected(tmp_path):
    actual = executed({case: FOLLOWED[case].files for case in HERE}, str(tmp_path))
    for case in HERE:
        assert actual[case] == FOLLOWED[case].expected, case
