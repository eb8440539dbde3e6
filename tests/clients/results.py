"""Runs the cases of a client program and prints their results for `python tests/clients`."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

__all__ = ["MARK", "run_cases", "use_ours"]

MARK = "RESULTS "


def use_ours():
    """Whether the program was started with `ours` rather than `original`."""
    return sys.argv[1] == "ours"


def run_cases(cases, gather=lambda own: own, report=True):
    """Runs every case and prints a line of JSON with the numbers or the error of each case.

    Args:
      cases: pairs of a name and a function that returns lists of numbers.
      gather: combines the result of this process with those of the others.
      report: whether this process prints.
    """
    results = {}
    for name, case in cases:
        try:
            own = case()
        except Exception as error:
            if os.environ.get("TFLS_CLIENT_TRACEBACKS"):
                raise
            own = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        results[name] = gather(own)
    if report:
        print(MARK + json.dumps(results, sort_keys=True), flush=True)
