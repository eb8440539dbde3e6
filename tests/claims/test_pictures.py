"""The pictures are what their scripts draw."""

import runpy
import sys

from documents import ROOT


def test_the_picture_of_the_documentation_is_the_recorded_run():
    chart = runpy.run_path(str(ROOT / "examples" / "loss_scale_chart.py"))
    written = (ROOT / "docs" / "loss-scale.svg").read_text(encoding="utf-8")
    assert written == chart["of_a_recorded_run"]()
    assert "\n\n" not in written, "Markdown would end the element"


def test_the_picture_of_a_half_trained_run_is_that_of_the_recorded_losses(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])
    drawing = runpy.run_path(str(ROOT / "examples" / "half_trained_chart.py"))
    written = (ROOT / "docs" / "half-trained.svg").read_text(encoding="utf-8")
    assert written == drawing["chart"](drawing["recorded"]())
