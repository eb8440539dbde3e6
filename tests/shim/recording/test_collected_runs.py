"""`compare` on recorded runs of many programs, correct ones and ones with a mistake.

The tables of `README.md` are counted here, so that a change of the limits shows in all of them.
"""

import collections
import dataclasses
import functools
import os

import collected_runs
from collected_runs import HELD_OUT, MISTAKES, VERSIONS, collection

DIFFERENT, UNDECIDED = "different", "not shown to be the same"
FALSE_ALARMS = {
    # Keras 3 updates the rows of an embedding in another way: by 0.001 in a step in float32, too.
    ("fit_words-none", "2.4", "2.21"),
    ("fit_words-none", "2.8", "2.21"),
    ("fit_words-none", "2.15", "2.21"),
    ("fit_words-weights", "2.8", "2.21"),
    ("fit_words-order", "2.8", "2.21"),
    # Sums of many random numbers: the errors grow quickly, here from nearly zero.
    ("fit_big-none", "2.8", "2.15"),
}
MISSES = {
    ("v1_attention", "restart"),
    ("v1_words", "restart"),
    ("keras_dense", "restart"),
    ("fit_stride", "schedule"),
}
NOISE = 2.0
"""What changes the numbers by less than so many times what rounding does is not a miss."""


@functools.lru_cache(maxsize=None)
def verdicts_of_correct_runs():
    """What is said of correct runs, by program and versions."""
    return {
        (key, old, new): collected_runs.compared(
            collected_runs.correct(key, old), collected_runs.correct(key, new)
        )
        for key, old, new in collected_runs.correct_pairs()
    }


@functools.lru_cache(maxsize=None)
def verdicts_of(mistake):
    """What is said of the programs with a mistake, by program."""
    return {
        name: collected_runs.compared(collected_runs.reference(name), program)
        for name, program in collected_runs.with_effect(mistake).items()
    }


def test_correct_runs_are_not_different_on_another_version():
    found = verdicts_of_correct_runs()
    different = {key for key, each in found.items() if each.verdict.value[0] == DIFFERENT}
    assert different == FALSE_ALARMS
    assert 20 * len(different) <= len(found)


def test_mistakes_are_not_called_the_same():
    found = {
        (name, mistake)
        for mistake in MISTAKES
        for name, each in verdicts_of(mistake).items()
        if each.verdict.status == 0
    }
    assert found == MISSES
    for name, mistake in MISSES:
        program = collected_runs.with_effect(mistake)[name]
        assert collected_runs.times_the_noise(name, program) < NOISE


def test_the_numbers_alone_show_most_mistakes_of_settings():
    # As where the settings are tensors of a graph, which no record has.
    passed, different = set(), 0
    for mistake in ("rate", "momentum", "settings", "clip"):
        for name, program in collected_runs.with_effect(mistake).items():
            runs = [dataclasses.replace(each, settings={}) for each in program.runs]
            found = collected_runs.compared(
                collected_runs.reference(name), program._replace(runs=runs)
            )
            different += found.verdict.value[0] == DIFFERENT
            if found.verdict.status == 0:
                passed.add((name, mistake))
    assert passed == {("v1_attention", "settings"), ("fit_noise", "clip")}
    assert different == 91


def row(found):
    """The cells of the table for some verdicts, by program: those held out come second."""
    counts = collections.Counter()
    for name, each in found:
        verdict = each.verdict.value[0]
        counts[verdict if each.verdict.status else "same", name in HELD_OUT] += 1
    return [f"{counts[verdict, False]} + {counts[verdict, True]}" for verdict in COLUMNS]


COLUMNS = (DIFFERENT, UNDECIDED, "same")


def test_the_table_shows_what_is_said_here():
    with open(os.path.join(collected_runs.HERE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    correct = [(key.split("-")[0], each) for (key, *_), each in verdicts_of_correct_runs().items()]
    rows = [["no mistake, another version", *row(correct)]]
    for mistake, words in MISTAKES.items():
        rows.append([words, *row(verdicts_of(mistake).items())])
    table = "\n".join("| " + " | ".join(each) + " |" for each in rows)
    assert table in text, table


CAUSES = {
    "rate": ("learning_rate",),
    "momentum": ("momentum", "beta_1"),
    "settings": ("beta_2", "rho", "nesterov", "initial_accumulator_value"),
    "weights": ("other initial weights",),
    "order": ("other data in this batch",),
    "part": ("other data in this batch", "other data or"),
    "twice": ("unscaled twice",),
    "scaled": ("not unscaled",),
    "sum": ("a sum over", "added up"),
    "clip": ("clips gradients to", "clipnorm"),
    "period": ("growth_steps",),
    "fixed": ("rule ", "growth_steps"),
}
"""What names the mistake. For the others no cause is named, but what to look at."""


def is_named(comparison):
    """Whether a sentence names a cause."""
    sentence = comparison.sentence
    known = (
        "cause: ",
        "Cause: ",
        "start from other initial weights",
        "are declared with",
        "clips gradients",
    )
    return comparison.verdict.value[0] == DIFFERENT and any(each in sentence for each in known)


def test_causes_that_are_named_are_right():
    named, wrong = collections.Counter(), []
    for mistake in MISTAKES:
        for name, each in verdicts_of(mistake).items():
            if is_named(each):
                right = any(words in each.sentence for words in CAUSES.get(mistake, ()))
                named[right] += 1
                wrong += [] if right else [(name, mistake, each.sentence)]
            elif each.verdict.value[0] == DIFFERENT and not in_short(each):
                wrong.append((name, mistake, each.sentence))
    assert not wrong, (named, wrong)
    assert named[True] >= 280


def in_short(comparison):
    """Whether a sentence without a cause says what to look at, or to compare in another way."""
    return any(words in comparison.sentence for words in ("look at", "compare on one version"))


def test_all_collections_are_compared():
    files = {each.split(".json")[0] for each in os.listdir(collected_runs.RECORDS)}
    assert files == {"mistakes-2.21", *(f"right-{each}" for each in VERSIONS)}
    kinds = {each.split("-")[1] for each in collection("mistakes-2.21")}
    assert kinds == set(MISTAKES)
    names = {each.split("-")[0] for each in collection("right-2.21")}
    assert len(names) == 29
    assert set(HELD_OUT) < names
