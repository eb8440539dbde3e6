"""`tf-lossscale show`: one record, whose steps are counted as what they are."""

import json
import math
import os
import re

import pytest
import tensorflow as tf
from simulated import Run, record
from test_compare import write

from tf_lossscale._cli.main import main
from tf_lossscale._records.destination import Destination
from tf_lossscale._records.format import OptimizerRecord, RunHeader, ScaleParameters
from tf_lossscale._records.summary import Summary, lines_at_the_end, lines_of_monitor
from tf_lossscale._records.writing import RecordFile

WALKS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "records", "walks"
)
NAMES = ["enc/kernel", "emb/kernel", "cls/bias"]


def of_steps(*rows, scales=None):
    """An optimizer with steps of these flags: finite, applied, first bad variable, how many."""
    run = OptimizerRecord("Simulated", ScaleParameters("dynamic", 8.0), NAMES, [[2]] * 3)
    for step, (finite, applied, bad, count) in enumerate(rows):
        scale = 8.0 if scales is None else scales[step]
        run.add(
            step, loss=1.0, scales=scale, finite=finite, applied=applied, bad=bad, bad_count=count
        )
    return run


FINE, SKIPPED = (True, True, None, None), (False, False, 1, 1)
APPLIED, UNKNOWN = (False, True, 0, 2), (False, None, 0, 3)


def shown(capsys, *arguments):
    assert main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_nan_that_a_fixed_scale_applied_is_not_skipped(capsys):
    for version in ("2.8", "2.21"):
        out = shown(capsys, os.path.join(WALKS, f"nan-fixed-{version}.jsonl.gz"))
        lines = [line.split(maxsplit=1) for line in out.splitlines()]
        assert ["skipped", "0"] in lines
        assert "applied though not finite  140, from step 60 on; at most 140 in a row" in out
        assert "loss not finite            139, from step 61 on" in out
        assert "loss scale                 128 in all steps" in out
        assert "first not finite           enc/kernel, in 140 steps" in out
        assert "use a dynamic one" in out


def test_each_step_is_counted_as_what_it_is(tmp_path, capsys):
    rows = [FINE, SKIPPED, SKIPPED, FINE, APPLIED, UNKNOWN, FINE, (True, False, None, None)]
    scales = [8.0, 8.0, 4.0, 2.0, 2.0, 2.0, math.inf, 1.0]
    path = write(tmp_path / "record", of_steps(*rows, scales=scales))
    values = json.loads(shown(capsys, path, "--json"))
    assert (values["version"], values["file"], values["ended"]) == (1, path, True)
    (optimizer,) = values["optimizers"]
    assert optimizer["steps"] == 8
    assert optimizer["skipped"] == {"steps": 3, "first": 1, "last": 7, "longest_in_a_row": 2}
    assert optimizer["applied_not_finite"]["first"] == 4
    assert optimizer["not_finite_unknown_whether_applied"]["steps"] == 1
    assert optimizer["scale"] == {"now": 1.0, "lowest": 1.0, "highest": "inf"}
    assert optimizer["first_bad"] == "emb/kernel"
    assert optimizer["bad"] == [
        {"variable": "emb/kernel", "steps": 2},
        {"variable": "enc/kernel", "steps": 2},
    ]
    assert optimizer["no_gradient_finite"] == 1
    text = " ".join(shown(capsys, path).split())
    assert "skipped 3, the first in step 1, the last in step 7" in text
    assert "not finite, applied or not 1, in step 5" in text
    assert "first not finite emb/kernel, in 2 steps" in text


def test_the_option_needs_no_file_and_takes_one(tmp_path, capsys):
    path = write(tmp_path / "record", record(Run(steps=40)))
    printed = shown(capsys, "--json", path)
    assert json.loads(printed) == json.loads(shown(capsys, path, "--json"))
    assert shown(capsys, path, "--json", tmp_path / "out.json") == shown(capsys, path)
    assert (tmp_path / "out.json").read_text() == printed
    page = shown(capsys, path, "--html")
    assert page.startswith("<!DOCTYPE html>")
    shown(capsys, path, "--html", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert main(["show", path, "--json", path]) == 2
    assert "is a record, and is not overwritten" in capsys.readouterr().err


def test_labels_of_an_axis_differ(tmp_path, capsys):
    """The norm of gradients that are clipped to 1 differs in its last digits only."""
    run = of_steps(FINE, FINE, FINE)
    run.norm = [1.0, 1.0001, 0.9999]
    page = shown(capsys, write(tmp_path / "record", run), "--html")
    chart = page.partition("<h3>Gradient norm</h3>")[2].partition("</div>")[0]
    labels = re.findall(r"<span class='y'[^>]*>([^<]+)", chart)
    assert labels == ["0.9999", "0.99995", "1", "1.00005", "1.0001"]


def test_the_page_shows_what_was_skipped_and_what_was_applied(tmp_path, capsys):
    path = write(tmp_path / "record", of_steps(*[FINE] * 9, SKIPPED, APPLIED, APPLIED))
    page = shown(capsys, path, "--html")
    for title, count in (("Skipped steps", 1), ("Steps that were applied though not finite", 2)):
        assert f"<h3>{title}</h3>" in page
        assert f"%'>{count}</span>" in page.partition(f"<h3>{title}</h3>")[2]
    assert "http" not in page  # nothing comes from a network
    assert "Skipped steps" not in shown(capsys, write(tmp_path / "f", of_steps(FINE)), "--html")


def test_names_that_the_shim_had_changed_come_first(tmp_path, capsys):
    header = RunHeader("2.21.0", supplied=["tf.contrib"], replaced=["tf.keras.A"])
    path = write(tmp_path / "record", record(Run(steps=5)), header=header)
    first = shown(capsys, path).splitlines()[0]
    assert "tf.keras.A replaced by the shim and tf.contrib supplied by the shim" in first
    values = json.loads(shown(capsys, path, "--json"))
    assert (values["supplied"], values["replaced"]) == (["tf.contrib"], ["tf.keras.A"])


def test_a_run_that_was_cut_off_is_shown(tmp_path, capsys):
    path = write(tmp_path / "record", record(Run(steps=30)))
    with open(path, "rb+") as file:
        file.truncate(os.path.getsize(path) - 40)
    out = shown(capsys, path)
    assert "cut off" in out
    assert "note: " in out


@pytest.mark.parametrize("content", [None, "", "no record\n"])
def test_what_is_no_record_is_one_line(tmp_path, capsys, content):
    path = tmp_path / "bad"
    if content is not None:
        path.write_text(content)
    assert main(["show", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tf-lossscale show: {path}")
    assert error.count("\n") == 1


ALL_BAD, TWO_BAD = (False, False, 0, 3), (False, False, 0, 2)
NOT_SEEN = (False, False, None, None)
ADVICE = [
    ([FINE] * 3, ""),
    ([FINE, *[SKIPPED] * 3], "only the gradient of emb/kernel was not finite, so look at its"),
    (
        [FINE, *[TWO_BAD] * 3],
        "2 of 3 gradients were not finite, so look at the backward",
    ),
    ([FINE, *[ALL_BAD] * 3], "no gradient was finite in a skipped step, so look at the forward"),
    # The first scale was too large, and the others are applied.
    ([*[ALL_BAD] * 3, FINE], ""),
    # Nobody has looked at the gradients, or those of this worker were finite.
    ([FINE, *[NOT_SEEN] * 3], "either they were not examined (--no-norm), or it happened in"),
    ([*[ALL_BAD] * 3, FINE, ALL_BAD], "look at the forward pass"),
    ([FINE, APPLIED], "use a dynamic one"),
    # The scale was too large once: every gradient overflows, and the forward pass is fine.
    ([FINE, FINE, (False, False, 0, 3)], ""),
]


@pytest.mark.parametrize(("rows", "advice"), ADVICE)
def test_what_to_do_next(rows, advice):
    assert advice in Summary.of(of_steps(*rows)).advice()
    assert bool(Summary.of(of_steps(*rows)).advice()) is bool(advice)


SCALES = [
    ([FINE, *[SKIPPED] * 2, *[FINE] * 7], [8.0, 4.0, 2.0, *[1.0] * 7], "stuck at its minimum, 1:"),
    ([*[FINE] * 2, SKIPPED, *[FINE] * 7], [8.0] * 10, ""),
    ([FINE, SKIPPED, *[FINE] * 8], [1.0, *[2.0**-80] * 9], "the loss scale is down to 8.27"),
    ([FINE] * 3, [2.0**100, 2.0**100, 2.0**101], "grown to 2^101 without a skipped step, so"),
    ([FINE] * 3, [1.0] * 3, ""),
]


@pytest.mark.parametrize(("rows", "scales", "advice"), SCALES)
def test_what_the_scale_shows(rows, scales, advice):
    found = Summary.of(of_steps(*rows, scales=scales)).advice()
    assert advice in found
    assert bool(found) is bool(advice)


def test_a_scale_is_stuck_at_the_minimum_that_the_record_declares():
    run = of_steps(*[SKIPPED] * 3, *[FINE] * 7, scales=[1.0, 0.5, *[0.25] * 8])
    run.scale.minimum_scale = 0.25
    assert "stuck at its minimum, 0.25:" in Summary.of(run).advice()
    run.scale.minimum_scale = 0.125
    assert Summary.of(run).advice() == ""


def test_no_advice_is_longer_than_a_line():
    names = ["bert/encoder/layer_11/attention/self/query/kernel", "other", "third"]
    for rows in ([SKIPPED], [ALL_BAD], [TWO_BAD], [(False, False, None, None)]):
        run = of_steps(*rows * 3, scales=[1.0] * 3)
        run.names = names
        assert 0 < len(Summary.of(run).advice()) < 300


def test_a_loss_that_is_not_finite_leads_to_the_forward_pass():
    run = of_steps(FINE, SKIPPED, SKIPPED)
    run.loss = [1.0, math.nan, math.inf]
    advice = Summary.of(run).advice()
    assert advice.startswith("the loss itself is not finite, so look at the forward pass: ")
    assert "tf.debugging.enable_check_numerics()" in advice
    assert hasattr(tf.debugging, "enable_check_numerics") or tf.__version__.startswith("1.")
    assert hasattr(tf.compat.v1, "add_check_numerics_ops")


def test_a_loss_that_is_now_and_then_not_finite_leads_to_the_forward_pass():
    run = of_steps(*[FINE, ALL_BAD, FINE, FINE] * 5, scales=[8.0] * 20)
    assert Summary.of(run).advice() == ""
    run.loss[17] = math.nan
    for minority in (math.nan, 1.0):  # two of five skipped steps, and one
        run.loss[1] = minority
        assert Summary.of(run).advice().startswith("the loss itself is not finite, so look at")


def of_skips(pattern, bad=ALL_BAD, growth_steps=2000):
    """A dynamic loss scale over steps of which those marked with x are skipped."""
    scale, scales = 2.0**15, []
    for mark in pattern:
        scales.append(scale)
        scale /= 1 + (mark == "x")
    rows = [bad if mark == "x" else FINE for mark in pattern]
    run = of_steps(*rows, scales=scales)
    run.scale.growth_steps = growth_steps
    return Summary.of(run)


NO_PROBLEM = "nothing points to a problem"
SKIPS = [
    ("." * 20, ALL_BAD, 2000, NO_PROBLEM),
    # The scale comes down from its initial value, and has then grown.
    ("xxxxxx.x" + "." * 20, ALL_BAD, 2000, NO_PROBLEM),
    ("." * 50 + "xx" + "." * 50, ALL_BAD, 50, NO_PROBLEM),
    # It is below a scale that worked: gradients may have grown, a few times.
    ("xx.x" + ".......x" * 3 + "..", ALL_BAD, 2000, "not applied: 3 steps (the first in step 11, "),
    ("x." * 10, ALL_BAD, 2000, "skips continued below a scale that worked: no gradient was finite"),
    ("x..." * 6, SKIPPED, 2000, "skips continued below a scale that worked: only the gradient of"),
    ("x..." * 6, NOT_SEEN, 2000, "skips continued below a scale that worked: no gradient was seen"),
    # It may have grown 3 times, or 4 times.
    (
        "x..." * 6,
        ALL_BAD,
        8,
        "not applied: 4 steps (the first in step 8, the last in step 20), with",
    ),
    ("x..." * 6, ALL_BAD, 6, NO_PROBLEM),
]


@pytest.mark.parametrize(("pattern", "bad", "growth_steps", "expected"), SKIPS)
def test_more_skipped_steps_than_a_dynamic_scale_explains(pattern, bad, growth_steps, expected):
    line = lines_of_monitor("", [of_skips(pattern, bad, growth_steps)])[1]
    assert line.startswith(expected)
    assert len(line) < 300


def test_the_first_skips_are_not_blamed_for_those_that_follow():
    run = of_steps(*[ALL_BAD] * 9, *[FINE, FINE, FINE, SKIPPED] * 6)
    run.scales = [2.0 ** (30 - min(step, 9) - max(0, step - 9) // 4) for step in range(33)]
    assert "only the gradient of emb/kernel" in Summary.of(run).advice()


@pytest.mark.parametrize("rule", ["fixed", "unknown"])
def test_skipped_steps_of_a_scale_that_is_not_dynamic_are_not_explained(rule):
    run = of_steps(FINE, ALL_BAD, FINE)
    run.scale.rule = rule
    line = lines_of_monitor("", [Summary.of(run)])[1]
    assert line.startswith("not applied: 1 step. Either the gradients were too large for the loss")


@pytest.mark.parametrize("parameter", ["growth_steps", "growth_factor", "shrink_factor"])
@pytest.mark.parametrize("value", [0, -1, 1, math.inf, math.nan])
def test_parameters_that_no_loss_scale_has_raise_no_error(parameter, value):
    run = of_steps(*[FINE, SKIPPED] * 9, FINE, scales=[2.0**-step for step in range(19)])
    setattr(run.scale, parameter, value)
    assert lines_of_monitor("", [Summary.of(run)])


def test_a_record_shows_that_no_loss_was_scaled(tmp_path, capsys):
    destination = Destination(str(tmp_path / "record"))
    destination.hold()
    file = RecordFile(destination)
    for _ in range(2):
        file.add_step(file.add_optimizer(RunHeader(), of_steps()), 0)
    file.summaries[1].scales_no_loss = True
    file.close(has_ended=True)
    first, second = shown(capsys, destination.path).split("Optimizer 1, ")
    assert "scaled" not in first
    text = " ".join(second.split())
    assert "scaled losses none next no loss was scaled through the optimizer: " in text
    optimizers = json.loads(shown(capsys, destination.path, "--json"))["optimizers"]
    assert [optimizer["no_loss_scaled"] for optimizer in optimizers] == [False, True]
    assert optimizers[1]["next"].startswith("no loss was scaled through the optimizer")
    page = shown(capsys, destination.path, "--html")
    assert page.count("<th>scaled losses</th><td>none</td>") == 1


def test_two_lines_at_the_end_of_a_run():
    summary = Summary.of(of_steps(FINE, SKIPPED, APPLIED, APPLIED))
    lines = lines_at_the_end("run.jsonl", [summary])
    assert lines[0] == (
        "recorded 4 steps in run.jsonl: 1 skipped (in step 1), 2 applied though not finite (from "
        "step 2 on), first in emb/kernel, loss scale 8."
    )
    assert len(lines) == 2
    several = lines_at_the_end("run.jsonl", [summary] * 10)
    assert "optimizer 1: 1 skipped" in several[0]
    assert max(map(len, lines + several)) <= 300
