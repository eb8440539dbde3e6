"""Prints what resolves under `tensorflow` before, during and after an installation.

`paths.py before|after keep|replace`: installs before or after TensorFlow is imported. In `after`,
`traces` has what an installation left in `sys.meta_path` and `sys.modules`: the first one, of which
nothing was used, and the second.
"""

import importlib
import json
import sys

import tf_lossscale
from tf_lossscale import _namespace, _paths

BEFORE_TENSORFLOW = sys.argv[1] == "before"
REPLACE = sys.argv[2] == "replace"


def kind(value, symbol):
    """Whose it is: `ours`, `original`, `both` where ours re-exports it, or None: missing."""
    if value is None:
        return None
    if value is not _namespace.load(symbol):
        return "original"
    return "ours" if value.__module__.startswith("tf_lossscale") else "both"


def by_attribute(namespace, name):
    owner = sys.modules["tensorflow"]
    for part in [*namespace.split("."), name]:
        owner = getattr(owner, part, None)
    return owner


def by_import(namespace, name):
    try:
        module = importlib.import_module("tensorflow." + namespace)
    except ImportError:
        return None
    return getattr(module, name, None)


def not_a_module():
    """Paths through a namespace that TensorFlow has as an attribute only, not as a module."""
    found = []
    for view, shown in dict(
        {namespace: namespace for namespace in _paths.NAMESPACES}, **_paths.VIEWS
    ).items():
        owner, name = sys.modules["tensorflow"], "tensorflow"
        for part in view.split("."):
            owner = getattr(owner, part, None)
            name += "." + part
            if owner is None:
                break  # missing altogether: supplied, and importable then
            try:
                importlib.import_module(name)
            except ImportError:
                found += [view + "." + symbol for symbol in _paths.NAMESPACES[shown]]
                break
    return found


def kept_for_good(path):
    """Whether a module of TensorFlow's remembers the name and cannot be made to forget it."""
    namespace, _, name = path.rpartition(".")
    owner = sys.modules["tensorflow"]
    for part in namespace.split("."):
        owner = getattr(owner, part, None)
    # It compares names by identity, so only an interned one is found.
    return hasattr(type(owner), "_fastdict_key_in") and owner._fastdict_key_in(sys.intern(name))


def everything():
    found = {}
    views = dict({namespace: namespace for namespace in _paths.NAMESPACES}, **_paths.VIEWS)
    for namespace, shown in views.items():
        for name, symbol in _paths.NAMESPACES[shown].items():
            if symbol.legacy:
                attribute, imported = by_attribute(namespace, name), by_import(namespace, name)
                found[namespace + "." + name] = [kind(attribute, symbol), kind(imported, symbol)]
    return found


def traces_since(finders, known):
    modules = dict(sys.modules)
    return {
        "finders are as before": sys.meta_path == finders,
        "gone": [name for name in known if name not in modules],
        "changed": [name for name in known if modules.get(name) is not known[name]],
        "new": [
            name
            for name in modules
            if name not in known and name.partition(".")[0] != "tf_lossscale"
        ],
        "supplied": [
            name
            for name, module in modules.items()
            if type(module).__name__ == "SyntheticNamespace"
        ],
    }


def main():
    states = {}
    if BEFORE_TENSORFLOW:
        tf_lossscale.install(replace=REPLACE)
        states["tensorflow_came_early"] = "tensorflow" in sys.modules
        import tensorflow
    else:
        import tensorflow  # noqa: F401  the import is what is tested

        before = list(sys.meta_path), dict(sys.modules)
        tf_lossscale.install(replace=REPLACE)
        tf_lossscale.uninstall()
        unused = traces_since(*before)
        states["before"] = everything()
        before = list(sys.meta_path), dict(sys.modules)
        tf_lossscale.install(replace=REPLACE)
    tf_lossscale.install(replace=REPLACE)  # a second one changes nothing
    states["during"] = everything()
    tf_lossscale.uninstall()
    tf_lossscale.uninstall()
    if not BEFORE_TENSORFLOW:
        states["traces"] = [unused, traces_since(*before)]
    states["after"] = everything()
    states["not_a_module"] = not_a_module()
    states["kept"] = [path for path in states["after"] if kept_for_good(path)]
    print(json.dumps(states))


main()
