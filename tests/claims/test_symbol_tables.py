"""The tables of symbols in the README and the docs are those of `tf_lossscale/_paths.py`."""

import re
from typing import Dict, List, Set

import pytest
from documents import ROOT, markdown

from tf_lossscale import _paths

NAMESPACES: Dict[str, Set[str]] = {name: set(those) for name, those in _paths.NAMESPACES.items()}
SHORTENED = "`enable_`/`disable_mixed_precision_graph_rewrite`"
WRITTEN_OUT = "`enable_mixed_precision_graph_rewrite`, `disable_mixed_precision_graph_rewrite`"


def wrong_rows(text: str) -> List[str]:
    """Rows of symbols and their namespaces that the table of paths does not have."""
    wrong = []
    for line in text.splitlines():
        cells = line.replace(SHORTENED, WRITTEN_OUT).strip("| ").split(" | ")
        if line.startswith("| `") and len(cells) == 2 and "`tfls." in cells[1]:
            symbols = set(re.findall(r"`(\w+)`", cells[0]))
            for namespace in re.findall(r"`tfls\.([\w.]+)`", cells[1]):
                names = NAMESPACES.get(namespace, set())
                if symbols and symbols != names:
                    wrong.append(f"{namespace}: {sorted(symbols ^ names)}")
    return wrong


def wrong_braces(text: str) -> List[str]:
    """Symbols in `tf.namespace.{A, B}` that the namespace does not have."""
    return [
        f"{namespace}.{name}"
        for namespace, names in re.findall(r"`tf\.([\w.]+)\.\{([^}]*)\}", text)
        for name in names.split(", ")
        if name not in NAMESPACES.get(namespace, set())
    ]


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_the_readme_is_that_of_the_paths():
    assert wrong_rows(readme()) == []


def test_the_readme_names_every_symbol():
    text = readme().replace(SHORTENED, WRITTEN_OUT)
    assert [each.name for each in _paths.SYMBOLS if f"`{each.name}`" not in text] == []


def test_symbols_in_braces_exist():
    texts = "\n".join(text.text for text in markdown())
    assert len(re.findall(r"`tf\.[\w.]+\.\{", texts)) >= 3
    assert wrong_braces(texts) == []


@pytest.mark.parametrize(
    "row",
    [
        "| `CrossShardOptimizer` | `tfls.tpu` |",
        "| `CrossShardOptimizer`, `cross_replica_sum`, `shard` | `tfls.tpu` |",
        "| `CrossShardOptimizer`, `cross_replica_sum` | `tfls.tpus` |",
    ],
)
def test_a_wrong_row_is_found(row):
    assert wrong_rows(row)


def test_a_wrong_symbol_in_braces_is_found():
    assert wrong_braces("`tf.contrib.mixed_precision.{LossScale}`")
