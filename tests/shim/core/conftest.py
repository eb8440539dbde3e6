"""Makes the modes that code runs in importable, which are in `tf1/support.py`."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "tf1"))
