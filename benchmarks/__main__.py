"""Runs every benchmark in its own process; writes the results to out/benchmarks.

python benchmarks [NAME ...]
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(os.path.dirname(HERE), "out", "benchmarks")
NOT_BENCHMARKS = {"__main__", "harness"}


def main() -> int:
    found = {os.path.splitext(name)[0] for name in os.listdir(HERE) if name.endswith(".py")}
    names = sys.argv[1:] or sorted(found - NOT_BENCHMARKS)
    os.makedirs(RESULTS, exist_ok=True)
    status = 0
    for name in names:
        print("\n" + name, flush=True)
        result = os.path.join(RESULTS, name + ".json")
        program = os.path.join(HERE, name + ".py")
        status |= subprocess.call([sys.executable, "-W", "ignore", program, "--json", result])
    return status


if __name__ == "__main__":
    sys.exit(main())
