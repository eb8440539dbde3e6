"""What a file has that matters to the other files of its program."""

import ast
import json

import pytest
from programs.packages import package
from tf_lossscale_codemods.engine.prefilter import traits_hinted
from tf_lossscale_codemods.facts import Trait
from tf_lossscale_codemods.resolve.links import links_of

SOURCES = {
    "model.compile('sgd')": {Trait.COMPILE},
    "getattr(model, 'compile')('sgd')": {Trait.COMPILE},
    "re.compile('sgd')": set(),
    "from tensorflow.keras.models import load_model": {Trait.LOAD},
    "model. compile('sgd')": {Trait.COMPILE},
    "(model. # of Keras\n  compile)('sgd')": {Trait.COMPILE},
    "model.\\\n  compile('sgd')": {Trait.COMPILE},
    "model.load_weights(path)": {Trait.RESTORE},
    "model .load_weights(path)": {Trait.RESTORE},
    "ckpt.restore(path)": {Trait.RESTORE},
    "state_ckpt . restore(path)": {Trait.RESTORE},
    "state = training.Checkpoint(); state.restore(path)": {Trait.RESTORE},
    "session.restore(path)": set(),
    "opt.apply_gradients(pairs)": {Trait.APPLIES, Trait.STEP},
    "model.optimizer.minimize(loss)": {Trait.APPLIES, Trait.LOOP, Trait.STEP},
    "opt = model.optimizer": {Trait.HANDED_ON},
    "opt. apply_gradients(pairs)": {Trait.APPLIES, Trait.STEP},
    "opt. loss_scale": {Trait.STEP},
    "getattr(opt, 'apply_' + verb)(pairs)": {Trait.APPLIES, Trait.HANDED_ON},
    "getattr(model, name)": {Trait.HANDED_ON},
    "match model:\n    case Model(compile=make): pass": {Trait.COMPILE},
    "match opt:\n    case Wrapper(apply_gradients=step): pass": {Trait.APPLIES},
    "match model:\n    case Model(optimizer=opt): pass": {Trait.HANDED_ON},
    "match model:\n    case Model(loss=opt): pass": set(),
    "vars(model).get('optimizer')": {Trait.HANDED_ON},
    "{**model.__dict__}['optimizer']": {Trait.HANDED_ON},
    "dict(inspect.getmembers(model))['optimizer']": {Trait.HANDED_ON},
    "vars(args).get('loss'), vars(args)['rate']": set(),
    "for name, value in vars(args).items(): print(name, value)": set(),
    "config['optimizer']": set(),
    "vars(model)[name]": {Trait.HANDED_ON},
    "inspect.getattr_static(model, 'optimizer')": {Trait.HANDED_ON},
    "for name in ('loss', 'name'): print(getattr(model, name))": set(),
    "NAME = 'optimizer'\nprint(getattr(model, NAME))": {Trait.HANDED_ON},
    "for name in ('loss',): pass\ndef get(x, name): return getattr(x, name)": {Trait.HANDED_ON},
    "name = 'loss'\nfor name, rate in pairs: print(getattr(model, name))": {Trait.HANDED_ON},
    "type(opt) is Kept": {Trait.TYPE_TEST},
    "import tf_keras as keras": {Trait.TF_KERAS},
    "from tf_keras.layers import Dense": {Trait.TF_KERAS},
    "keras = importlib.import_module('tf_keras')": {Trait.TF_KERAS},
    "from tensorflow import keras as tf_keras": set(),
    "from .tf_keras import Dense": set(),
}


@pytest.fixture(params=SOURCES)
def source(request):
    if "match" in request.param and not hasattr(ast, "Match"):
        pytest.skip("Python 3.9 has no patterns")
    return request.param


def test_of_a_file(source):
    assert links_of([ast.parse(source)]).traits == SOURCES[source]


def test_the_bytes_hint_at_all_of_them(source):
    """But for comparisons of types, which count only in files that are parsed."""
    assert_hinted(source, SOURCES[source])


@pytest.mark.parametrize("seed", range(20))
def test_the_bytes_of_random_packages_hint_at_all_of_them(seed):
    for name, source in package(seed).files.items():
        if name.endswith(".py"):
            assert_hinted(source, links_of([ast.parse(source)]).traits)


def assert_hinted(source, traits):
    """Asserts this for a file of Python and for a notebook."""
    for data in (source, json.dumps({"source": source.splitlines(keepends=True)})):
        assert traits - {Trait.TYPE_TEST} <= traits_hinted(data.encode(), ())
