"""Runs pieces of Python one after another, each in names of its own, and prints what they raise.

python run_blocks.py FILE    # with [{"place": ..., "setup": ..., "code": ...}, ...] as JSON
"""

import json
import pathlib
import sys
import traceback

errors = {}
for block in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")):
    names = {"__name__": "block"}
    try:
        exec(compile(block["setup"], "setup of " + block["place"], "exec"), names)
        exec(compile(block["code"], block["place"], "exec"), names)
    except Exception:
        errors[block["place"]] = traceback.format_exc()
print("\n" + json.dumps(errors))
