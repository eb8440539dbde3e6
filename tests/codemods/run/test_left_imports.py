"""A finding names the other file that keeps an import of `tf.contrib`."""

import pytest
from several_files import migrate

USES = {
    "a module of contrib": (
        "from tensorflow import contrib\n",
        "import compat\n\nopt = compat.contrib.tpu.CrossShardOptimizer(opt)\n",
    ),
    "a name of a module": (
        "from tensorflow.contrib import tpu\n",
        "from compat import tpu\n\nopt = tpu.CrossShardOptimizer(opt)\n",
    ),
    "an assignment": (
        "import tensorflow as tf\n\ncontrib = tf.contrib\n",
        "import compat\n\nmanager = compat.contrib.mixed_precision.FixedLossScaleManager(8)\n",
    ),
    "in a try": (
        "try:\n    from tensorflow import contrib\nexcept ImportError:\n    contrib = None\n",
        "from compat import contrib\n\nopt = contrib.tpu.CrossShardOptimizer(opt)\n",
    ),
}
REWRITTEN = {
    "the symbol": (
        "from tensorflow.contrib.tpu import CrossShardOptimizer\n",
        "import compat\n\nopt = compat.CrossShardOptimizer(opt)\n",
    ),
    "a rewritten module": (
        "from tensorflow.contrib import mixed_precision as mp\n",
        "from compat import mp\n\nmanager = mp.FixedLossScaleManager(8)\n",
    ),
}


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2")], ids=" ".join)
@pytest.mark.parametrize("use", USES)
def test_the_file_is_named(command_line, use, options):
    compat, main = USES[use]
    ran = migrate(command_line, {"compat.py": compat, "main.py": main}, *options)
    assert ran.sources["compat.py"] == compat
    assert ran.sources["main.py"] != main
    assert ran.messages.count("still reads tf.contrib") == 1
    assert "compat" in ran.messages


@pytest.mark.parametrize("use", REWRITTEN)
def test_a_file_that_is_rewritten_is_not(command_line, use):
    compat, main = REWRITTEN[use]
    ran = migrate(command_line, {"compat.py": compat, "main.py": main}, "--to", "shim")
    assert "tensorflow.contrib" not in ran.sources["compat.py"]
    assert "still reads" not in ran.messages
