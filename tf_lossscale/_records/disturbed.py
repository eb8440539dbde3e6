"""The disturbed runs beside a record: their names, and how much each is disturbed."""

import glob
import os
import re
from typing import Dict, Iterable, List, Optional

from tf_lossscale._records.format import Disturbance, OptimizerRecord

SIZES = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-20, "float64": 2.0**-40}
"""By the dtype of the computation: the relative size of a rounding error of another kernel.

For 16-bit floats, that is half of the distance between two of them. Sums in float32 and float64
have errors of some distances.
"""
_SCALES = (1.0, 1.37, 1.0, 0.73, 1.0)
"""By the number of the run, what its initial loss scale is multiplied by.

No power of 2: then other steps are skipped, but also the loss is rounded in another way.
"""
_NAME = re.compile(r"\.disturbed-(\d+)$")


def path_of(record: str, number: int) -> str:
    """Returns the name of a disturbed run of a record: `old.disturbed-1.jsonl` of `old.jsonl`."""
    root, extension = os.path.splitext(record)
    return f"{root}.disturbed-{number}{extension}"


def paths_of(record: str) -> List[str]:
    """Returns the names of the disturbed runs of a record that exist, in order."""
    is_packed = record.endswith(".gz")
    root, extension = os.path.splitext(record[: -len(".gz")] if is_packed else record)
    found: Dict[int, str] = {}
    for end in (extension, extension + ".gz"):
        for path in glob.glob(glob.escape(root) + ".disturbed-*" + glob.escape(end)):
            match = _NAME.search(path[: -len(end)] if end else path)
            if match:
                found.setdefault(int(match[1]), path)
    return [found[number] for number in sorted(found)]


def disturbance(record_id: Optional[str], number: int, size: float) -> Disturbance:
    """Returns what is disturbed in the run of this number, from 1 on."""
    scale = _SCALES[(number - 1) % len(_SCALES)]
    return Disturbance(record_id or "", number, size, scale)


def size_for(optimizers: Iterable[OptimizerRecord]) -> float:
    """Returns the size for a run, which depends on the least precise dtype that it computes in."""
    dtypes = {dtype for run in optimizers for dtype in run.computed or () if dtype in SIZES}
    return max((SIZES[dtype] for dtype in dtypes if dtype), default=SIZES["float16"])
