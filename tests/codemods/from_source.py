"""Makes the source folder `codemods/` importable as `tf_lossscale_codemods`, as when installed."""

import importlib.util
import pathlib
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_NAME = "tf_lossscale_codemods"

if str(_ROOT) not in sys.path:
    sys.path.insert(0, str(_ROOT))
if importlib.util.find_spec(_NAME) is None:
    _folder = _ROOT / "codemods"
    _spec = importlib.util.spec_from_file_location(
        _NAME, _folder / "__init__.py", submodule_search_locations=[str(_folder)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules[_NAME] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_NAME])
