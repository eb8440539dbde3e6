"""Imports of legacy modules that nothing reads: each form of import, in each place."""

import ast

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Safety, Target

TARGETS = {
    "final": Options(),
    "Keras 3": Options(keras=3),
    "shim": Options(target=Target.SHIM),
    "unsafe": Options(unsafe=True),
}
LEGACY = [
    "tensorflow.keras.mixed_precision.experimental",
    "tensorflow.compat.v2.keras.mixed_precision.experimental",
    "tensorflow.python.keras.mixed_precision.experimental",
    "tensorflow.python.keras.mixed_precision.experimental.loss_scale_optimizer",
    "tensorflow.mixed_precision.experimental",
    "tensorflow.contrib.mixed_precision",
    "tensorflow.contrib.mixed_precision.python.loss_scale_manager",
]
FORMS = {
    "import": "import {path}",
    "import as": "import {path} as mp",
    "from": "from {parent} import {name}",
    "from as": "from {parent} import {name} as mp",
    "two": "from os import path; import {path} as mp, json",
    "comment": "import {path} as mp  # why",
}
PLACES = {
    "alone": "{line}\n",
    "first": "{line}\nimport tensorflow as tf\n\nprint(tf)\n",
    "last": "import tensorflow as tf\n{line}\n\nprint(tf)\n",
    "beside uses of tensorflow": "{line}\nimport tensorflow\n\nprint(tensorflow.__version__)\n",
    "function": "def f():\n    {line}\n    return 1\n",
    "branch": "import sys\n\nif sys.argv:\n    {line}\n",
}
NO_OPS = {
    "read": "import {path} as mp\n\nprint(mp)\n",
    "try": "try:\n    import {path} as mp\nexcept ImportError:\n    pass\n",
    "exported": "import {path} as mp\n\n__all__ = ['mp']\n",
    "same name": "from {parent} import {name} as {name}\n",
    "also another library's": "import {path} as mp\nimport apex as mp\n",
}


def _source(text, path, **fields):
    parent, _, name = path.rpartition(".")
    line = fields.get("line", "").format(path=path, parent=parent, name=name)
    return text.format(path=path, parent=parent, name=name, line=line)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["final", "Keras 3", "shim"])
@pytest.mark.parametrize("form", NO_OPS)
@pytest.mark.parametrize("path", LEGACY)
def test_left_and_reported(path, form, target):
    source = _source(NO_OPS[form], path)
    result = transform(source.encode(), TARGETS[target])
    if form != "read" or result.findings:
        assert result.source.decode() == source
        assert result.findings
    assert not any(one.applied for one in result.findings)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", LEGACY)
def test_rewritten(path, form, place, target):
    source = _source(PLACES[place], path, line=FORMS[form])
    result = transform(source.encode(), TARGETS[target])
    after = result.source.decode()
    assert [(one.code, one.outcome) for one in result.findings] == [("LS911", Safety.SAFE)]
    imported = "\n".join(
        ast.unparse(node)
        for node in ast.walk(ast.parse(after))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    assert "contrib" not in imported.replace("tf_lossscale.contrib", "")
    if target != "shim":
        assert "experimental" not in imported
    assert "tensorflow.python" not in imported
    if form == "comment":
        assert "# why" in after
    assert transform(result.source, TARGETS[target]).source == result.source
