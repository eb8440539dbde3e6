"""Writes the reference pages (`docs/api/`) from the docstrings; fails if a docstring is missing.

It also fails if the page of a Keras class lacks a method of `LossScaleWrapper`, or if the page of
another class has no methods. `make docs` runs it, with TensorFlow installed. There is one page for
each main namespace; a symbol in several namespaces is described once, on the page of the first.
"""

import inspect
import os
import sys
from typing import Any, Dict, Iterator, List, Set, Tuple

from tf_lossscale import _namespace, _paths
from tf_lossscale._keras.constructor import Constructor
from tf_lossscale._keras.protocol import LossScaleWrapper

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "api")

TITLES = {
    "contrib.mixed_precision": "tfls.contrib.mixed_precision",
    "contrib.tpu": "tfls.tpu, tfls.contrib.tpu, tfls.compat.v1.tpu",
    "train.experimental": "tfls.train.experimental, tfls.compat.v1.mixed_precision",
    "keras.mixed_precision": "tfls.keras.mixed_precision",
    "keras.mixed_precision.experimental": "tfls.keras.mixed_precision.experimental",
}


def main() -> int:
    missing: List[str] = []
    pages: Dict[str, List[str]] = {}
    for symbol in _paths.SYMBOLS:
        page = symbol.namespaces[0]
        pages.setdefault(page, [f"# {TITLES[page]}\n"]).append(describe(symbol, missing))
    if missing:
        print(
            "public names without a docstring or missing on their page:\n  " + "\n  ".join(missing),
            file=sys.stderr,
        )
        return 1
    os.makedirs(FOLDER, exist_ok=True)
    for page, parts in pages.items():
        with open(os.path.join(FOLDER, page + ".md"), "w") as out:
            out.write("\n".join(parts))
    print(f"{len(_paths.SYMBOLS)} symbols on {len(pages)} pages")
    return 0


def describe(symbol: _paths.Symbol, missing: List[str]) -> str:
    value = _namespace.load(symbol)
    paths = ", ".join(f"`tfls.{each}.{symbol.name}`" for each in symbol.namespaces)
    parts = [
        f"## {symbol.name}\n",
        paths + "\n",
        block(symbol.name, value, symbol.name, missing),
    ]
    if inspect.isclass(value) and value.__module__.startswith(_namespace.ROOT):
        members = dict(public_members(value))
        missing += [symbol.name + "." + each for each in expected_members(value) - set(members)]
        for name, member in members.items():
            parts.append(f"### {symbol.name}.{name}\n")
            parts.append(block(name, member, symbol.name + "." + name, missing))
    return "\n".join(parts)


def expected_members(cls: type) -> Set[str]:
    """Returns the names that must be on the page of a class."""
    if issubclass(cls, Constructor):
        return {name for name in vars(LossScaleWrapper) if not name.startswith("_")}
    return set() if dict(public_members(cls)) else {"(no method at all)"}


def public_members(cls: type) -> Iterator[Tuple[str, Any]]:
    """Yields the methods and properties that the class, or a base in this package, defines."""
    seen = set()
    for base in cls.__mro__:
        if not base.__module__.startswith(_namespace.ROOT):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if inspect.isfunction(member) or isinstance(member, (property, classmethod)):
                yield name, getattr(member, "__func__", member)


def block(name: str, value: Any, full_name: str, missing: List[str]) -> str:
    documentation = inspect.getdoc(value)
    if not documentation:
        missing.append(full_name)
        return ""
    text = "```text\n{}\n```\n".format(documentation.replace("```", "'''"))
    if isinstance(value, property):
        return text
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return text
    return f"```python\n{name}{signature}\n```\n\n{text}"


if __name__ == "__main__":
    sys.exit(main())
