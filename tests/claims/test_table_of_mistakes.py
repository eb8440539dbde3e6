"""The table of mistakes holds what `compare` reports about the recorded runs."""

import importlib.util
import sys

import pytest
from documents import ROOT

from tf_lossscale._recording.comparing import compare

RECORDING = ROOT / "tests" / "shim" / "recording"
PAGE = RECORDING / "README.md"
START, END = "<!-- mistakes -->\n", "<!-- end of mistakes -->\n"
MODELS = ("dense", "conv", "text")
MISTAKES = {
    "rate": "learning rate 1.2 times as large",
    "period": "scale grows every 10 steps, not 20",
    "ratio": "factor 4, not 2",
    "initial": "half the initial scale",
    "order": "other order of the data",
    "weights": "other initial weights",
    "unscaled_loss": "loss not scaled",
    "twice": "gradients unscaled twice",
    "clip": "clipped before unscaling",
    "replica": "one of two replicas ignored",
}


@pytest.fixture
def runs(monkeypatch):
    """The module that reads the recorded runs."""
    path = RECORDING / "collected_runs.py"
    spec = importlib.util.spec_from_file_location("collected_runs", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "collected_runs", module)
    spec.loader.exec_module(module)
    return module


def table(runs, style, folder) -> str:
    old, new = runs.collection(style.old), runs.collection(style.new)
    lines = [f"**{style.title}**\n", "| mistake | model | verdict |", "|---|---|---|"]
    for mistake, title in MISTAKES.items():
        sentences = {}
        for model in MODELS:
            if f"{model}-{mistake}" in new:
                texts = (old[f"{model}-none"], new[f"{model}-{mistake}"])
                found = compare(*[runs.optimizer_of(each, folder) for each in texts])
                sentences.setdefault(found.sentence, []).append(model)
        for sentence, models in sentences.items():
            lines.append(f"| {title} | {', '.join(models)} | {sentence} |")
    return "\n".join(lines) + "\n"


def tables(runs, folder) -> str:
    return "\n".join(table(runs, style, folder) for style in runs.STYLES)


def test_the_table_is_up_to_date(runs, tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    written = text.split(START)[1].split(END)[0]
    expected = "\n" + tables(runs, str(tmp_path)) + "\n"
    assert written == expected, f"replace the lines after {START} by\n{expected}"
