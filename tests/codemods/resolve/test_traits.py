"""What a file has that matters to the other files of its program."""

import ast

import pytest
from tf_lossscale_codemods.facts import Trait
from tf_lossscale_codemods.resolve.links import links_of

SOURCES = {
    "model.compile('sgd')": {Trait.COMPILE},
    "getattr(model, 'compile')('sgd')": {Trait.COMPILE},
    "re.compile('sgd')": set(),
    "from tensorflow.keras.models import load_model": {Trait.LOAD},
    "model.load_weights(path)": {Trait.RESTORE},
    "ckpt.restore(path)": {Trait.RESTORE},
    "session.restore(path)": set(),
    "opt.apply_gradients(pairs)": {Trait.APPLIES, Trait.STEP},
    "model.optimizer.minimize(loss)": {Trait.APPLIES, Trait.LOOP, Trait.STEP},
    "opt = model.optimizer": {Trait.HANDED_ON},
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
}


@pytest.mark.parametrize("source", SOURCES)
def test_of_a_file(source):
    if "match" in source and not hasattr(ast, "Match"):
        pytest.skip("Python 3.9 has no patterns")
    assert links_of([ast.parse(source)]).traits == SOURCES[source]
