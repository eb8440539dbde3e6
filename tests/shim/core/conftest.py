"""Makes `tf1/support.py` importable, which defines the modes that code runs in."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "tf1"))
