"""Records what the originals make of the unmigrated programs, under the TensorFlow installed.

python tests/shim/programs/record.py      (TensorFlow 1.15, 2.3 and 2.4)
"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from programs.execution import MAJOR_MINOR, execute, execute_files
from programs.recorded import write_recorded
from programs.texts import key_of, key_of_files, read_programs


def main() -> int:
    """Writes the file of this TensorFlow; 1 if a program fails on the originals themselves."""
    mine = [program for program in read_programs() if program["original"] == MAJOR_MINOR]
    results = {
        key_of(program["before"]): execute(program["before"], program["name"]) for program in mine
    }
    failed = {
        program["name"]: results[key_of(program["before"])]["error"]
        for program in mine
        if "error" in results[key_of(program["before"])]
    }
    for name, error in failed.items():
        print(name, error)
    print(f"{len(mine)} programs, {len(failed)} failed")
    if not mine:
        print(f"no program of the bundle has TensorFlow {MAJOR_MINOR} as its original")
    else:
        write_recorded(MAJOR_MINOR, results)
    _record_files()
    return 1 if failed or not mine else 0


def _record_files():
    """Writes the results of the programs of several files whose first original is this one."""
    for kind in ("files", "packages"):
        results = {}
        for program in read_programs(kind):
            if program["originals"][0] == MAJOR_MINOR:
                with tempfile.TemporaryDirectory() as folder:
                    key = key_of_files(program["files"])
                    results[key] = execute_files(program["files"], folder)
        if results:
            write_recorded(MAJOR_MINOR, results, f"{kind}-")
        print(f"{kind}: {len(results)} programs of several files")


if __name__ == "__main__":
    sys.exit(main())
