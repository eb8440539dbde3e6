"""Programs of several files that failed after their migration, without a finding."""

import pytest
from several_files import migrate

MP = "tf.keras.mixed_precision.experimental"
AMP = f"""\
import tensorflow as tf


def wrap(opt):
    return {MP}.LossScaleOptimizer(opt, "dynamic")
"""


@pytest.mark.parametrize("target", ["--keras=2", "--keras=3", "--to=shim"])
def test_call_of_loss_scale_in_a_file_that_does_not_name_the_class(command_line, target):
    log = "def show(opt):\n    print(opt.loss_scale())\n"
    main = "import amp\nimport log\n\nlog.show(amp.wrap(None))\n"
    result = migrate(command_line, {"amp.py": AMP, "log.py": log, "main.py": main}, target)
    assert "log.py:2 LS302 safe" in result.findings
    assert "loss_scale()" not in result.sources["log.py"]


def test_function_that_another_file_reads_from_the_file_that_imports_it(command_line):
    files = {
        "compat.py": f"import tensorflow\nfrom tensorflow{MP[2:]} import set_policy\n",
        "main.py": "import compat\n\ncompat.set_policy('mixed_float16')\n",
    }
    result = migrate(command_line, files)
    name = result.sources["main.py"].split("\n")[2].partition("(")[0].rpartition(".")[2]
    is_moved = "compat." not in result.sources["main.py"]
    assert is_moved or name in result.sources["compat.py"]


def test_module_that_only_another_file_read(command_line):
    files = {
        "compat.py": f"import tensorflow as tf\n\nmp = {MP}\n",
        "main.py": "from compat import mp\n\nprint(mp.global_policy())\n",
    }
    assert "compat.py:3 LS909 manual" in migrate(command_line, files).findings


def test_class_stays_where_it_is_re_exported_if_a_file_that_uses_it_stays(command_line):
    files = {
        "compat.py": f"import tensorflow as tf\n\nLossScaleOptimizer = {MP}.LossScaleOptimizer\n",
        "amp.py": (
            "from compat import LossScaleOptimizer\n\n\ndef made(cls, opt):\n"
            "    return cls(opt, 'dynamic')\n\n\ndef wrap(opt):\n"
            "    return made(LossScaleOptimizer, opt)\n"
        ),
    }
    result = migrate(command_line, files)
    assert result.sources["compat.py"] == files["compat.py"]
    assert any(one.startswith("compat.py:3 LS301") for one in result.findings)
