"""A name that only a text, or another file, still reads keeps its import."""

import pytest
from tf_lossscale_codemods.model import Options, Target
from verbs import transformed

SHIM = Options(target=Target.SHIM)
HEAD = "import tensorflow as tf\n"
MOVED = "x = tf.contrib.mixed_precision.LossScaleOptimizer\n"

READING = [
    "dt = eval('tf.' + name)",
    "dt = eval('tf.float16')",
    "dt = eval(f'tf.{name}')",
    "dt = eval('tf.%s' % name)",
    "dt = eval('tf.{}'.format(name))",
    "dt = eval('.'.join(['tf', name]))",
    "dt = eval(''.join(['tf.', name]))",
    "dt = eval(arguments.dtype)",
    "builtins.eval('print(tf)')",
    "frame.eval('x + @tf')",
    "text = 'y = tf\\n'\nexec(text)",
    "exec('import os\\ntf.float16')",
    "exec('''\ny = tf\n''')",
    "exec(b'y = tf')",
    "exec(open('other.py').read())",
    "exec(pathlib.Path('other.py').read_text())",
    "exec(compile('y = tf', 'f', 'exec'))",
    "timeit.timeit('tf.float16', globals=globals())",
    "timeit.timeit(stmt='x = tf', globals=globals())",
    "text = 'x = tf'\nfrom timeit import timeit\ntimeit(text, globals=globals())",
    "get_ipython().run_line_magic('timeit', 'tf.float16')",
    "get_ipython().run_line_magic('run', '-i other.py')",
    "get_ipython().run_cell_magic('time', '', 'y = tf')",
    "get_ipython().system('echo {tf}')",
    "get_ipython().system('echo $tf')",
    "get_ipython().magic('timeit tf')",
    "typing.ForwardRef('tf.Variable')",
    "typing.ForwardRef('List[tf.Variable]')",
    "print('{tf}'.format(**globals()))",
    "print('{tf.__version__}'.format(**globals()))",
    "print('{tf!r:>9}'.format_map(globals()))",
    "print('%(tf)s' % globals())",
    "string.Template('$tf ${tf}').substitute(globals())",
    "operator.attrgetter('tf.float16')(module)",
    "globals()['tf'].float16",
    "sys.modules[__name__].tf.float16",
    "import __main__\n__main__.tf.float16",
    "pool.submit('tf.constant(1)')",
    "def f(x: 'tf.Tensor'): pass",
    "cast('tf.Tensor', x)",
]

SHOWING = [
    '"""Reads tf.float16."""',
    "def f():\n    'tf.float16'",
    "class A:\n    '''Of tf.Tensor.'''",
    "print('with tf')",
    "print('it needs tf.')",
    "print('tf (the old one)', f'tf {name}')",
    "print('tfx.float16', 'my_tf.x')",
    "model.eval()\nmodel.compile('sgd')\nre.compile('tf +x')",
]


@pytest.mark.parametrize("line", READING)
def test_import_that_a_text_reads_stays(line):
    result = transformed(f"{HEAD}{MOVED}{line}\n", SHIM)
    after = result.source.decode()
    assert HEAD in after
    assert "x = tfls.contrib.mixed_precision.LossScaleOptimizer" in after
    assert transformed(after, SHIM).source.decode() == after


@pytest.mark.parametrize("line", SHOWING)
def test_import_that_a_text_only_shows_goes(line):
    assert HEAD not in transformed(f"{HEAD}{MOVED}{line}\n", SHIM).source.decode()


@pytest.mark.parametrize("line", ["print('{}'.format(eval('LSO(opt, 8)')))", "exec('LSO(opt, 8)')"])
def test_class_that_a_text_calls_keeps_its_parameters(line):
    head = "from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as LSO\n"
    after = transformed(f"{head}{line}\n", Options()).source.decode()
    assert "from tf_lossscale.keras.mixed_precision.experimental import" in after


OTHERS = {
    "dictionary": "import a\na.__dict__['tf'].float16\n",
    "dictionary of a name": "import a\na.__dict__[name].float16\n",
    "vars": "import a\nvars(a)['tf'].float16\n",
    "loaded modules": "import sys\nsys.modules['a'].tf.float16\n",
    "loaded modules, get": "import sys\nsys.modules.get('a').tf.float16\n",
    "loaded modules, imported": "from sys import modules\nmodules['a'].tf.float16\n",
    "loaded modules, computed": "import sys\nsys.modules[name].tf.float16\n",
    "all loaded modules": "import sys\nfor m in sys.modules.values():\n    m.tf.float16\n",
    "eval": "import a\neval('a.tf.float16')\n",
    "eval of an f-string": "import a\neval(f'a.tf.{name}')\n",
    "exec": "import a\nexec('print(a.tf.float16)')\n",
    "timeit": "import a, timeit\ntimeit.timeit('a.tf.float16', globals=globals())\n",
    "exec of the file": "exec(open('a.py').read())\nprint(tf.float16)\n",
    "exec in a dictionary": "names = {}\nexec(open('a.py').read(), names)\nnames['tf'].float16\n",
    "runpy": "import runpy\nrunpy.run_path('a.py')['tf'].float16\n",
    "runpy, a module": "import runpy\nrunpy.run_module('a')['tf'].float16\n",
    "runpy, get": "import runpy\nrunpy.run_path('a.py').get('tf').float16\n",
    "attrgetter": "import a, operator\noperator.attrgetter('tf.float16')(a)\n",
    "attrgetter of a loaded module": (
        "import operator, sys\noperator.attrgetter('tf.float16')(sys.modules['a'])\n"
    ),
}
UNRELATED = {
    "itself": "import sys\nme = sys.modules[__name__]\nme.tf\n",
    "version": "exec(open('version.py').read())\nprint(__version__)\n",
    "nothing": "import sys\nprint('b' in sys.modules)\n",
    "modules of an object": "net.modules[name].tf\nmodules[name].tf\n",
}


def kept_imports(command_line, readers):
    """The readers beside which the file keeps its import; each is a program of its own."""
    kept = []
    for number, (reader, text) in enumerate(readers.items()):
        folder = f"case{number}"
        (command_line.path(folder)).mkdir()
        command_line.path(f"{folder}/a.py").write_text(HEAD + MOVED)
        command_line.path(f"{folder}/b.py").write_text(text)
        command_line.run("migrate", folder, "--to", "shim", "--write", "--allow-dirty")
        after = command_line.path(f"{folder}/a.py").read_text()
        assert "tfls.contrib" in after
        if HEAD in after:
            kept.append(reader)
    return kept


def test_names_that_other_files_read_stay(command_line):
    assert kept_imports(command_line, OTHERS) == list(OTHERS)


def test_names_that_no_other_file_reads_go(command_line):
    assert kept_imports(command_line, UNRELATED) == []
