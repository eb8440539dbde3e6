"""The limits that the documentation gives are those of the code."""

import dataclasses
import importlib
import re
from typing import List

import pytest
from documents import ROOT
from tf_lossscale_codemods.engine.tree_size import MOST_MEMORY
from tf_lossscale_codemods.files.excludes import MOST_DATA
from tf_lossscale_codemods.run.limits import Limits

from tf_lossscale._compare import limits
from tf_lossscale._compare.judgements import Verdict
from tf_lossscale._records import format
from tf_lossscale._records.disturbed import disturbance
from tf_lossscale._records.reading import read_record

LIMITS = [
    ("migrate.md", "`--time-limit SECONDS` ({:.0f})", Limits().seconds),
    ("migrate.md", "`--size-limit MB` ({:.0f})", Limits().size / 2**20),
    ("migrate.md", "more than {:.0f} MB of memory", MOST_MEMORY / 2**20),
    ("migrate.md", "files of up to {:.0f} MB", MOST_DATA / 2**20),
    ("security.md", "at most {:.0f} MiB", ("_checkpoint.keras_files", "_FREE_BYTES", 2**20)),
    ("security.md", "or {} times its packed", ("_checkpoint.keras_files", "_LARGEST_RATIO", 1)),
    ("monitoring.md", "grown past 2^{}", ("_records.advice", "WITHOUT_EFFECT", None)),
    ("cross-shard.md", "raised after {} seconds", ("_replicas.collectives", "_GRACE", 1)),
]
WORDS = {10: "ten"}


@pytest.mark.parametrize(("page", "sentence", "limit"), LIMITS)
def test_limit_of_a_page_is_that_of_the_code(page, sentence, limit):
    if isinstance(limit, tuple):
        module, name, unit = limit
        limit = getattr(importlib.import_module(f"tf_lossscale.{module}"), name)
        limit = int(limit / unit) if unit else int(limit).bit_length() - 1
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert any(sentence.format(number) in text for number in (limit, WORDS.get(limit)) if number)


def test_compare_has_the_sums_of_the_tables_of_recorded_runs():
    tables = (ROOT / "tests/shim/recording/README.md").read_text(encoding="utf-8")
    first = [
        [int(number) for number in match.groups()]
        for match in re.finditer(r"^\| .+? \| (\d+) / (\d+) / (\d+) \|", tables, re.MULTILINE)
    ]
    (correct, *mistakes), later = (
        first,
        re.findall(
            r"^\| (\d+) (correct pairs|runs with a mistake)[^|]* (?:five disturbed runs|two|now) "
            r"\| (\d+) \| \d+ \| \d+ \|",
            tables,
            re.MULTILINE,
        ),
    )
    assert len(later) == 4
    pairs = sum(correct) + sum(int(n) for n, kind, _ in later if kind == "correct pairs")
    wrong = sum(map(sum, mistakes)) + sum(int(n) for n, kind, _ in later if kind != "correct pairs")
    found = sum(row[0] for row in mistakes) + sum(
        int(different) for _, kind, different in later if kind != "correct pairs"
    )
    page = " ".join((ROOT / "docs/compare.md").read_text(encoding="utf-8").split())
    assert f"Of {pairs} correct pairs, one is" in page
    assert f"Of {wrong} runs with a mistake, {found} are" in page
    assert correct[0] + sum(int(d) for _, kind, d in later if kind == "correct pairs") == 1


@pytest.mark.parametrize("name", ["digits_graph", "digits_keras"])
def test_a_rounding_error_grows_from_step_to_step(name):
    """`docs/prove.md`: in the records of the demo, by a factor of 5 in 120 steps."""
    traces = ROOT / "examples" / "traces"
    plain, disturbed = (
        [losses for losses in read_record(str(path)).optimizers[0].loss if losses is not None]
        for path in (traces / f"{name}.jsonl", traces / f"{name}.disturbed-1.jsonl")
    )
    differences = [abs(new / old - 1) for old, new in zip(plain, disturbed)]
    begin, end = (sum(part) / 30 for part in (differences[:30], differences[-30:]))
    assert end > 5 * begin > 0


def test_the_statuses_of_the_verdicts():
    page = (ROOT / "docs/prove.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| \*([a-z -]+)\* \| .* \| (\d) \|$", page, re.MULTILINE)
    names = {verdict.value[0].replace("identical", "bit-identical"): verdict for verdict in Verdict}
    assert len(stated) == len(names) - 1
    assert [int(status) for _, status in stated] == [names[name].status for name, _ in stated]
    assert f"Status {Verdict.NOT_COMPARABLE.status} means that the records" in page


def test_compare_has_the_limits_of_the_code():
    page = " ".join((ROOT / "docs/compare.md").read_text(encoding="utf-8").split())
    few, other = "if there are only one or two others", limits.FEW_RUNS.value - 1
    assert other == 2
    for sentence in (
        f"in a window of {limits.WINDOW.value} steps.",
        f"more than {WORDS[limits.FIRST.value]} times what the disturbed runs differ by",
        f"{limits.first_loss('float16').value:g} for losses",
        f"{limits.first_norm('float16').value:g} for norms",
        f"more than {limits.LEAVES.value:g} times as far from the old run",
        f"({limits.LEAVES_FEW.value:g} times, {few})",
        f"or {limits.LEAVES_ON_AVERAGE.value:g} times on average",
        f"the first {limits.BEGINNING.value}, if at least {limits.AVERAGED.value} windows",
        f"fewer than {limits.FEW.value}, if a skip differs",
        f"a difference of {100 * limits.UNSTEADY.value:g} % in the first",
    ):
        assert sentence in page, sentence
    assert limits.FIRST_AT_LEAST.value == 0.25
    assert "more than a quarter of the limit without disturbed runs" in page
    scales = {disturbance("", number, 0.0).scale for number in range(1, 6)} - {1.0}
    assert "in two of the runs the loss scale by {} or {}".format(*sorted(scales)[::-1]) in page


def test_compare_has_the_number_of_the_programs():
    tables = (ROOT / "tests/shim/recording/README.md").read_text(encoding="utf-8")
    (first,) = re.findall(r"^(\d+) small float16 programs", tables, re.MULTILINE)
    assert "\n## Eight programs that the rules had never seen\n" in tables
    assert "\n## Six more\n" in tables
    page = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    assert f"on {int(first) + 8 + 6} small programs, {8 + 6} of them written afterwards" in page


def test_compare_explains_fields_of_the_format():
    page = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    table = page.partition("| field | meaning |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (.*?) \|", table, re.M))))
    parts = [format.RunHeader, format.ScaleParameters, format.OptimizerRecord]
    known = {field.name for part in parts for field in dataclasses.fields(part)}
    columns = {column.key for column in format.COLUMNS}
    assert named <= known | columns | {"step"}
    assert columns <= named
    defaults = format.ScaleParameters()
    last = ("growth_factor", "shrink_steps", "shrink_factor", "minimum_scale")
    stated = "2, 1, 0.5 and 1"
    values = [f"{getattr(defaults, name):g}" for name in last]
    assert f"{', '.join(values[:3])} and {values[3]}" == stated
    assert f"the defaults of the last four are {stated}." in table


def on_both_machines(tables: str, name: str) -> List[List[str]]:
    """The least and the most of a row of the slower machine: in the tables above it, and there."""
    slower = tables.partition("## A slower machine")[2]
    (cells,) = re.findall(
        rf"^\| what {re.escape(name)}(?:, \S+)? \| (.*) \|$", slower, re.MULTILINE
    )
    return [re.findall(r"[\d.]+", cell) for cell in cells.split("|")]


def test_prove_has_the_cost_of_a_record():
    page = (ROOT / "docs/prove.md").read_text(encoding="utf-8")
    tables = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    (least, most), (_, most_on_slower) = on_both_machines(tables, "a record adds to a step")
    assert f"A record adds {least} to {most} ms to a step here" in tables
    assert f"A step takes {least} to {most_on_slower} ms longer" in page


def percent_more(tables: str, mode: str, column: int) -> List[int]:
    """The least and the most that a class adds to a plain step, in the rows of a mode."""
    found = []
    for line in tables.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == 6 and mode in cells[0] and cells[1].endswith(",000"):
            found.append(round(100 * (float(cells[column]) / float(cells[2]) - 1)))
    return [min(found), max(found)]


def test_cost_has_the_ranges_of_the_tables_of_the_benchmarks():
    tables = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    rows = [("a Session", "session"), ("a `tf.function`, on", "tf.function"), ("eager", "eager")]
    for name, mode in rows:
        (row,) = re.findall(rf"^\| a step in {re.escape(name)}.*", page, re.MULTILINE)
        stated = [[int(number) for number in pair] for pair in re.findall(r"(\d+) to (\d+) %", row)]
        assert stated == [percent_more(tables, mode, column) for column in (3, 4)], name


def test_cost_has_the_most_of_the_slower_machine():
    tables = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    (_, ours), (_, original) = (
        on_both_machines(tables, f"{what} adds to a step in a Session")[1]
        for what in ("ours", "the original")
    )
    assert f"took up to {ours} % more (TensorFlow's: {original} %)" in page


def test_the_slower_machine_is_compared_with_the_tables_above():
    tables = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    above = tables.partition("## A slower machine")[0]
    modes = {"a Session": "session", "a `tf.function`": "tf.function", "eager mode": "eager"}
    for name, mode in modes.items():
        for column, what in [(3, "the original"), (4, "ours")]:
            stated, _ = on_both_machines(tables, f"{what} adds to a step in {name}")
            assert [int(number) for number in stated] == percent_more(above, mode, column), name


def test_cost_has_the_memory_of_the_tables_of_the_benchmarks():
    tables = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    measured = [
        [int(number) for number in row]
        for row in re.findall(
            r"^\| peak memory at .*, MB \| (\d+) \| (\d+) \| (\d+) \|", tables, re.MULTILINE
        )
    ]
    assert len(measured) == 3
    most = [max(round(100 * (row[i] / row[0] - 1)) for row in measured) for i in (1, 2)]
    assert "| peak memory, on CPUs | up to {} % more | up to {} % more |".format(*most) in page


def test_cost_has_the_other_numbers_of_the_benchmarks():
    """Of monitors, of the command and of the GPU; and what is measured."""
    tables = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    assert "a step of Adam with a trivial loss" in tables
    assert "two cores" in tables
    assert "H200" in tables
    page = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    monitored = {
        mode: [
            int(added)
            for row in re.findall(rf"^\| {mode}, [\d.]+ \|(.*, .*)$", tables, re.MULTILINE)
            for added in re.findall(r", \+(\d+),", row)
        ]
        for mode in ("session", "function")
    }
    most = {}
    for mode, name in [("session", "a Session"), ("function", "a `tf.function`")]:
        above, slower = on_both_machines(tables, f"a monitor adds to a step in {name}")
        assert [int(number) for number in above] == [min(monitored[mode]), max(monitored[mode])]
        most[mode] = slower[1]
    least = min(monitored["session"])
    assert (
        f"{least} to {most['session']} µs for each step of a Session; up to {most['function']} µs"
        in page
    )

    sparse, dense = (
        float(
            re.findall(rf"^\| {files} files, .*? \| [\d.]+ \| ([\d.]+) \|", tables, re.MULTILINE)[0]
        )
        for files in (400, 60)
    )
    assert f"| {sparse:.1f} s for 400 files, 4 of them" in page
    assert f"; {dense:.1f} s for 60 files, all" in page
    (start,) = re.findall(r"^\| `tf-lossscale --help`.* \| ([\d.]+) s \|", tables, re.MULTILINE)
    assert f"| `tf-lossscale --help` | | {float(start):.1f} s |" in page

    on_gpu = re.findall(
        r"200 x 1,000: plain ([\d.]+) ms, original \+([\d.]+), ours \+([\d.]+); "
        r"20 x 5,000,000: plain [\d.]+ ms, original \+([\d.]+), ours \+([\d.]+)",
        tables,
    )
    plain, original, ours, *large = (
        [float(number) for number in column] for column in zip(*on_gpu)
    )
    assert (
        f"about {sum(original) / 2:.0f} ms more than {min(plain):.0f} to {max(plain):.0f} ms"
        in page
    )
    assert f"| about {sum(ours) / 2:.0f} ms more |" in page
    assert {round(number) for column in large for number in column} == {1}
    assert "| about 1 ms more | about 1 ms more |" in page
