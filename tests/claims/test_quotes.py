"""What a page quotes from a message, or names in a file, is in the module that writes it."""

import ast
from typing import Iterator

import pytest
from documents import ROOT

QUOTES = [
    ("is-it-scaled.md", "no loss-scale optimizer made one", "_records/writing.py"),
    ("monitoring.md", "the loss scale is stuck at its minimum, ", "_monitoring/reporting.py"),
    (
        "monitoring.md",
        "steps in a row were skipped, so the next one was",
        "_monitoring/explanation.py",
    ),
    ("monitoring.md", "is the first that is not finite: ", "_monitoring/layers.py"),
    ("monitoring.md", "no loss was scaled", "_records/advice.py"),
    ("monitoring.md", "mixed_float16 is on and nothing scales the loss", "_records/advice.py"),
    ("checkpoints.md", "the file does not say whether ", "_restore/optimizer_plan.py"),
    (
        "cross-shard.md",
        "The workers are at different steps of CrossShardOptimizer or cross_replica_sum",
        "_replicas/collectives.py",
    ),
    ("drop-in.md", "TF_LOSSSCALE_INSTALL", "_cli/child/sitecustomize.py"),
    ("prove.md", "not shown to be the same", "_compare/judgements.py"),
    ("prove.md", ".disturbed-", "_records/disturbed.py"),
    ("guide-tf1.md", "the same steps skipped", "_compare/rendering.py"),
]
"""A page, words of it, and the module of the shim whose strings contain them."""


def strings(path: str) -> Iterator[str]:
    """The texts of a module, without its docstrings; an f-string gives its constant parts."""
    tree = ast.parse((ROOT / "tf_lossscale" / path).read_text(encoding="utf-8"))
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in described:
            yield node.value


@pytest.mark.parametrize(("page", "words", "module"), QUOTES)
def test_words_of_a_message_are_those_of_the_module(page, words, module):
    text = " ".join(
        (ROOT / "docs" / page).read_text(encoding="utf-8").replace("\n# ", "\n").split()
    )
    assert " ".join(words.split()) in text
    assert any(words in string for string in strings(module)), module
