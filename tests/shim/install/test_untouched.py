"""TensorFlow's and Keras's classes and modules are changed within the scopes of interventions.

`_versions/interventions.py` lists what is replaced, and from when to when. Before and after each
scope, `programs/untouched.py` compares the attributes, and the hooks of the interpreter.
"""

import pytest
from processes import run_program

from tf_lossscale._versions.interventions import INTERVENTIONS, Intervention, Replacements

COMPILERS = ("Trainer.compile", "Model._get_optimizer", "Model._set_optimizer")
DURING = {"installed kept", "installed", "policies", "recording", "disturbed", "layers"}
"""What the program does within a scope; the rest is before, outside of any, or after one."""


@pytest.fixture(scope="module")
def found():
    return run_program("install/programs/untouched.py")


def test_nothing_is_changed_outside_the_scopes(found):
    assert len(found) >= 18
    assert {use: changes for use, changes in found.items() if changes and use not in DURING} == {}


def test_what_is_changed_within_a_scope_is_seen(found):
    """So that the test above can fail."""
    assert {use for use in DURING if not found[use]} == set()


def test_an_installation_and_policies_replace_only_the_method_of_compile(found):
    for use in ("installed kept", "installed", "policies"):
        of_classes = [change for change in found[use] if change.startswith("class ")]
        replaced = [change.split(" is ")[0] for change in of_classes]
        assert all(name.endswith(COMPILERS) for name in replaced), of_classes
    assert [change for change in found["policies"] if change.startswith("module ")] == []


def test_each_intervention_says_why_and_how_long():
    assert len({intervention.what for intervention in INTERVENTIONS}) == len(INTERVENTIONS)
    for intervention in INTERVENTIONS:
        for sentence in (intervention.reason, intervention.scope):
            assert len(sentence) > 5, sentence
            assert sentence.endswith("."), sentence


class Foreign:
    def method(self):
        return ["method"]


class Copies(Foreign):
    method = Foreign.method


class Inherits(Foreign):
    pass


NAMED = Intervention("a test", "It tests.", "This test.")


def around(cls, name):
    """Replacements of `Foreign.method` by a function that adds a name to what it returns."""
    replacements = Replacements(NAMED)
    original = cls.method

    def method(self):
        names = original(self)
        return [*names, name] if replacements.is_active else names

    replacements.replace(cls, "method", method)
    return replacements


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first in first out", "nested"])
def test_two_replacements_of_one_method_end_in_any_order(order):
    """A recording ends its hooks in the order in which they began, and replaces a method twice."""
    before = [dict(vars(cls)) for cls in (Foreign, Copies, Inherits)]
    both = [around(Foreign, "first"), around(Foreign, "second")]
    assert [cls().method() for cls in (Foreign, Copies)] == [["method", "first", "second"]] * 2
    both[order[0]].undo()
    left = ["second", "first"][order[0]]
    assert [cls().method() for cls in (Foreign, Copies)] == [["method", left]] * 2
    both[order[1]].undo()
    assert [dict(vars(cls)) for cls in (Foreign, Copies, Inherits)] == before


def test_an_inherited_method_is_inherited_again():
    replacements = around(Inherits, "replaced")
    assert Inherits().method() == ["method", "replaced"]
    assert Foreign().method() == ["method"]
    replacements.undo()
    assert "method" not in vars(Inherits)


def test_what_somebody_else_has_replaced_since_is_left_alone():
    original, replacements = Foreign.method, around(Foreign, "ours")
    theirs = Foreign.method = lambda self: ["theirs"]
    try:
        replacements.undo()
        assert Foreign.method is theirs
    finally:
        Foreign.method = original
