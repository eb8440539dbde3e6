"""The pictures are what their scripts draw."""

import runpy

from documents import ROOT


def test_the_picture_of_the_documentation_is_the_recorded_run():
    chart = runpy.run_path(str(ROOT / "examples" / "loss_scale_chart.py"))
    written = (ROOT / "docs" / "loss-scale.svg").read_text(encoding="utf-8")
    assert written == chart["of_a_recorded_run"]()
    assert "\n\n" not in written, "Markdown would end the element"
