"""`compare` on recorded runs of many programs, correct ones and ones with a mistake.

The tables of `README.md` are counted here, so that a change of the limits shows in all of them.
"""

import collections
import functools
import os

import collected_runs
import pytest
from collected_runs import ALL, MISTAKES, TWO, VERSIONS, collection

from tf_lossscale._compare import rendering
from tf_lossscale._compare.judgements import Cause, Kind, Verdict

pytestmark = pytest.mark.by_file

TRAINS_DIFFERENTLY = {
    # Keras 3's Adam squares the rows of an embedding's gradient before it adds those of equal
    # index, and Keras 2's afterwards, so that the numbers differ in float32, too.
    ("fit_words", "2.8", "2.21"),
}
MISSES = {
    ALL: {
        ("fit_big", "late"),
        ("fit_stride", "late"),
        ("keras_dense", "restart"),
        ("v1_attention", "restart"),
        ("v1_words", "restart"),
        ("contrib_parts", "decay"),
    },
}
MISSES[TWO] = {*MISSES[ALL], ("keras_words", "clip"), ("fit_dense", "schedule")}


@functools.lru_cache(maxsize=None)
def verdicts_of_correct_runs(numbers):
    """What is found about correct runs, by program and versions."""
    found = {}
    for name, old, new in collected_runs.correct_pairs():
        runs = [collected_runs.correct(f"{name}-none", version) for version in (old, new)]
        again = collected_runs.disturbed(name, old, numbers)
        found[name, old, new] = collected_runs.compared(*runs, again)
    return found


@functools.lru_cache(maxsize=None)
def verdicts_of(mistake, numbers):
    """What is found about the programs with a mistake, by program."""
    found = {}
    for name, program in collected_runs.with_effect(mistake).items():
        version = collected_runs.oldest_version(name)
        old = collected_runs.correct(f"{name}-none", version)
        again = collected_runs.disturbed(name, version, numbers)
        found[name] = collected_runs.compared(old, program, again)
    return found


@pytest.mark.parametrize("numbers", [ALL, TWO], ids=str)
def test_correct_runs_are_the_same_on_another_version(numbers):
    found = verdicts_of_correct_runs(numbers)
    wrong = {key for key, result in found.items() if result.verdict.status}
    assert wrong == TRAINS_DIFFERENTLY
    assert len(found) == 85


@pytest.mark.parametrize("numbers", [ALL, TWO], ids=str)
def test_mistakes_are_not_called_the_same(numbers):
    found = {
        (name, mistake): result
        for mistake in MISTAKES
        for name, result in verdicts_of(mistake, numbers).items()
    }
    passed = {key for key, result in found.items() if not result.verdict.status}
    assert passed == MISSES[numbers]
    different = {key for key, result in found.items() if result.verdict is Verdict.DIFFERENT}
    assert different == set(found) - passed
    assert len(found) == 441


def test_without_disturbed_runs_nothing_is_called_rounding():
    """Correct runs are bit-identical or not shown to be the same, and no mistake passes."""
    for result in verdicts_of_correct_runs(()).values():
        assert result.verdict in (Verdict.IDENTICAL, Verdict.UNDECIDED)
        if result.verdict is Verdict.UNDECIDED:
            assert result.first.kind is Kind.NO_BASELINE
            assert "record --disturb 5" in rendering.advice(result)
    for mistake in MISTAKES:
        for result in verdicts_of(mistake, ()).values():
            assert result.verdict in (Verdict.DIFFERENT, Verdict.UNDECIDED)


CAUSES = {
    Cause.REDUCED: ("clip", "decay"),
    Cause.OTHER_DATA: ("order", "part"),
    Cause.NOT_UNSCALED: ("scaled",),
    Cause.NOT_SCALED: ("twice",),
    Cause.WHOLE_FACTOR: ("sum",),
}
"""The mistakes that have a cause."""
FACTS = {
    Kind.WEIGHTS: ("weights",),
    Kind.PARAMETERS: ("period", "fixed"),
    Kind.SETTINGS: ("momentum", "settings", "rate", "clip"),
    Kind.SLOTS: (),
    Kind.RATE: ("rate", "schedule"),
    Kind.COMPUTED: (),
}
"""The mistakes that a fact names by itself."""


def test_causes_that_are_named_are_right():
    named = collections.Counter()
    for mistake in MISTAKES:
        for name, result in verdicts_of(mistake, ALL).items():
            if result.verdict is not Verdict.DIFFERENT:
                continue
            cause, kind = result.first.cause, result.first.kind
            if cause is not None:
                assert mistake in CAUSES[cause], (name, mistake, rendering.sentence(result))
                named[cause] += 1
            elif kind in FACTS:
                assert mistake in FACTS[kind], (name, mistake, rendering.sentence(result))
                named[kind] += 1
            else:
                assert "look at" in rendering.sentence(result) or kind in NAMED, result.first
    assert sum(named.values()) >= 280, named


NAMED = (Kind.SCALE_RULE, Kind.SCALES_PART, Kind.APPLIED, Kind.SKIPS)
"""What says by itself what happens."""


def test_no_line_is_long():
    for mistake in MISTAKES:
        for result in verdicts_of(mistake, ALL).values():
            lines = [rendering.sentence(result), *rendering.evidence(result)]
            assert max(map(len, lines)) <= 300


COLUMNS = (Verdict.DIFFERENT, Verdict.UNDECIDED, "same")


def row(results):
    """The cells of the table for some results."""
    counts = collections.Counter(
        result.verdict if result.verdict.status else "same" for result in results
    )
    return [str(counts[column]) for column in COLUMNS]


def test_the_table_shows_what_is_found_here():
    with open(os.path.join(collected_runs.HERE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    titles = {"none": "no mistake, another version", **MISTAKES}
    rows = []
    for mistake, words in titles.items():
        cells = [words]
        for numbers in (ALL, TWO, ()):
            found = (
                verdicts_of_correct_runs(numbers)
                if mistake == "none"
                else verdicts_of(mistake, numbers)
            )
            cells.append(" / ".join(row(found.values())))
        rows.append("| " + " | ".join(cells) + " |")
    table = "\n".join(rows)
    assert table in text, table


def test_all_collections_are_compared():
    files = {file.split(".json")[0] for file in os.listdir(collected_runs.RECORDS)}
    seen = {file for file in files if file.partition("-")[0] not in ("unseen", "fresh")}
    assert seen == {"mistakes-2.21", "walks", *(f"right-{version}" for version in VERSIONS)}
    kinds = {key.split("-")[1] for key in collection("mistakes-2.21")}
    assert kinds == set(MISTAKES)
    names = {key.split("-")[0] for key in collection("right-2.21")}
    assert len(names) == 29
