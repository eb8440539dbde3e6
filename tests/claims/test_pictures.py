"""The pictures are what their scripts draw."""

import sys
import xml.etree.ElementTree as ET

import pytest
from documents import ROOT


@pytest.fixture
def chart(monkeypatch):
    """The script that draws the loss scale of a run."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import loss_scale_chart

    yield loss_scale_chart
    del sys.modules["loss_scale_chart"]


def elements(svg: str, name: str):
    return list(ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}" + name))


def test_the_picture_of_the_documentation_is_the_recorded_run(chart):
    written = (ROOT / "docs" / "loss-scale.svg").read_text(encoding="utf-8")
    assert written == chart.of_a_recorded_run()
    assert "\n\n" not in written, "Markdown would end the element"


def test_a_chart_has_a_line_for_each_run_and_a_dot_for_each_skipped_step(chart):
    steps = [{"scale": 8.0, "applied": False}, {"scale": 4.0, "applied": True}]
    then, now = chart.run_of("then <1.15>", steps), chart.run_of("now", steps[1:] * 2)
    assert (then.scales, then.skipped) == ([8.0, 4.0], [0])
    one, both = chart.chart("title", [now]), chart.chart("title", [then, now])
    assert len(elements(one, "circle")) == 0
    assert len(elements(both, "circle")) == 1
    assert len(elements(both, "polyline")) > len(elements(one, "polyline"))
    texts = [each.text for each in elements(both, "text")]
    assert "then <1.15>: 1 of 2 steps skipped" in texts


def test_the_steps_of_a_record_end_before_its_end_line(chart, tmp_path):
    lines = [
        '{"tensorflow": "2.21.0"}',
        '{"optimizer": 0}',
        '{"step": 0, "scale": 8.0}',
        '{"end": 1}',
    ]
    path = tmp_path / "record.jsonl"
    path.write_text("\n".join(lines))
    assert chart.read_record(str(path)) == ("2.21.0", [{"step": 0, "scale": 8.0}])
