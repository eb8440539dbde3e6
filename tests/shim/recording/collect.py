"""Packs the records of folders into one file of `tests/data/records`.

python collect.py NAME STEPS FOLDER[:PREFIX,...] ...

Of each folder, the runs whose names begin so are taken, and of each run the first steps. Losses
get six digits and norms five, and each column is one list, which makes the file small.
"""

import gzip
import json
import os
import sys
from typing import Any, Dict, List

from collected_runs import RECORDS

from tf_lossscale._records.format import COLUMNS, OptimizerRecord
from tf_lossscale._records.reading import read_record


def columns(run: OptimizerRecord, steps: int) -> Dict[str, Any]:
    """Returns the first steps of a run, and its description."""
    found: Dict[str, Any] = {"class": run.cls, "scale": vars(run.scale), "shapes": run.shapes}
    found["initial_weights"] = (run.initial_weights or "")[:12]
    found["settings"] = run.settings
    for column in COLUMNS:
        values: List[Any] = getattr(run, column.name)[:steps]
        if column.name in ("finite", "applied"):
            found[column.name] = "".join(
                {True: "1", False: "0", None: "?"}[each] for each in values
            )
        else:
            digits = {"norm": 5, "loss": 6}.get(column.name, 17)
            found[column.name] = [
                float(f"{each:.{digits}g}") if isinstance(each, float) else each for each in values
            ]
    return found


def main(name: str, steps: str, *folders: str) -> None:
    """Writes the file."""
    found = {}
    for each in folders:
        folder, _, prefixes = each.partition(":")
        for file in sorted(os.listdir(folder)):
            if file.startswith(tuple(prefixes.split(","))):
                record = read_record(os.path.join(folder, file))
                runs = [columns(run, int(steps)) for run in record.optimizers]
                found[file[: -len(".jsonl")]] = {"header": vars(record.header), "runs": runs}
    packed = gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0)
    with open(os.path.join(RECORDS, name + ".json.gz"), "wb") as output:
        output.write(packed)


if __name__ == "__main__":
    main(*sys.argv[1:])
