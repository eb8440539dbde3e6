"""Packs the records of a folder into one file of `tests/data/records`.

python collect.py FOLDER NAME [STEPS]

Of runs that are bit-identical to others, a part of the steps is enough.
"""

import gzip
import itertools
import json
import os
import sys

from collected_runs import RECORDS


def rounded(line: str) -> str:
    """Returns a line of a record with nine digits, which float32 numbers do not exceed."""
    values = json.loads(line)
    for key in ("loss", "norm"):
        if isinstance(values.get(key), float):
            values[key] = float(format(values[key], ".9g"))
    return json.dumps(values, separators=(",", ":")) + "\n"


def main(folder: str, name: str, steps: str = "10000") -> None:
    """Writes the file."""
    found = {}
    for each in sorted(os.listdir(folder)):
        with open(os.path.join(folder, each), encoding="utf-8") as file:
            found[os.path.splitext(each)[0]] = "".join(
                map(rounded, itertools.islice(file, int(steps) + 2))
            )
    packed = gzip.compress(json.dumps(found).encode(), mtime=0)
    with open(os.path.join(RECORDS, name + ".json.gz"), "wb") as file:
        file.write(packed)


if __name__ == "__main__":
    main(*sys.argv[1:])
