"""Runs pieces of Python one after another, each in names of its own, and prints what they raise.

python run_blocks.py < [{"place": ..., "setup": ..., "code": ...}, ...]    (as JSON)
"""

import json
import os
import sys
import traceback

os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")

errors = {}
for block in json.load(sys.stdin):
    names = {"__name__": "block"}
    try:
        exec(compile(block["setup"], "setup of " + block["place"], "exec"), names)
        exec(compile(block["code"], block["place"], "exec"), names)
    except Exception:
        errors[block["place"]] = traceback.format_exc()
print("\n" + json.dumps(errors))
