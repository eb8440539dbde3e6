"""Packs the records of a folder into one file of `tests/data/records`.

python collect.py NAME STEPS FOLDER [MISTAKE,...]

Of the folder, the runs with these mistakes are taken (`none` if there are none), and of each run
the first steps. Losses get six digits and norms five, and each column is one list, which makes the
file small.
"""

import gzip
import json
import os
import sys
from typing import Any, Dict, List

from collected_runs import RECORDS

from tf_lossscale._records.format import COLUMNS, DESCRIPTIONS, OptimizerRecord
from tf_lossscale._records.reading import read_record

DIGITS = {"norm": 5, "unscaled_norm": 5, "loss": 6}


def columns(run: OptimizerRecord, steps: int) -> Dict[str, Any]:
    """Returns the first steps of a run, and its description."""
    found: Dict[str, Any] = {"class": run.cls, "scale": vars(run.scale), "shapes": run.shapes}
    found["initial_weights"] = (run.initial_weights or "")[:12]
    found["settings"] = run.settings
    found["norms"] = [rounded(norm, 5) for norm in run.norms or []]
    found.update({name: getattr(run, name) for name in DESCRIPTIONS})
    for column in COLUMNS:
        values: List[Any] = getattr(run, column.name)[:steps]
        if not any(value is not None for value in values):
            continue
        if column.name in ("finite", "applied"):
            flags = {True: "1", False: "0", None: "?"}
            found[column.name] = "".join(flags[value] for value in values)
        else:
            digits = DIGITS.get(column.name, 17)
            found[column.name] = [rounded(value, digits) for value in values]
    return found


def rounded(value: Any, digits: int) -> Any:
    """Returns a number with so many digits."""
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def main(name: str, steps: str, folder: str, mistakes: str = "none"):
    """Writes the file."""
    found = {}
    for file in sorted(os.listdir(folder)):
        key = file[: -len(".jsonl")]
        if key.partition("-")[2].partition("#")[0] in mistakes.split(","):
            record = read_record(os.path.join(folder, file))
            runs = [columns(run, int(steps)) for run in record.optimizers]
            disturbed = record.header.disturbed
            header = {
                **vars(record.header),
                "disturbed": None if disturbed is None else disturbed._asdict(),
            }
            found[key] = {"header": header, "runs": runs}
    packed = gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0)
    with open(os.path.join(RECORDS, name + ".json.gz"), "wb") as output:
        output.write(packed)


if __name__ == "__main__":
    main(*sys.argv[1:])
