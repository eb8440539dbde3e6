"""Makes the helpers of the other families' tests importable."""

import os
import sys

_TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(_TESTS, "tf1"), os.path.join(_TESTS, "keras")]
