"""The pictures are what their scripts draw."""

import sys

import pytest
from documents import ROOT


@pytest.fixture
def chart(monkeypatch):
    """The script that draws the loss scale of a run."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import loss_scale_chart

    yield loss_scale_chart
    del sys.modules["loss_scale_chart"]


def test_the_picture_of_the_documentation_is_the_recorded_run(chart):
    written = (ROOT / "docs" / "loss-scale.svg").read_text(encoding="utf-8")
    assert written == chart.of_a_recorded_run()
    assert "\n\n" not in written, "Markdown would end the element"
