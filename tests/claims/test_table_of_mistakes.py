"""`tests/shim/recording/README.md` holds what `compare` says of the recorded runs."""

import collections
import importlib.util
import sys

import pytest
from documents import ROOT

RECORDING = ROOT / "tests" / "shim" / "recording"
PAGE = RECORDING / "README.md"
START, END = "<!-- mistakes -->\n", "<!-- end of mistakes -->\n"
VERDICTS = ("different", "not shown to be the same", "alike", "same")


@pytest.fixture
def runs(monkeypatch):
    """The module that reads the recorded runs."""
    path = RECORDING / "collected_runs.py"
    spec = importlib.util.spec_from_file_location("collected_runs", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "collected_runs", module)
    spec.loader.exec_module(module)
    return module


def table(runs) -> str:
    counts = collections.defaultdict(collections.Counter)
    for name, old, new in runs.correct_pairs():
        if (name, old, new) not in runs.REAL_DIFFERENCES:
            right = (runs.collection(f"right-{each}")[f"{name}-none"] for each in (old, new))
            found = runs.compared(*right).verdict.value[0]
            counts["no mistake, another version", name in runs.HELD_OUT][found] += 1
    for mistake, title in runs.MISTAKES.items():
        for name, program in runs.with_effect(mistake).items():
            found = runs.compared(runs.reference(name), program).verdict.value[0]
            counts[title, name in runs.HELD_OUT][found] += 1
    lines = [
        "| mistake | different | not shown to be the same | alike or the same |",
        "|---|---|---|---|",
    ]
    for title in ["no mistake, another version", *runs.MISTAKES.values()]:
        tuned, held = counts[title, False], counts[title, True]
        cells = [
            f"{sum(tuned[each] for each in group)} + {sum(held[each] for each in group)}"
            for group in (VERDICTS[:1], VERDICTS[1:2], (*VERDICTS[2:], "identical"))
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_table_is_up_to_date(runs):
    text = PAGE.read_text(encoding="utf-8")
    written = text.split(START)[1].split(END)[0]
    expected = "\n" + table(runs) + "\n"
    assert written == expected, f"replace the lines after {START} by\n{expected}"
