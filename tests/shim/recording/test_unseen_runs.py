"""`compare` on eight programs that were written after its rules were fixed.

They are in `tests/data/recorders/unseen_programs.py`; `README.md` has the results of the first try.
"""

import collections

import pytest
from collected_runs import ALL, TWO, Family

from tf_lossscale._compare import rendering
from tf_lossscale._compare.judgements import Cause, Kind, Verdict

pytestmark = pytest.mark.by_file

VERSIONS = ("1.15", "2.3", "2.8", "2.11", "2.15", "2.18", "2.21")
PROGRAMS = {
    *("attention_clipped", "accumulated", "two_optimizers", "dropout_long"),
    *("lstm_bfloat16", "xla_fit", "embedding_session", "contrib_loop"),
}
SMALL = {
    # They change losses and norms by less than three times what a disturbance does.
    ("contrib_loop", "restart"),
    ("dropout_long", "restart"),
    ("xla_fit", "restart"),
}
"""Mistakes within what the old program varies by."""


EIGHT = Family("unseen", VERSIONS)
correct, wrong = EIGHT.correct, EIGHT.wrong


def test_eight_programs_are_compared_on_many_versions():
    assert {name for name, *_ in correct(ALL)} == PROGRAMS
    assert {name for name, *_ in wrong(ALL)} == PROGRAMS
    assert (len(correct(ALL)), len(wrong(ALL))) == (44, 162)


@pytest.mark.parametrize("numbers", [ALL, TWO], ids=str)
def test_no_correct_pair_is_different(numbers):
    found = correct(numbers)
    different = [key for key, result in found.items() if result.verdict is Verdict.DIFFERENT]
    assert different == []
    # Its record has no losses, and its norms vary too much.
    not_shown = {key[0] for key, result in found.items() if result.verdict.status}
    assert not_shown == {"accumulated"}


@pytest.mark.parametrize("numbers", [ALL, TWO], ids=str)
def test_no_mistake_beyond_rounding_is_the_same(numbers):
    found = wrong(numbers)
    passed = {key[:2] for key, result in found.items() if not result.verdict.status}
    assert passed == SMALL
    different = sum(result.verdict is Verdict.DIFFERENT for result in found.values())
    assert different >= 152


CAUSES = {
    Cause.REDUCED: {"clip", "decay"},
    Cause.OTHER_DATA: {"order", "half", "dropout"},
    Cause.NOT_UNSCALED: {"not_unscaled"},
    Cause.NOT_SCALED: {"not_scaled"},
    Cause.WHOLE_FACTOR: {"sum"},
}
FACTS = {
    Kind.WEIGHTS: {"weights"},
    Kind.SETTINGS: {"rate", "momentum", "epsilon", "clip", "second_rate", "second_epsilon"},
    Kind.RATE: {"rate", "second_rate"},
    Kind.NOT_UNSCALED_HERE: {"not_unscaled"},
}


def test_causes_that_are_named_are_right():
    named = collections.Counter()
    for (name, mistake, _), result in wrong(ALL).items():
        cause, kind = result.first.cause, result.first.kind
        expected = CAUSES.get(cause) if cause is not None else FACTS.get(kind)
        if expected is not None:
            assert mistake in expected, (name, mistake, rendering.sentence(result))
            named[cause or kind] += 1
    assert sum(named.values()) >= 100, named


def test_no_line_is_long():
    for result in (*correct(ALL).values(), *wrong(ALL).values()):
        lines = [rendering.sentence(result), *rendering.evidence(result)]
        assert max(map(len, lines)) <= 300
        assert not any(line.endswith("...") for line in lines)  # said shortly, and not cut off
