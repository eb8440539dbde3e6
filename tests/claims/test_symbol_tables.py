"""The symbols that the docs list are those of `tf_lossscale/_paths.py`."""

import re
from typing import Dict, List, Set

from documents import markdown

from tf_lossscale import _paths

NAMESPACES: Dict[str, Set[str]] = {name: set(those) for name, those in _paths.NAMESPACES.items()}


def wrong_braces(text: str) -> List[str]:
    """Symbols in `tf.namespace.{A, B}` that the namespace does not have."""
    return [
        f"{namespace}.{name}"
        for namespace, names in re.findall(r"`tf\.([\w.]+)\.\{([^}]*)\}", text)
        for name in names.split(", ")
        if name not in NAMESPACES.get(namespace, set())
    ]


def test_symbols_in_braces_exist():
    texts = "\n".join(text.text for text in markdown())
    assert len(re.findall(r"`tf\.[\w.]+\.\{", texts)) >= 3
    assert wrong_braces(texts) == []


def test_a_wrong_symbol_in_braces_is_found():
    assert wrong_braces("`tf.contrib.mixed_precision.{LossScale}`")
