"""`compare` on six more programs that were written after its rules were fixed.

They are in `tests/data/recorders/fresh_programs.py`; `README.md` has the results of the first try.
"""

import collections

import pytest
from collected_runs import TWO, Family

from tf_lossscale._compare import rendering
from tf_lossscale._compare.judgements import Cause, Kind, Verdict

pytestmark = pytest.mark.by_file

SIX = Family("fresh", ("2.3", "2.8", "2.15", "2.21-tf_keras", "2.18", "2.21"))
PROGRAMS = {
    *("gan_fit", "mirrored", "gru_stateful"),
    *("eager_bfloat16", "accumulated_clipped", "transformer_fit"),
}
SMALL = {
    # At most six times as far as a disturbed run.
    ("accumulated_clipped", "restart", "2.3"),
    ("accumulated_clipped", "restart", "2.8"),
    ("mirrored", "restart", "2.3"),  # there, a disturbed run itself skips another step at the end
}
"""Mistakes within what the old program varies by, with two disturbed runs."""
CAUSES = {
    Cause.REDUCED: {"clip"},
    # Decay is a part of the loss, which is not a whole number of times as large as a sum.
    Cause.OTHER_DATA: {"order", "half", "replica", "decay", "sum"},
    Cause.NOT_UNSCALED: {"not_unscaled"},
    Cause.NOT_SCALED: {"not_scaled"},
    Cause.WHOLE_FACTOR: {"sum"},
}
FACTS = {
    Kind.WEIGHTS: {"weights"},
    Kind.SETTINGS: {"rate", "momentum", "epsilon", "clip", "second_rate"},
    Kind.RATE: {"rate", "schedule", "second_rate"},
    Kind.PARAMETERS: {"initial", "period"},
}


def test_no_correct_pair_is_different_or_not_shown():
    found = SIX.correct(TWO)
    assert len(found) == 59
    assert {name for name, *_ in found} == PROGRAMS
    assert [key for key, result in found.items() if result.verdict.status] == []


def test_no_mistake_beyond_rounding_is_the_same():
    found = SIX.wrong(TWO)
    assert len(found) == 245
    assert {key for key, result in found.items() if not result.verdict.status} == SMALL
    counts = collections.Counter(result.verdict for result in found.values())
    assert counts[Verdict.DIFFERENT] >= 230
    # The losses of these records are unknown, and their norms are clipped in all steps.
    not_shown = {key[:2] for key, result in found.items() if result.verdict is Verdict.UNDECIDED}
    mistakes = ("half", "order", "sum", "not_unscaled")
    assert not_shown == {("accumulated_clipped", mistake) for mistake in mistakes}


def test_causes_that_are_named_are_right():
    named = collections.Counter()
    for (name, mistake, _), result in SIX.wrong(TWO).items():
        cause, kind = result.first.cause, result.first.kind
        expected = CAUSES[cause] if cause is not None else FACTS.get(kind)
        if expected is not None:
            assert mistake in expected, (name, mistake, rendering.sentence(result))
            named[cause or kind] += 1
    assert sum(named.values()) >= 150, named


def test_no_line_is_long():
    for result in (*SIX.correct(TWO).values(), *SIX.wrong(TWO).values()):
        lines = [rendering.sentence(result), *rendering.evidence(result)]
        assert max(map(len, lines)) <= 300
        assert not any(line.endswith("...") for line in lines)  # said shortly, and not cut off
