"""A hook of mkdocs: the build fails if a public name is not on its page, or an example is broken.

mkdocstrings shows what has a docstring, and finds it by reading the source. The names that must be
there are those that Python finds, so that a class whose bases cannot be read is noticed.
"""

import inspect
import pathlib
import re
from typing import Any, Dict, Iterator, List, Set

from tf_lossscale import _namespace, _paths
from tf_lossscale._core.refusals import is_refused
from tf_lossscale._keras.wrapper import LossScaleWrapper

try:
    from mkdocs.exceptions import PluginError
except ImportError:  # in the tests of the shim
    PluginError = RuntimeError

_ID = re.compile(r'\bid="([^"]+)"')


def on_post_build(config: Any) -> None:
    """Called by mkdocs when all pages are written."""
    folder = pathlib.Path(config["site_dir"], "api")
    pages = {path.name: path.read_text("utf-8") for path in folder.glob("*.html")}
    quoted = [name for name, page in pages.items() if "<blockquote>" in page]
    if quoted:  # what `>>>` becomes
        raise PluginError('an example without the line "Examples:" above it: ' + ", ".join(quoted))
    found = {identifier for page in pages.values() for identifier in ids(page)}
    missing = [name for symbol in _paths.SYMBOLS for name in missing_of(symbol, found)]
    if missing:
        raise PluginError("without a docstring, or not in docs/api:\n  " + "\n  ".join(missing))


def ids(html: str) -> Set[str]:
    """The anchors of a page."""
    return set(_ID.findall(html))


def missing_of(symbol: _paths.Symbol, found: Set[str]) -> List[str]:
    """Returns the anchors that the reference lacks for a symbol."""
    value = _namespace.load(symbol)
    name = f"{_namespace.ROOT}.{symbol.namespaces[0]}.{symbol.name}"
    missing = [] if name in found and inspect.getdoc(value) else [name]
    if inspect.isclass(value) and value.__module__.startswith(_namespace.ROOT):
        members = public_members(value)
        if issubclass(value, LossScaleWrapper):
            own = {
                member
                for member, value in vars(LossScaleWrapper).items()
                if not member.startswith("_") and is_member(value)
            }
            missing += [f"{name}.{member}" for member in sorted(own - set(members))]
        missing += [
            f"{name}.{member}"
            for member, owner in members.items()
            # What only one kind of optimizer has is described with the class for that kind.
            if not {f"{name}.{member}", f"{owner.__module__}.{owner.__name__}.{member}"} & found
        ]
    return missing


def public_members(cls: type) -> Dict[str, type]:
    """Methods and properties of the class, each with the class of this package that defines it."""
    found: Dict[str, type] = {}
    for base in cls.__mro__:
        if base.__module__.startswith(_namespace.ROOT):
            for name, member in vars(base).items():
                if not name.startswith("_") and is_member(member) and not is_refused(member):
                    found.setdefault(name, base)
    return found


def functions_of(cls: type) -> Iterator[Any]:
    """Yields the public methods, as functions."""
    for name, owner in public_members(cls).items():
        member = vars(owner)[name]
        if not isinstance(member, property):
            yield getattr(member, "__func__", member)


def is_member(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))
