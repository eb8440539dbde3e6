"""`make demo` shows that the migrated examples do what the original ones did."""

import pytest
from documents import ROOT
from processes import run_python


@pytest.mark.slow
def test_the_migrated_examples_are_the_same():
    done = run_python(str(ROOT / "examples" / "demo.py"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.count("\nSame: 120 steps") == 2
    assert "OK: the migrated code does what the old did." in done.stdout
