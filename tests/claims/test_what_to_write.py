"""`docs/what-to-write.md`: a row shows what `migrate` writes, and every legacy symbol has one."""

import re
from typing import Dict, List, NamedTuple, Tuple

import pytest
from documents import ROOT
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Safety, Target
from tf_lossscale_codemods.rules.codes import codes

from tf_lossscale import _paths

TARGETS = {
    "shim": Options(Target.SHIM, 3),
    "Keras 2": Options(Target.FINAL, 2),
    "Keras 3": Options(Target.FINAL, 3),
}

EXPERIMENTAL = "tf.keras.mixed_precision.experimental"
OTHER_SHIM = {
    "tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale='dynamic')": "`tfls`; *manual*: "
    "drop the argument",
    "tf.keras.mixed_precision.set_policy('mixed_float16')": f"`tfls{EXPERIMENTAL[2:]}."
    "set_policy('mixed_float16')`",
}
"""What `--to shim` does besides writing `tfls` for `tf`, which the page does not show."""


class Row(NamedTuple):
    """A row of the table, without the backticks of its first cell."""

    legacy: str
    cells: Dict[str, str]
    rules: str


def rows() -> List[Row]:
    found = []
    for line in (ROOT / "docs" / "what-to-write.md").read_text(encoding="utf-8").splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| `tf."):
            legacy, *others, rules = cells
            legacy = legacy.strip("`")
            shim = OTHER_SHIM.get(legacy, "`tfls`")
            found.append(Row(legacy, dict(zip(TARGETS, [shim, *others])), rules))
    return found


ROWS = rows()


def written(legacy: str, options: Options) -> Tuple[str, Dict[str, Safety]]:
    """What `migrate` makes of an expression, and its codes with the worst outcome of each."""
    source = f"import tensorflow as tf\n\nx = {legacy}\n"
    result = transform(source.encode(), options)
    outcomes: Dict[str, Safety] = {}
    for finding in result.findings:
        if outcomes.get(finding.code) is not Safety.MANUAL:
            outcomes[finding.code] = finding.outcome
    return result.source.decode().splitlines()[-1][len("x = ") :], outcomes


def as_tfls(legacy: str) -> str:
    """The expression with `tfls` for `tf` in the names of this package."""
    for symbol in _paths.SYMBOLS:
        for namespace in symbol.namespaces:
            path = f"{namespace}.{symbol.name}"
            legacy = re.sub(rf"\btf\.{re.escape(path)}\b", f"tfls.{path}", legacy)
    return legacy


def expected(row: Row, target: str) -> str:
    """The expression that a cell stands for."""
    words = row.cells[target].partition("; *manual*")[0]
    if (words.startswith("`tf") and words != "`tfls`") or words.startswith("`layer"):
        return words.strip("`")
    if words == "`tfls`":
        return as_tfls(row.legacy)
    if words == "the shim":
        return expected(row, "shim")
    if words == "the same":
        return expected(row, "Keras 2")
    assert words == "unchanged" or words.startswith(("*manual*: ", "*unsafe*: ")), words
    return row.legacy


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.legacy)
def test_a_cell_is_what_migrate_writes(row, target):
    result, outcomes = written(row.legacy, TARGETS[target])
    assert result == expected(row, target)
    assert (Safety.MANUAL in outcomes.values()) == ("*manual*" in row.cells[target])
    assert (Safety.UNSAFE in outcomes.values()) == ("*unsafe*" in row.cells[target])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.legacy)
def test_the_rules_are_those_that_find_it(row):
    found = {code for options in TARGETS.values() for code in written(row.legacy, options)[1]}
    linked = dict(re.findall(r"\[(LS\d+)\]\(rules/([\w-]+)\.md\)", row.rules))
    assert set(linked) == found
    slugs = {code.code: code.rule.slug for code in codes()}
    assert linked == {code: slugs[code] for code in found}


def test_every_exception_has_a_row():
    assert set(OTHER_SHIM) <= {row.legacy for row in ROWS}


def test_every_legacy_symbol_has_a_row():
    text = "\n".join(row.legacy for row in ROWS)
    for symbol in _paths.SYMBOLS:
        names = [f"tf.{namespace}.{symbol.name}" for namespace in symbol.namespaces]
        assert not symbol.legacy or any(f"{name}" in text for name in names), symbol
