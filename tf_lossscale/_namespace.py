"""Makes a module a namespace whose attributes are loaded from the table of paths on first use.

A namespace file describes what it stands for and calls `attach`; it contains no other code. Because
attributes are resolved by `__getattr__` (PEP 562), `import tf_lossscale` and even
`from tf_lossscale import contrib` do not import TensorFlow until a symbol is used, and `tfls.tpu`
never loads Keras.
"""

import contextlib
import importlib
import os
import sys
import warnings
from typing import TYPE_CHECKING as TYPE_CHECKING, Any, Callable, Iterable, List, Set, Tuple

from tf_lossscale import _paths

ROOT = "tf_lossscale"

_warned: Set[str] = set()


def load(symbol: _paths.Symbol) -> Any:
    """Imports the implementation of `symbol`, and TensorFlow with it."""
    # First, so that every thread takes TensorFlow's import lock before the locks of our modules.
    # With different orders two threads could deadlock, and Python then returns modules that are
    # not complete. Without TensorFlow, the error of our second module shows what to install.
    with contextlib.suppress(ImportError):
        importlib.import_module("tensorflow")
    importlib.import_module(ROOT + "._versions.base")
    module = importlib.import_module(ROOT + "." + symbol.module)
    return getattr(module, symbol.attribute or symbol.name)


def attach(
    module_name: str, submodules: Iterable[str] = (), of_top: Iterable[str] = (), **own: str
) -> Tuple[List[str], Callable[[str], Any], Callable[[], List[str]]]:
    """Returns `(__all__, __getattr__, __dir__)` for the namespace module `module_name`.

    Args:
      module_name: `tf_lossscale.` and TensorFlow's own path.
      submodules: namespaces below this one, loaded as attributes.
      of_top: namespaces below `tf_lossscale` that are attributes of this one, too.
      **own: names that TensorFlow never had, and their modules relative to `tf_lossscale`.
    """
    namespace = module_name[len(ROOT) + 1 :]
    symbols = dict(_paths.NAMESPACES.get(namespace, {}))
    for name, module in own.items():
        symbols[name] = _paths.Symbol(name, module, "", (), legacy=False)
    children = {name: module_name + "." + name for name in submodules}
    children.update({name: ROOT + "." + name for name in of_top})

    names = sorted([*symbols, *children])

    def module_getattr(name: str) -> Any:
        if name not in names:
            raise AttributeError(
                f"module {module_name!r} has no attribute {name!r}; it holds {', '.join(names)}"
            )
        if name in children:
            return importlib.import_module(children[name])
        _warn_once(symbols[name], namespace)
        value = load(symbols[name])
        setattr(sys.modules[module_name], name, value)  # later reads find it directly
        return value

    return names, module_getattr, names.copy


def _warn_once(symbol: _paths.Symbol, namespace: str) -> None:
    """Warns of a legacy symbol at its first use, if TF_LOSSSCALE_WARN is set."""
    is_wanted = os.environ.get("TF_LOSSSCALE_WARN", "") not in ("", "0")
    if not (is_wanted and symbol.legacy) or symbol.implementation in _warned:
        return
    _warned.add(symbol.implementation)
    warnings.warn(
        f"tf_lossscale.{namespace}.{symbol.name} stands in for a class that TensorFlow removed; "
        f"`tf-lossscale migrate` moves code off it (rule {symbol.rule}; see "
        f"`tf-lossscale explain {symbol.rule}`).",
        DeprecationWarning,
        stacklevel=3,  # the line that reads the attribute
    )
