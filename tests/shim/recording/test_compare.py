"""`compare` finds and names deliberate mistakes, and never reports correct runs as different."""

import copy
import dataclasses
import json
import math
import os
import random
import time

import pytest
from collected_runs import some_steps
from processes import LONG
from simulated import Run, record

from tf_lossscale._compare.command import _summary, main
from tf_lossscale._compare.comparing import Conditions, Verdict, compare, equal_conditions
from tf_lossscale._records.destination import Destination
from tf_lossscale._records.format import COLUMNS, RunHeader, ScaleParameters
from tf_lossscale._records.writing import RecordFile

RIGHT = Run()

MISTAKES = [
    (Run(rate=0.024), "losses differ from step 1 on", "learning rate (a larger or smaller one)"),
    (Run(obeyed=10), "breaks its update rule at step 10", "finite steps before growth"),
    (Run(growth_steps=10), "loss scales are declared with", "growth_steps 20 and 10"),
    (Run(growth_factor=4.0), "declared", "growth_factor 2 and 4"),
    (Run(shrink_factor=0.25), "declared", "shrink_factor 0.5 and 0.25"),
    (Run(shrink_steps=2, rule="exponential"), "declared", "shrink_steps 1 and 2"),
    (Run(initial_scale=2048.0), "declared", "initial_scale 4096 and 2048"),
    (Run(rule="fixed", obeyed=10**6), "declared", "rule dynamic and fixed"),
    (Run(weights=2), "start from other initial weights", "restore the same checkpoint"),
    (Run(weights=2, known_weights=False), "losses differ at step 0", "initial weights"),
    (Run(data=2), "losses differ at step 0", "other data in this batch"),
    (Run(clip=1.0), "losses differ from step 1 on", "clipping"),
    (Run(norm_by_scale=1), "norms differ at step 0", "scaled twice, or not unscaled"),
    (Run(norm_by_scale=-1), "norms differ at step 0", "unscaled twice"),
    (Run(norm_factor=0.5), "norms differ at step 0", "2 replicas"),
    (Run(norm_factor=4.0), "norms differ at step 0", "a sum over 4 replicas or batches"),
]


@pytest.mark.parametrize(("run", "where", "cause"), MISTAKES)
def test_a_mistake_is_found_and_named(run, where, cause):
    found = compare(record(RIGHT), record(run))
    assert found.verdict is Verdict.DIFFERENT
    assert where in found.sentence
    assert cause in found.sentence


@pytest.mark.parametrize("run", [Run(), Run(rule="exponential"), Run(initial_scale=2.0**17)])
def test_equal_runs_are_identical(run):
    found = compare(record(run), record(run))
    assert found.verdict is Verdict.IDENTICAL
    assert found.sentence == "Same: 1000 steps, bit-identical."


@pytest.mark.parametrize("seed", range(5))
def test_rounding_makes_no_difference(seed):
    old, new = Run(weights=seed, data=seed), Run(weights=seed, data=seed, rounding=1e-3)
    assert compare(record(old), record(new)).verdict in (Verdict.SAME, Verdict.ALIKE)


def test_runs_that_part_at_a_skip_are_judged_by_means():
    old, new = Run(steps=3000), Run(steps=3000, rounding=1e-2)
    found = compare(record(old), record(new))
    assert found.verdict is Verdict.ALIKE
    assert found.step is not None
    wrong = compare(record(old), record(Run(steps=3000, rounding=1e-2, rate=0.021)))
    assert wrong.verdict is Verdict.DIFFERENT


def test_a_run_that_drifts_after_the_parting_skip_is_different():
    old, new = record(Run(steps=3000)), record(Run(steps=3000, rounding=1e-2))
    part = compare(old, new).runs.part
    new.loss[part:] = [loss * 1.1 for loss in new.loss[part:]]
    found = compare(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert f"differ from step {found.runs.step(part)} on" in found.sentence


def without_numbers(run, steps, but=()):
    """A run without norms, and without the losses of some steps."""
    run.norm = [None] * len(run.steps)
    run.loss = [None if i in steps and i not in but else x for i, x in enumerate(run.loss)]
    return run


def test_few_steps_are_too_short():
    old, new = record(Run(steps=3000)), record(Run(steps=3000, rounding=1e-2))
    part = compare(old, new).runs.part
    found = compare(*(some_steps(run, part + 90) for run in (old, new)))
    assert found.verdict is Verdict.ALIKE  # hundreds of steps before the skip agree
    assert "90 steps after it are too few to compare means" in found.sentence
    found = compare(*(some_steps(run, part + 90, part - 60) for run in (old, new)))
    assert found.verdict is Verdict.UNDECIDED
    assert found.sentence.startswith("Too short to judge")
    few = [some_steps(record(run), 12) for run in (Run(), Run(rounding=1e-3))]
    assert compare(*few).verdict is Verdict.UNDECIDED


SHORTER = [
    (lambda run: some_steps(run, 440), (True, True), "new run ends after step 439 of 999"),
    (lambda run: some_steps(run, 440), (True, False), "(no end mark: it was cut off)"),
    (lambda run: some_steps(run, 1), (True, True), "new run ends after step 0 of 999"),
    (lambda run: without_numbers(run, range(500, 1000)), (True, True), "norms from step 500 on"),
    (lambda run: without_numbers(run, range(1, 1000)), (True, True), "norms from step 1 on"),
    (lambda run: run, (True, False), "new run ends at step 999 (no end mark: it was cut off)"),
    (lambda run: run, (False, True), "old run ends at step 999 (no end mark: it was cut off)"),
]


@pytest.mark.parametrize(("cut", "ended", "message"), SHORTER)
def test_a_run_that_ends_early_is_never_the_same(cut, ended, message):
    found = compare(record(RIGHT), cut(record(RIGHT)), Conditions(ended=ended))
    assert found.verdict is Verdict.UNDECIDED
    assert message in found.sentence
    assert "bit-identical" in found.sentence
    assert compare(record(RIGHT), record(RIGHT), Conditions(ended=(True, True))).verdict.status == 0


def test_a_scale_that_the_program_changes_is_compared_as_it_is():
    runs = [record(Run(obeyed=obeyed)) for obeyed in (10, 10, 9)]
    assert compare(runs[0], runs[1]).verdict is Verdict.IDENTICAL
    found = compare(runs[0], runs[2])
    assert "the loss scales part at step 9, and no skip explains it" in found.sentence


def test_few_losses_show_little():
    quiet = {"growth_steps": 5000, "initial_scale": 64.0}
    other = without_numbers(record(Run(rate=0.021, **quiet)), range(1000), but=(0, 999))
    found = compare(record(Run(**quiet)), other)
    assert found.verdict is Verdict.UNDECIDED
    assert "too few losses are in both records" in found.sentence


def test_equal_versions_are_equal_to_the_bit():
    old, new = record(RIGHT), record(RIGHT)
    new.loss[400] *= 1 + 1e-7  # of a loss below a tenth of the first
    assert compare(old, new).verdict is Verdict.SAME
    found = compare(old, new, Conditions(are_equal=True))
    assert found.verdict is Verdict.DIFFERENT
    assert "same versions and devices" in found.sentence
    assert "from step 400 on (by 6e-08)" in found.sentence
    assert "use --baseline" in found.sentence
    again = compare(old, new, Conditions(are_equal=True, baseline=record(RIGHT)))
    assert again.verdict is Verdict.DIFFERENT
    assert "the old program gives equal numbers" in again.sentence
    varying = record(RIGHT)
    varying.loss[300] *= 1 + 1e-7
    found = compare(old, new, Conditions(are_equal=True, baseline=varying))
    assert found.verdict.status == 0
    assert any("not equal to its own second run" in each for each in found.evidence)
    cause = compare(old, record(Run(rate=0.022)), Conditions(are_equal=True)).sentence
    assert "learning rate" in cause


def test_conditions_are_those_of_both_headers():
    right = RunHeader("2.15.1", "2.15.0", "3.11", ["CPU"], 1, None)
    assert equal_conditions(right, dataclasses.replace(right, python="3.12"))
    others = {"tensorflow": "2.16.1", "keras": None, "devices": ["CPU", "GPU"], "replicas": 2}
    for name, value in {**others, "xla": True}.items():
        assert not equal_conditions(right, dataclasses.replace(right, **{name: value}))
    assert not equal_conditions(RunHeader(), RunHeader())


def test_the_loss_of_the_step_where_runs_part_is_compared():
    old, new = record(RIGHT), record(RIGHT)
    new.finite[2] = new.applied[2] = False
    new.scale = old.scale = ScaleParameters("unknown", old.scale.initial_scale)
    new.loss[2] *= 1.003
    found = compare(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert "losses differ from step 2 on" in found.sentence


def test_other_shapes_cannot_be_compared():
    other = record(RIGHT)
    other.shapes = [[2, 4]]
    found = compare(record(RIGHT), other)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "[8] in the old run and [2, 4] in the new one" in found.sentence


def test_a_step_that_only_one_run_applies_is_different():
    other = record(RIGHT)
    skipped = other.finite.index(False)
    other.applied[skipped] = True
    found = compare(record(RIGHT), other)
    assert found.sentence == f"Different: only the new run applies the gradients of step {skipped}."


def test_unknown_values_are_no_difference():
    other = record(RIGHT)
    other.norm = [None] * len(other.norm)
    other.loss[3] = None
    assert compare(record(RIGHT), other).verdict is Verdict.IDENTICAL
    first, second = record(RIGHT), record(RIGHT)
    for run in (first, second):
        run.loss, run.norm = [None] * 1000, [None] * 1000
    assert compare(first, second).verdict is Verdict.NOT_COMPARABLE


def write(path, *runs, header=None, keep=None):
    """Writes a record, of the steps for which `keep` is true, and returns its path."""
    destination = Destination(str(path))
    destination.hold()
    file = RecordFile(destination)
    for run in runs:
        number = file.add_optimizer(header or RunHeader(tensorflow="2.21.0", devices=["CPU"]), run)
        names = [column.name for column in COLUMNS if getattr(run, column.name)]
        columns = zip(*[getattr(run, name) for name in names])
        for step, values in zip(run.steps, columns):
            if keep is None or keep(step):
                file.add_step(number, step, **dict(zip(names, values)))
    file.close(has_ended=True)
    return str(path)


def test_the_command_reports_and_exits_by_the_verdict(tmp_path, capsys):
    old, same = (write(tmp_path / name, record(RIGHT)) for name in ("old", "same"))
    other = write(tmp_path / "other", record(Run(obeyed=10)))
    assert main([old, same]) == 0
    assert capsys.readouterr().out.startswith("Same: 1000 steps, bit-identical.\n")
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    assert main([old, other, "--json", str(report), "--html", str(page)]) == 1
    assert "> 10" in capsys.readouterr().out
    (values,) = json.loads(report.read_text())["optimizers"]
    assert (values["verdict"], values["step"]) == ("different", 10)
    assert page.read_text().count("<svg") == 6  # loss and norm once more where the runs part
    assert "http" not in page.read_text()  # nothing comes from a network


def test_a_baseline_widens_what_counts_as_equal(tmp_path, capsys):
    right, noisy = record(RIGHT), record(RIGHT)
    noisy.loss[5:] = [loss * 1.01 for loss in noisy.loss[5:]]
    old, new, second = (
        write(tmp_path / name, run)
        for name, run in (("old", right), ("new", noisy), ("second", noisy))
    )
    assert main([old, new]) == 1
    assert main([old, new, "--baseline", second]) == 0
    assert main([old, new, "--baseline", new]) == 2
    assert main([old, new, "--loss-tolerance", "0.02"]) == 0
    assert main([old, old, "--loss-tolerance", "0"]) == 0
    capsys.readouterr()


OTHER_BASELINES = [
    (Run(weights=6), "start from other initial weights"),
    (Run(weights=6, known_weights=False), "the losses differ at step 0"),
    (Run(growth_steps=10), "growth_steps 20 and 10"),
]


@pytest.mark.parametrize(("run", "message"), OTHER_BASELINES)
def test_a_baseline_of_another_run_excuses_nothing(run, message):
    found = compare(record(RIGHT), record(Run(rate=0.03)), Conditions(baseline=record(run)))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert message in found.sentence


def test_each_optimizer_is_compared(tmp_path, capsys):
    old = write(tmp_path / "old", record(RIGHT), record(RIGHT), record(Run(weights=5)))
    new = write(tmp_path / "new", record(RIGHT), record(Run(obeyed=10)), record(Run(weights=6)))
    page = tmp_path / "page.html"
    assert main([old, new, "--html", str(page)]) == 1
    out, text = capsys.readouterr().out, page.read_text()
    summary = "3 optimizers: 1 identical, 2 different. Optimizer 2 (Simulated) differs first, at "
    assert out.startswith(summary + "step 0.")
    assert out.index("Different") < out.index("Same: ")
    places = [summary, *(f"<h2 id='{place}'>Optimizer {2 - place}" for place in range(3))]
    assert sorted(places, key=text.index) == places
    one = write(tmp_path / "one", record(RIGHT))
    assert main([old, one]) == 2
    assert "has 3 loss-scale optimizers, and the new one has 1" in capsys.readouterr().err
    found = compare(record(RIGHT), record(RIGHT))
    found.verdict = Verdict.DIFFERENT  # on average, where no skip differs
    assert _summary([found, found], ["0", "1"], 0) == "2 optimizers: 2 different."


def test_a_gap_is_left_out(tmp_path, capsys):
    old = write(tmp_path / "old", record(RIGHT))
    new = write(tmp_path / "new", record(RIGHT), keep=lambda step: not 30 <= step < 75)
    assert main([old, new]) == 1
    out = capsys.readouterr().out
    assert "Same: 955 steps" in out
    assert "Not shown to be the same: steps 30 to 74 of the new run are missing" in out


HEADER = '{"tf_lossscale_record": 2}\n'
OPTIMIZER = (
    '{"optimizer": 0, "class": "A", "scale": {"rule": "fixed"}, "variables": [["w", [2]]]}\n'
)
STEP = '{"optimizer": 0, "step": 0}\n'
BAD_FILES = [
    (None, "cannot be read: No such file"),
    ("", "is empty"),
    ("\x7fELF", "is not a record of tf-lossscale"),
    ('{"step": 1}\n', "is not a record of tf-lossscale"),
    ('{"tf_lossscale_record": 4}\n', "has format 4, and this version of tf-lossscale reads"),
    (HEADER, "has no step"),
    (HEADER + "hello\n", "line 2: not a JSON object"),
    (HEADER + STEP, "line 2: 0 is missing"),
    (HEADER + "[]\n", "line 2: "),
]
BAD_STEPS = [
    ('"step": 1, "loss": "much"', "'much' is not a number"),
    ('"step": 1.5', "step 1.5 is not a whole number"),
    ('"step": 1' + "0" * 400, "step (huge) is not a whole number"),
    ('"step": 1, "loss": 1' + "0" * 400, "a number is too large for a float"),
    ('"step": 1, "loss": ' + "[" * 5000, "not a JSON object"),
    ('"step": 1, "finite": 1', "1 is neither true nor false nor null"),
    ('"step": 0', "step 0 follows step 0: two runs in one file?"),
]
for _step, _message in BAD_STEPS:
    _lines = HEADER + OPTIMIZER + STEP + STEP.replace('"step": 0', _step)
    BAD_FILES.append((_lines, "line 4: " + _message))
BAD_SCALES = [
    ('{"rule": "linear"}', "rule 'linear' is none of dynamic"),
    ('{"rule": "dynamic", "growth_steps": "many"}', "growth_steps 'many' is not a whole number"),
    ('{"rule": "dynamic", "growth_factor": null}', "growth_factor is null"),
    ('{"rule": "dynamic", "good_steps": true}', "good_steps True is not a whole number"),
    ('["rule"]', ""),
    *(
        ('{"rule": "fixed"}, "settings": ' + settings, "")
        for settings in ("[]", "3", '{"a": "much"}', '{"a": {}}')
    ),
]
for _scale, _message in BAD_SCALES:
    _lines = HEADER + OPTIMIZER.replace('{"rule": "fixed"}', _scale) + STEP
    BAD_FILES.append((_lines, "line 2: " + _message))


@pytest.mark.parametrize(("content", "message"), BAD_FILES)
def test_what_is_no_record_is_refused_with_a_sentence(tmp_path, capsys, content, message):
    path = tmp_path / "bad"
    if content is not None:
        path.write_text(content)
    assert main([str(path), str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tf-lossscale compare: {path}")
    assert message in error


def test_infinities_survive_the_file(tmp_path, capsys):
    right = record(RIGHT)
    right.loss[5] = math.nan
    right.loss[6] = math.inf
    assert main([write(tmp_path / "old", right), write(tmp_path / "new", right)]) == 0
    assert "bit-identical" in capsys.readouterr().out


def test_long_records_take_seconds(tmp_path, capsys):
    path = tmp_path / "long"
    count = 1_000_000 if LONG else 50_000
    with open(str(path), "w") as file:
        scale = f'{{"rule": "dynamic", "initial_scale": 8.0, "growth_steps": {2 * count}}}'
        file.write('{"tf_lossscale_record": 2}\n')
        file.write(OPTIMIZER.replace('{"rule": "fixed"}', scale))
        for step in range(count):
            file.write(
                '{"optimizer": 0, "step": ' + str(step) + ', "loss": 1.5, "scale": 8.0, '
                '"finite": true, "applied": true, "norm": 0.25, "bad": null}\n'
            )
        file.write(f'{{"end": {count}}}\n')
    started = time.process_time()
    assert main([str(path), str(path), "--html", str(tmp_path / "page.html")]) == 0
    assert time.process_time() - started < 120  # of the processor; a million takes 12
    assert os.path.getsize(str(tmp_path / "page.html")) < 200_000
    assert f"{count} steps, bit-identical" in capsys.readouterr().out


ODD = [None, True, "x", "nan", "inf", -1, 0, 1.5, 10**400, 1e308, [], {}, [1], {"a": 1}]
ODD += ["\x1b[31m", {"rule": "keras3", "initial_scale": None}, {"rule": "dynamic"}, [["w", ["a"]]]]


def mutated(lines, source):
    """The lines with one to three values replaced or left out."""
    lines = copy.deepcopy(lines)
    for _ in range(source.randint(1, 3)):
        line = source.choice(lines)
        if isinstance(line.get("scale"), dict):
            line = source.choice([line, line["scale"]])
        key = source.choice([*line, "gap", "bad"])
        if key in line and source.random() < 0.2:
            del line[key]
        else:
            line[key] = copy.deepcopy(source.choice(ODD))
    return lines


@pytest.mark.parametrize("seed", range(4))
def test_mutated_records_are_read_or_refused(tmp_path, capsys, seed):
    source = random.Random(seed)
    right = write(tmp_path / "right", record(Run(steps=12, growth_steps=4)))
    with open(right) as file:
        lines = [json.loads(line) for line in file]
    for number in range(100):
        other = tmp_path / str(number)
        other.write_text("".join(json.dumps(each) + "\n" for each in mutated(lines, source)))
        page, result = tmp_path / "page.html", tmp_path / "result.json"
        pair = source.choice([(right, str(other)), (str(other), right), (str(other), str(other))])
        assert main([*pair, "--html", str(page), "--json", str(result)]) in (0, 1, 2)
        assert "\x1b" not in capsys.readouterr().out


def test_one_spike_does_not_flatten_the_page(tmp_path, capsys):
    run = record(RIGHT)
    run.loss[500], run.loss[501] = 1e9, -1e8
    old, new = write(tmp_path / "old", record(RIGHT)), write(tmp_path / "new", run)
    page = tmp_path / "page.html"
    assert main([old, new, "--html", str(page)]) == 1
    text = page.read_text()
    assert "&#9650; 1 above, up to 1e+09" in text
    assert "&#9660; 1 below, to -1e+08" in text
    assert "2<sup>12</sup>" in text  # the scale
    assert "Loss, steps 475 to 525" in text
    assert "1e+09</span>" not in text.replace("up to 1e+09</span>", "")
    # Text within the drawings would shrink with them on a narrow page; only tables may be wider.
    assert "<text" not in text
    assert "width=device-width" in text
    assert text.count("<table>") == text.count("<div class='scroll'><table>") > 0
    capsys.readouterr()
