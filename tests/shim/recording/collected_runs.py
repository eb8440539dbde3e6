"""The recorded runs of `tests/data/records`: correct ones and ones with a mistake, compared."""

import gzip
import json
import os
from typing import Dict, List, NamedTuple, Tuple

from tf_lossscale._recording.reading import read_record
from tf_lossscale._recording.record import OptimizerRecord

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "..", "..", "data", "records")


class Style(NamedTuple):
    """How runs with mistakes were made: their API, and the two versions.

    Attributes:
      name: `session`, `loop` or `fit`.
      old: the collection of the correct runs.
      new: the collection of the runs with mistakes.
      title: for the documentation.
    """

    name: str
    old: str
    new: str
    title: str


STYLES = [
    Style(
        "session",
        "session-1.15",
        "session-2.21-shim",
        "A Session: `tf.contrib` on TensorFlow 1.15, and our class on 2.21",
    ),
    Style("loop", "loop-2.3", "loop-2.15", "A custom loop: Keras on TensorFlow 2.3, and on 2.15"),
    Style("fit", "fit-2.15", "fit-2.21", "`fit`: Keras 2 on TensorFlow 2.15, and Keras 3 on 2.21"),
]

CORRECT: List[Tuple[str, str]] = [
    ("session-1.15", "session-1.15-shim"),
    ("session-1.15", "session-2.21-shim"),
    ("loop-2.3", "loop-2.3-shim"),
    ("loop-2.3", "loop-2.15"),
    ("loop-2.15", "loop-2.15-shim"),
    ("fit-2.3", "fit-2.15"),
    ("fit-2.15", "fit-2.15-shim"),
    ("fit-2.15", "fit-2.21"),
    ("fit-2.15", "fit-2.21-shim"),
    ("fit-2.21", "fit-2.21-shim"),
]
"""Collections whose runs without a mistake are of one program."""

WRONG_IN_KERAS_3 = [("fit-2.15", "fit-2.21"), ("fit-2.21", "fit-2.21-shim")]
"""Where the class of Keras 3 applies a sparse gradient that is not finite, in the text model."""


def collection(name: str) -> Dict[str, str]:
    """Returns the records of a collection, as text, by `MODEL-MISTAKE`."""
    with gzip.open(os.path.join(RECORDS, name + ".json.gz"), "rt", encoding="utf-8") as file:
        found: Dict[str, str] = json.load(file)
    return found


def optimizer_of(text: str, folder: str) -> OptimizerRecord:
    """Returns the only optimizer of a record that is given as text."""
    path = os.path.join(folder, "record.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    (found,) = read_record(path).optimizers
    return found
