"""A name that only a text, or another file, still reads keeps its import."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
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

COMPUTED = [
    "exec(compile(source, path, 'exec'))",
    "eval(os.environ['OPT'])",
    "eval(line.split('=')[1])",
    "eval(config.get('opt', 'None'))",
    "eval(input('optimizer: '))",
    "eval(FLAGS['dtype'].value)",
    "eval(getattr(args, 'dtype'))",
    "eval(str(config['x']))",
    "eval(name + '(rate)')",
    "eval('%s' % config.optimizer)",
    "eval(f'{config.optimizer}(rate)')",
    "eval('dict({})'.format(arguments))",
    "exec(pkgutil.get_data('pkg', 'x.py'))",
    "list(map(eval, args.types))",
    "e = eval\ne(config)",
    "builtins.eval(config)",
    "import builtins\nlist(map(builtins.eval, lines))",
    "from builtins import eval as evaluate\nevaluate(config)",
    "globals()[name]",
    "locals().get(name)",
    "getattr(sys.modules[__name__], name)",
    "import timeit as t\nt.repeat(statement, globals=globals())",
    "get_ipython().run_cell(source)",
    "runpy.run_path(FLAGS.config, globals())",
    "from runpy import run_path\nrun_path('conf.py', globals())",
    "code.interact(local=globals())",
    "import IPython\nIPython.embed()",
    "breakpoint()",
    "names = globals()\nnames[name]",
    "me = sys.modules[__name__]\ngetattr(me, name)",
    "me = sys.modules[__name__]\nme.tf",
]
"""Texts that the file does not show."""

SHOWING = [
    '"""Reads tf.float16."""',
    "def f():\n    'tf.float16'",
    "class A:\n    '''Of tf.Tensor.'''",
    "print('with tf')",
    "print('it needs tf.')",
    "print('tf (the old one)', f'tf {name}')",
    "print('tfx.float16', 'my_tf.x')",
    "model.eval()\nmodel.compile('sgd')\nre.compile('tf +x')",
    "parser.add_argument('--x', help='Uses tf.data for the input')",
    "parser.add_argument('--x', type=eval)",
    "flags.DEFINE_bool('x', False, 'Uses tf.data for the input')",
    "raise ValueError('expected tf.Tensor, got {}'.format(x))",
    "assert x, 'tf.constant(1) is ' + 'no input'",
    "logging.info('tf.float16: %s' % x)",
    "print('models.tf.float16')",
    "def eval(model):\n    model.run()\neval(args.model)",
    "from tensorflow.keras.backend import eval\neval(loss)",
    "def run(eval, exec):\n    eval(exec)",
    "eval('models.' + name)",
    "eval(f'models.{name}()')",
    "import timeit\ntimeit.default_timer()",
    "timeit.timeit(lambda: model.fit())",
    "from utils import Timer\nwith Timer(name) as t:\n    pass",
    "get_ipython().system('pip install tensorflow')",
    "get_ipython().run_line_magic('matplotlib', 'inline')",
    "data.eval('a = b + c').query('a > 3')",
    "globals()['x']\nglobals()[name] = 1",
    "ast.literal_eval(text)",
]


@pytest.mark.parametrize("line", [*READING, *COMPUTED])
def test_import_that_a_text_reads_stays(line):
    result = transformed(f"{HEAD}{MOVED}{line}\n", SHIM)
    after = result.source.decode()
    assert HEAD in after
    assert "x = tfls.contrib.mixed_precision.LossScaleOptimizer" in after
    assert transformed(after, SHIM).source.decode() == after


@pytest.mark.parametrize("line", SHOWING)
def test_import_that_a_text_only_shows_goes(line):
    assert HEAD not in transformed(f"{HEAD}{MOVED}{line}\n", SHIM).source.decode()


CLASS = "from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer"
WRAP = "opt = LossScaleOptimizer(opt, 'dynamic')"
NAMING = [
    "print('{}'.format(eval('LossScaleOptimizer(opt, 8)')))",
    "exec('LossScaleOptimizer(opt, 8)')",
    "code = 'LossScaleOptimizer(opt)'\neval(code)",
    "eval(NAMES[kind])\nNAMES = {'fixed': 'LossScaleOptimizer', 'none': 'list'}",
    "globals()[NAMES[kind]]\nNAMES = ['LossScaleOptimizer']",
    "exec(TEXT.format(opt))\nTEXT = 'x = LossScaleOptimizer({}, 8)'",
    "globals()['LossScaleOptimizer'](opt, 8)",
    "vars().get('LossScaleOptimizer')",
    "getattr(sys.modules[__name__], 'LossScaleOptimizer')",
    "sys.modules[__name__].LossScaleOptimizer",
    "me = sys.modules[__name__]\ngetattr(me, 'LossScaleOptimizer')",
    "names = globals()\nnames[NAMES[kind]]\nNAMES = ['LossScaleOptimizer']",
    "code.InteractiveInterpreter(globals()).runsource('LossScaleOptimizer(opt, 8)')",
    "timeit.timeit('LossScaleOptimizer(opt, 8)', globals=globals())",
    "import timeit as t\nt.Timer(stmt='opt()', setup='opt = LossScaleOptimizer')",
    "typing.ForwardRef('LossScaleOptimizer')",
    "def f(opt: 'LossScaleOptimizer'): pass",
    "get_ipython().run_line_magic('timeit', 'LossScaleOptimizer(opt, 8)')",
    "__all__ = ['LossScaleOptimizer']",
    "__all__ += ['LossScaleOptimizer']",
    "__all__.extend(['LossScaleOptimizer'])",
]
ORDINARY = [
    "def eval(model):\n    model.run()\neval(args.model)\nx = 'LossScaleOptimizer'",
    "rate = eval(FLAGS.rate)",
    "rate = eval(FLAGS.rate)\nprint('Wraps it into LossScaleOptimizer(opt)')",
    "parser.add_argument('--x', type=eval, default='[LossScaleOptimizer]')",
    "flags.DEFINE_bool('x', eval(x), 'Use LossScaleOptimizer(opt)')",
    "eval(FLAGS.rate)\nif config['LossScaleOptimizer'] or name == 'LossScaleOptimizer': pass",
    "eval(FLAGS.rate)\nhasattr(module, 'LossScaleOptimizer')",
    "def build(eval=False):\n    if eval:\n        log.info('wrapped into a LossScaleOptimizer')",
    "import timeit\nstart = timeit.default_timer()\nprint('Using LossScaleOptimizer')",
    "from utils import Timer\nlogging.info('with LossScaleOptimizer')\nwith Timer(): pass",
    "get_ipython().system('pip install x')\nprint('Use a LossScaleOptimizer')",
    "raise ValueError('no optimizer (see LossScaleOptimizer.get_scaled_loss)')",
    "print('Wrapping in LossScaleOptimizer(opt)')",
    "click.echo('LossScaleOptimizer(opt) at %s' % eval(FLAGS.rate))",
    "assert opt, 'expected LossScaleOptimizer(inner, scale), got %s' % opt",
    "x = 'LossScaleOptimizer'",
    "breakpoint()\nx = 'LossScaleOptimizer'",
]


@pytest.mark.parametrize("line", NAMING)
def test_class_that_an_evaluated_text_names_keeps_its_parameters(line):
    after = transformed(f"{CLASS}\n{WRAP}\n{line}\n", Options()).source.decode()
    assert CLASS.replace("tensorflow", "tf_lossscale") in after
    assert WRAP in after


@pytest.mark.parametrize("line", ORDINARY)
def test_class_that_only_messages_name_is_the_final_one(line):
    after = transformed(f"{CLASS}\n{WRAP}\n{line}\n", Options()).source.decode()
    assert CLASS.replace(".experimental", "") in after
    assert "opt = LossScaleOptimizer(opt)\n" in after


KERAS = "from tensorflow.keras import mixed_precision\n"
OLD = "from tensorflow.keras.mixed_precision import experimental"
TWIN = OLD.replace("tensorflow", "tf_lossscale")


@pytest.mark.parametrize(
    "line",
    [
        "p = eval('mixed_precision.Policy(name)')",
        "p = config['mixed_precision']",
        "print('mixed_precision.experimental API in use')",
        "rate = eval(FLAGS.rate)",
        "pass",
    ],
)
def test_module_that_still_exists_keeps_its_name(line):
    source = f"{KERAS}mixed_precision.experimental.set_policy(x)\n{line}\n"
    after = transformed(source, Options()).source.decode()
    assert after == f"{KERAS}mixed_precision.set_global_policy(x)\n{line}\n"


def test_module_that_an_evaluated_text_names_is_that_of_the_shim():
    source = f"{OLD}\nexperimental.set_policy(x)\np = eval('experimental.set_policy')\n"
    result = transformed(source, Options())
    assert result.source.decode() == source.replace(OLD, TWIN)
    assert any("a text that is evaluated" in finding.message for finding in result.findings)


@pytest.mark.parametrize("line", ["exec(open('version.py').read())", "x = config['experimental']"])
def test_own_name_of_a_removed_module_is_the_shims(line):
    source = f"{HEAD}{OLD}\n{line}\nexperimental.set_policy(x)\n"
    after = transformed(source, Options()).source.decode()
    assert after == f"{HEAD}{TWIN}\n{line}\ntf.keras.mixed_precision.set_global_policy(x)\n"
    assert transformed(after, Options()).source.decode() == after


@pytest.mark.parametrize(
    "line",
    ["print('Using tf.keras.mixed_precision.experimental.Policy')", "exec('x.experimental()')"],
)
def test_attribute_in_a_text_is_no_name(line):
    source = f"{OLD}\n{line}\nexperimental.set_policy(x)\n"
    after = transformed(source, Options()).source.decode()
    assert after == f"{KERAS}{line}\nmixed_precision.set_global_policy(x)\n"


def test_name_given_by_as_means_the_final_module_unless_a_text_names_it():
    source = f"{OLD} as mp\nrate = eval(FLAGS.rate)\nmp.set_policy(x)\n"
    after = transformed(source, Options()).source.decode()
    assert f"{KERAS[:-1]} as mp" in after
    named = transformed(source + "y = 'mp.Policy'\n", Options()).source.decode()
    assert f"{TWIN} as mp\n" in named
    assert "\nmp.set_policy(x)\n" in named


def test_contrib_beside_a_function_called_eval_is_renamed():
    source = (
        f"{HEAD}contrib = tf.contrib\ndef eval(model): pass\neval(model)\n"
        "opt = contrib.mixed_precision.LossScaleOptimizer(opt, scale)\n"
    )
    result = transformed(source, SHIM)
    assert "contrib = tfls.contrib\n" in result.source.decode()
    assert all(finding.outcome is Safety.SAFE for finding in result.findings)


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
