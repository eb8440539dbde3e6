"""Makes the source folder `codemods/` importable as `tf_lossscale_codemods`, as when installed."""

import importlib.util
import pathlib
import sys

import pytest

pytest.register_assert_rewrite("verbs")

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _import_from_source() -> None:
    name = "tf_lossscale_codemods"
    if importlib.util.find_spec(name) is not None:
        return
    folder = _ROOT / "codemods"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


if str(_ROOT) not in sys.path:
    sys.path.insert(0, str(_ROOT))
_import_from_source()

from command_line import command_line, legacy, warm  # noqa: E402, F401 - fixtures; need the package
from file_system import committed, home, repository  # noqa: E402, F401
