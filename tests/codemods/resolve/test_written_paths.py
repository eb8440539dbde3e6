"""Every path that a rule writes exists: in the shim's table of paths, or in the TensorFlow here."""

import ast
import importlib.util
import json

import pytest
from execution.leftovers import imported, path_of
from processes import run_program
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.resolve import legacy_symbols

from tf_lossscale import _paths

ROOTS = ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2", "keras", "tf_keras")


def legacy_paths():
    """Every spelling of every symbol that `symbols` knows, from every root it may have."""
    for public in legacy_symbols._TABLE:
        namespace, _, name = public.rpartition(".")
        spellings = [
            namespace,
            *(old for old, new in legacy_symbols._PRIVATE.items() if new == namespace),
        ]
        for spelling in spellings:
            for root in ROOTS:
                below = "tensorflow" if root.startswith("tensorflow") else "keras"
                if below == "tensorflow":
                    yield root, f"{spelling}.{name}"
                elif spelling.startswith("keras."):
                    yield root, f"{spelling[len('keras.') :]}.{name}"


def written_paths(target):
    """The full names that each spelling is migrated to, each with one spelling that leads there."""
    found = {}
    for root, path in legacy_paths():
        source = f"import {root} as lib\n\nx = lib.{path}\n"
        result = transform(source.encode(), Options(target=target, unsafe=True))
        assert result.error is None
        if result.source != source.encode():
            tree = ast.parse(result.source)
            written = path_of(tree.body[-1].value, imported(tree))
            if written:
                found.setdefault(written, f"{root}.{path}")
    return found


def test_every_path_into_the_shim_exists():
    written = written_paths(Target.SHIM)
    assert len(written) > 30
    known = {
        f"tf_lossscale.{namespace}.{name}"
        for namespace, members in _paths.NAMESPACES.items()
        for name in members
    }
    known |= {f"tf_lossscale.{namespace}" for namespace in _paths.NAMESPACES}  # moved as values
    missing = {path: origin for path, origin in written.items() if path not in known}
    assert missing == {}


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None,
    reason="TensorFlow is in some environments of the codemods only",
)
def test_every_final_path_exists_in_this_tensorflow(tmp_path):
    written = written_paths(Target.FINAL)
    assert len(written) > 3
    program = tmp_path / "program.py"
    program.write_text(
        "import functools, json, sys, tensorflow\n"
        "def there(path):\n"
        "    parts = path.split('.')\n"
        "    try:\n"
        "        functools.reduce(getattr, parts[1:], tensorflow)\n"
        "    except AttributeError:\n"
        "        return False\n"
        "    return True\n"
        "print(json.dumps([p for p in json.loads(sys.argv[1]) if not there(p)]))\n"
    )
    paths = [path for path in written if path.startswith("tensorflow.")]
    missing = {path: written[path] for path in run_program(str(program), json.dumps(paths))}
    assert missing == {}
