"""Why symbols go to the shim, in the words of a finding."""

import os

import pytest
from tf_lossscale_codemods.engine.notes import note_of
from tf_lossscale_codemods.facts import Need, Reason
from tf_lossscale_codemods.model import Group

HERE = os.path.abspath("train.py")
BEGINNING = "it is subclassed, so the policies of this program go to the shim; "


def reason(file, line):
    need = Need(Group.POLICIES, "LS601", "Policy", "it is subclassed", line)
    return Reason(os.path.abspath(file), need)


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ([], "this line is changed"),
        ([("train.py", 7)], "this line and line 7 are changed"),
        ([("train.py", 4)], "this line is changed"),
        ([("lib/amp.py", 7)], "this line and lib/amp.py:7 are changed"),
        ([("lib/run.ipynb", 7)], "this line and lib/run.ipynb are changed"),
        (
            [("a.py", line) for line in range(1, 6)],
            "this line and a.py:1, a.py:2, a.py:3, 2 other places are changed",
        ),
    ],
)
def test_the_note_lists_what_must_change(others, what):
    reasons = [reason(HERE, 4), *(reason(*place) for place in others)]
    note = note_of(HERE, [Group.POLICIES], reasons)
    assert note == f"{BEGINNING}they can go to TensorFlow's once {what}"
