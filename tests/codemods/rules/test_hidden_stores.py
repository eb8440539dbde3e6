"""An attribute is known by its assignments only where nothing else can store it."""

import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

HEAD = """\
import abc
import copy
import functools
import operator
import tensorflow as tf
from outside import Base, Meta, decorated, fill
from tensorflow.keras.mixed_precision import LossScaleOptimizer

"""
TRAINER = """\
{decorator}class Trainer{bases}:
{body}    def __init__(self, settings=()):
        self.opt = LossScaleOptimizer(tf.keras.optimizers.SGD())
{statements}
    def scales(self):
        return isinstance(self.opt, LossScaleOptimizer)
"""
STATEMENTS = {
    "setattr of the name": "setattr(self, 'opt', settings)",
    "setattr of a computed name": "setattr(self, settings, 1)",
    "setattr passed on": "functools.partial(setattr, self)(settings, 1)",
    "object.__setattr__": "object.__setattr__(self, 'opt', settings)",
    "its own __setattr__": "self.__setattr__('opt', settings)",
    "__setattr__ of the super class": "super().__setattr__(settings, 1)",
    "update of __dict__": "self.__dict__.update(settings)",
    "item of __dict__": "self.__dict__['opt'] = settings",
    "computed item of __dict__": "self.__dict__[settings] = 1",
    "a new __dict__": "self.__dict__ = dict(settings)",
    "__dict__ under a name": "own = self.__dict__\nown.update(settings)",
    "__dict__ passed on": "fill(self.__dict__)",
    "setdefault of __dict__": "self.__dict__.setdefault('opt', settings)",
    "item of vars": "vars(self)['opt'] = settings",
    "update of vars": "vars(self).update(settings)",
    "vars passed on": "fill(vars(self))",
    "union with vars": "own = vars(self)\nown |= settings",
    "setitem": "operator.setitem(vars(self), 'opt', settings)",
    "deleted from vars": "del vars(self)['opt']",
    "builtins": "__builtins__.setattr(self, settings, 1)",
    "an item of a tuple": "self.opt, self.other = settings",
    "in a loop": "for self.opt in settings:\n    pass",
    "augmented": "self.opt += settings",
}
HARMLESS_STATEMENTS = {
    "setattr of another name": "setattr(self, 'other', settings)",
    "another item of vars": "vars(self)['other'] = settings",
    "a copy of vars": "fill(**vars(self))\nprint(vars(self), len(self.__dict__))",
    "read from vars": "print(vars(self)['opt'], self.__dict__.get('opt'), 'opt' in vars(self))",
    "a loop over vars": "for key, value in sorted(vars(self).items()):\n    print(key, value)",
    "merged into another": "both = {**vars(self), 'other': 1}",
}
BODIES = {
    "__setattr__": "def __setattr__(self, name, value):\n    fill(self, name, value)\n",
    "__getattribute__": "def __getattribute__(self, name):\n    return fill(self, name)\n",
    "__setstate__": "def __setstate__(self, state):\n    fill(self, state)\n",
    "a property": "@property\ndef opt(self):\n    return fill()\n",
    "a descriptor": "opt = decorated()\n",
    "a field": "opt: object\n",
}


def trainer(decorator="", bases="", body="", statements="", after=""):
    return (
        HEAD
        + TRAINER.format(
            decorator=decorator,
            bases=bases,
            body=textwrap.indent(body, " " * 4),
            statements=textwrap.indent(statements, " " * 8) + "\n",
        )
        + after
    )


def outcomes(source):
    """The outcomes of the class test, in the last line of the class."""
    found = []
    for options in (Options(keras=3), Options(target=Target.SHIM)):
        result = transformed(source, options)
        line = source[: source.index("return isinstance(self.opt")].count("\n") + 1
        found += [one.outcome for one in result.findings if one.line == line]
    return found


KNOWN = [
    *[trainer(statements=one) for one in HARMLESS_STATEMENTS.values()],
    trainer(),
    trainer(bases="(object)"),
    trainer(bases="(abc.ABC)"),
    trainer(bases="(tf.Module)"),
    trainer(decorator="@tf.keras.utils.register_keras_serializable()\n"),
    trainer(decorator="@functools.total_ordering\n"),
    trainer(after="\nclass Other:\n    def __init__(self, opt):\n        self.opt = opt\n"),
]
NOT_KNOWN = {
    **{name: trainer(statements=one) for name, one in STATEMENTS.items()},
    **{name: trainer(body=one) for name, one in BODIES.items()},
    "a decorator": trainer(decorator="@decorated\n"),
    "a decorator with arguments": trainer(decorator="@decorated(opt=1)\n"),
    "a dataclass": trainer(decorator="@functools.total_ordering\n@decorated.dataclass\n"),
    "a base from elsewhere": trainer(bases="(Base)"),
    "a metaclass": trainer(bases="(metaclass=Meta)"),
    "a subclass that stores another": trainer(
        after="\nclass Own(Trainer):\n    def __init__(self, opt):\n        self.opt = opt\n"
    ),
    "a subclass with a decorator": trainer(after="\n@decorated\nclass Own(Trainer):\n    pass\n"),
    "a base that stores another": trainer(bases="(First)").replace(
        "class Trainer",
        "class First:\n    def reset(self, opt):\n        self.opt = opt\n\n\nclass Trainer",
    ),
    "stored from outside": trainer(after="\nTrainer().opt = fill()\n"),
    "setattr from outside": trainer(after="\nsetattr(Trainer(), 'opt', fill())\n"),
}


@pytest.mark.parametrize("source", KNOWN)
def test_known(source):
    found = outcomes(source)
    assert found
    assert set(found) == {Safety.SAFE}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_not_known(name):
    found = outcomes(NOT_KNOWN[name])
    assert found
    assert set(found) == {Safety.UNSAFE}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_parentheses_stay_where_the_attribute_is_not_known(name):
    source = NOT_KNOWN[name].replace(
        "return isinstance(self.opt, LossScaleOptimizer)", "return self.opt.loss_scale()"
    )
    result = transformed(source, Options())
    assert "self.opt.loss_scale()" in result.source.decode()


@pytest.mark.parametrize("decorator", ["decorated", "decorated(1)", "Base.register"])
def test_decorated_function_may_be_passed_something_else(decorator):
    source = HEAD + textwrap.dedent(
        """
        @{}
        def _scaled(opt):
            return isinstance(opt, LossScaleOptimizer)

        _scaled(LossScaleOptimizer(tf.keras.optimizers.SGD()))
        """
    )
    result = transformed(source.format(decorator), Options(keras=3))
    assert Safety.UNSAFE in {one.outcome for one in result.findings}
    result = transformed(source.format("tf.function"), Options(keras=3))
    assert {one.outcome for one in result.findings} == {Safety.SAFE}
