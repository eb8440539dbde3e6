"""Files that a configuration makes a program load belong to that program."""

import pytest
from several_files import migrate_all

TARGETS = [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]]
CLASS = "tf.keras.mixed_precision.experimental.LossScaleOptimizer"
MAKE = f"import tensorflow as tf\n\n\ndef wrap(opt, scale):\n    return {CLASS}(opt, scale)\n"
INSPECT = f"""\
import tensorflow as tf


class Mine({CLASS}):
    pass


def is_scaled(opt):
    return isinstance(opt, {CLASS})
"""
SHIM = "tfls.keras.mixed_precision.experimental.LossScaleOptimizer"
PYTEST = "-p amp.make -p amp.inspect_it --strict-markers"
CONFIGURATIONS = {
    "setup.py": "from setuptools import setup\n\nsetup(entry_points={'trainer': "
    "['amp = amp.make:wrap', 'test = amp.inspect_it:is_scaled [extra]']})\n",
    "setup.py, as a text": "from setuptools import setup\n\nsetup(entry_points='''\n[trainer]\n"
    "amp = amp.make:wrap\ntest = amp.inspect_it:is_scaled\n''')\n",
    "setup.cfg": "[options.entry_points]\ntrainer =\n    amp = amp.make:wrap\n"
    "    test=amp.inspect_it : is_scaled\n",
    "setup.cfg, scripts": "[options.entry_points]\nconsole_scripts =\n    make = amp.make:wrap\n"
    "    inspect = amp.inspect_it:is_scaled\n",
    "setup.cfg, whole modules": "[options.entry_points]\npytest11 =\n    amp = amp.make\n"
    "    test = amp.inspect_it\n",
    "setup.cfg, pytest": f"[tool:pytest]\naddopts = {PYTEST}\n",
    "pyproject.toml": '[project.entry-points."trainer"]\namp = "amp.make:wrap"\n'
    "test = 'amp.inspect_it:is_scaled'\n",
    "pyproject.toml, in one line": '[project]\nscripts = {a = "amp.make:wrap", '
    'b = "amp.inspect_it:is_scaled"}\n',
    "pyproject.toml, poetry": '[tool.poetry.plugins.trainer]\namp = "amp.make"\n'
    'test = "amp.inspect_it"\n',
    "pyproject.toml, pytest": f'[tool.pytest.ini_options]\naddopts = "{PYTEST}"\n',
    "pyproject.toml, pytest, a list": "[tool.pytest.ini_options]\n"
    'addopts = ["-p", "amp.make", "-pamp.inspect_it"]\n',
    "pytest.ini": f"[pytest]\naddopts = {PYTEST}\n",
    "tox.ini": f"[pytest]\naddopts =\n    {PYTEST}\n",
    "conftest.py": 'pytest_plugins = ["amp.make", "amp.inspect_it"]\n',
    "conftest.py, as a text": 'pytest_plugins = "amp.make,amp.inspect_it"\n',
    "conftest.py, with a type": 'pytest_plugins: tuple = ("amp.make", "amp.inspect_it")\n',
}


@pytest.mark.sampled(3, each="folder")
@pytest.mark.parametrize("options", TARGETS)
@pytest.mark.parametrize("folder", ["", "src/"])
def test_what_it_names_is_one_program(command_line, folder, options):
    """One of them makes an optimizer, and another one tests it and needs the shim's class."""
    make, inspect = f"{folder}amp/make.py", f"{folder}amp/inspect_it.py"
    cases = {
        configuration: {
            configuration.partition(",")[0]: text,
            f"{folder}amp/__init__.py": "",
            make: MAKE,
            inspect: INSPECT,
        }
        for configuration, text in CONFIGURATIONS.items()
    }
    after = migrate_all(command_line, cases, *options)
    split = [case for case in cases if SHIM not in after[case][make]]
    split += [case for case in cases if SHIM not in after[case][inspect]]
    assert not split


OTHERS = {
    "another section": "[options.package_data]\namp = make, inspect_it\n",
    "modules in another section": "[isort]\nknown = amp.make\nskip = amp.inspect_it\n",
    "a comment": "[options.entry_points]\n# trainer = amp.make:wrap\n; x = amp.inspect_it:y\n",
    "a plugin that is turned off": "[tool:pytest]\naddopts = -p no:amp.make -p no:amp.inspect_it\n",
    "one of them": "[options.entry_points]\ntrainer =\n    amp = amp.make:wrap\n",
}


def test_other_lines_connect_nothing(command_line):
    cases = {
        other: {"setup.cfg": text, "amp/make.py": MAKE, "amp/inspect_it.py": INSPECT}
        for other, text in OTHERS.items()
    }
    for after in migrate_all(command_line, cases, "--keras", "2").values():
        assert SHIM in after["amp/inspect_it.py"]
        assert "from_loss_scale" in after["amp/make.py"]


WRAPS = """\
from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as Wrap


def make(opt):
    return Wrap(opt, "dynamic")
"""
LOADS = {
    "a name": "wrap = importlib.import_module('amp.wraps').Wrap",
    "a name in a variable": "wraps = importlib.import_module('amp.wraps')\nwrap = wraps.Wrap",
    "a string": "wrap = getattr(importlib.import_module('amp.wraps'), 'Wrap')",
    "a computed name": "wrap = getattr(importlib.import_module('amp.wraps'), config['name'])",
    "a computed module": "wrap = getattr(importlib.import_module(config['module']), 'Wrap')",
    "both": "wrap = getattr(importlib.import_module(config['module']), config['name'])",
    "pydoc": "wrap = pydoc.locate('amp.wraps.Wrap')",
    "another name": "wrap = importlib.import_module('amp.wraps').make",
}
ENTRY_POINTS = {
    "an entry point": "[options.entry_points]\ntrainer =\n    amp = amp.wraps:Wrap\n",
    "another entry point": "[options.entry_points]\ntrainer =\n    amp = amp.wraps:make\n",
}


def test_a_class_that_is_loaded_by_its_name_keeps_its_arguments(command_line):
    """What loads it calls it with the arguments of the experimental class."""
    cases = {
        load: {
            "amp/__init__.py": "",
            "amp/wraps.py": WRAPS,
            "main.py": "import importlib\nimport json\nimport pydoc\n\n"
            f"config = json.load(open('config.json'))\n{text}\nopt = wrap(opt, 'dynamic')\n",
        }
        for load, text in LOADS.items()
    }
    for name, text in ENTRY_POINTS.items():
        cases[name] = {"amp/__init__.py": "", "amp/wraps.py": WRAPS, "setup.cfg": text}
    after = migrate_all(command_line, cases, "--keras", "2")
    final = {case for case in cases if "tf_lossscale" not in after[case]["amp/wraps.py"]}
    assert final == {"another name", "another entry point"}
