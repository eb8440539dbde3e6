"""Calls `fit` under a `MirroredStrategy` over two logical CPUs, with and without recording.

Usage: mirrored_fit.py SUBJECT. Fails where the record is wrong, or the run not the same.
"""

import sys
import tempfile

import replicas
import replicated
import tensorflow as tf

tf.compat.v1.enable_v2_behavior()
STRATEGY = replicas.mirrored(2)  # before anything else takes the devices

from recordings import Recording  # noqa: E402 - after the strategy
from test_record_keras import check, fit  # noqa: E402 - likewise

subject = replicated.SUBJECTS[sys.argv[1]]
with Recording(tempfile.mkdtemp()) as recording:
    kept = fit(subject, STRATEGY)
check(kept, recording.record)
assert recording.header.replicas == 2
assert replicated.same(kept, fit(subject, STRATEGY))
print("true")
