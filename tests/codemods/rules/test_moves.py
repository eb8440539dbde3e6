"""The table of moves, and the findings that rules make with it."""

import libcst as cst
import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from tf_lossscale_codemods.resolve.program import Program
from tf_lossscale_codemods.rewrite.rename import references
from tf_lossscale_codemods.rules.findings import manual, report, safe, unsafe
from tf_lossscale_codemods.rules.moves import Manual, Move, Moves, Safe, Unsafe
from tf_lossscale_codemods.rules.registry import rules

LAST = "tensorflow.compat.v1.mixed_precision.FixedLossScale"
OTHER = "tensorflow.compat.v1.mixed_precision.Other"


def program(expression: str, **options) -> Program:
    module = cst.parse_module(f"import tensorflow as tf\n{expression}\n")
    return Program([module], Options(**options))


def proposed(final, expression="tf.train.experimental.FixedLossScale(8)", **options):
    moves = Moves([Move("FixedLossScale", final)], shim="it is the same")
    return list(moves.check(program(expression, **options), "LS202"))


def moved_to(proposal):
    return [path for _, path in proposal.moves]


class TestNothing:
    def test_of_another_rule(self):
        assert not proposed(Safe(LAST, "why"), "tf.train.experimental.DynamicLossScale()")

    def test_of_another_library(self):
        assert not proposed(Safe(LAST, "why"), "FixedLossScale(8)")

    def test_at_its_path(self):
        assert not proposed(Safe(LAST, "why"), "tf.compat.v1.mixed_precision.FixedLossScale(8)")


def test_at_its_path_there_may_be_something_to_say():
    final = Safe(LAST, "why", at_path="it needs a TPU")
    (found,) = proposed(final, "tf.compat.v1.mixed_precision.FixedLossScale(8)")
    assert (found.stays, found.outcome, found.message) == (True, Safety.SAFE, "it needs a TPU")
    assert not found.moves


def test_safe():
    (found,) = proposed(Safe(LAST, "why"))
    assert (found.code, found.symbol, found.outcome) == ("LS202", "FixedLossScale", Safety.SAFE)
    assert found.message == "use tf.compat.v1.mixed_precision.FixedLossScale; why"
    assert moved_to(found) == [LAST]


@pytest.mark.parametrize(
    "final", [Safe(LAST, "why"), Unsafe(OTHER, {}, "but"), Manual("how"), None]
)
def test_to_the_shim_whatever_the_row_says(final):
    (found,) = proposed(final, target=Target.SHIM, unsafe=True)
    assert (found.outcome, found.message) == (
        Safety.SAFE,
        "use tfls.train.experimental.FixedLossScale; it is the same",
    )


@pytest.mark.parametrize("final", [Unsafe(OTHER, {}, "but"), None])
def test_what_is_not_faithful_goes_to_the_shim(final):
    (found,) = proposed(final)
    assert moved_to(found) == ["tf_lossscale.train.experimental.FixedLossScale"]


def test_unsafe():
    renames = {"loss_scale_value": "scale"}
    expression = "tf.train.experimental.FixedLossScale(loss_scale_value=8)"
    (found,) = proposed(Unsafe(OTHER, renames, "but"), expression, unsafe=True)
    assert (found.outcome, found.message) == (Safety.UNSAFE, "but")
    assert moved_to(found) == [OTHER]
    ((node, edit),) = found.edits
    assert cst.Module([]).code_for_node(edit(node)).endswith("(scale=8)")


def test_manual_holds_its_symbol_back():
    (found,) = proposed(Manual("how"))
    assert (found.outcome, found.message, found.blocks) == (Safety.MANUAL, "how", True)
    assert found.group.name == "v1.FixedLossScale"


def test_findings_of_a_path_that_never_existed_say_so():
    (reference,) = references(program("tf.keras.mixed_precision.set_policy('float32')"), "LS601")
    for found in (safe(reference, "why"), unsafe(reference, "but", path=OTHER)):
        assert found.message.startswith("this path never existed in TensorFlow; ")
    assert manual(reference, "how").message == "how"


def test_a_report_holds_nothing_back():
    found = report(cst.Name("a"), "LS906", "__name__", "how")
    assert (found.outcome, found.group, found.blocks) == (Safety.MANUAL, None, False)


def test_a_rule_has_a_check_or_a_table_or_is_the_engines():
    without = {rule.code for rule in rules() if rule.check is None and rule.moves is None}
    assert without == {"LS900", "LS910"}
