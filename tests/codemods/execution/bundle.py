"""The programs of the proof with their migrations, in files that every environment reads.

TensorFlow 1.15 needs Python 3.7 and the codemods need 3.9, so migrating and running cannot happen
in one interpreter. The recorded migrations are the bridge; `test_bundle.py` fails when the rules
have moved on.
"""

from programs.texts import KINDS as BUNDLES, read_programs as read, write_results as write

__all__ = ["BUNDLES", "read", "write"]
