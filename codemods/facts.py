"""What is known about the files of a run, and what is decided about each: values, no behavior.

The work on a file is divided in two. A worker reads the file and returns `FileFacts`. The parent
process decides, from the facts of all files, what each file gets: a `Decision`. With it, the worker
edits the file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple, Optional, Union

from .model import Group

__all__ = [
    "ANY_FILE",
    "NO_FACTS",
    "OF_IMPORTED",
    "OF_STEPS",
    "SINGLE_FILE",
    "STEP_WITH_MODEL",
    "UNDECIDED",
    "UNREAD",
    "USES_OF_KERAS_2",
    "Constant",
    "Decision",
    "Export",
    "FileFacts",
    "Links",
    "Made",
    "Need",
    "Reason",
    "Trait",
    "When",
    "is_written_for_keras_3",
]

Constant = Union[None, bool, int, float, str, tuple["Constant", ...]]
"""A value that can be computed from the source."""


class Trait(enum.Enum):
    """What a file has that matters to the other files of its program."""

    EXPERIMENTAL_CLASS = "the experimental Keras class"
    FINAL_CLASS = "the final Keras class"
    SYMBOL = "a symbol of any group, of TensorFlow or of the shim"
    MAKER = "what makes a Keras loss-scale optimizer, or sets the policy under which `compile` does"
    COMPILE = "a call of `compile`, which wraps an optimizer under a mixed policy"
    LOAD = "a call of `load_model`, which may make an optimizer"
    RESTORE = "what restores checkpoints or weights"
    POLICY = "what sets a policy, or reads one"
    EXPERIMENTAL_POLICY = "what sets or makes a policy with a loss scale"
    MIXED = "the name of a mixed policy"
    KERAS_2_METHODS = "calls of methods that only Keras 2 has, and none that only Keras 3 has"
    KERAS_3_METHODS = "calls of `scale_loss` of a loss-scale optimizer that the file makes"
    LOOP = "a training step that applies gradients with `model.optimizer`"
    APPLIES = "a step of any optimizer, which does not scale the loss as in Keras 3"
    HANDED_ON = "`model.optimizer` as a value, which may be the optimizer of a step elsewhere"
    STEP = "what Keras 3's own class does not have, or does in another way"
    TYPE_TEST = "a comparison with the type of an object"
    TF_KERAS = "an import of `tf_keras`, of which `tf.keras` need not be an alias"


_OF_PLACES = frozenset(
    [Trait.EXPERIMENTAL_CLASS, Trait.FINAL_CLASS, Trait.SYMBOL, Trait.MAKER, Trait.POLICY]
)
"""The traits of a file that has a place."""
USES_OF_KERAS_2 = frozenset(
    [
        Trait.MAKER,
        Trait.FINAL_CLASS,
        Trait.EXPERIMENTAL_CLASS,
        Trait.LOOP,
        Trait.KERAS_2_METHODS,
        Trait.STEP,
    ]
)
"""What other files must not have if `--unsafe` is to use Keras 3's own class.

They would make optimizers, test for the class, or use what only Keras 2 has.
"""


OF_STEPS = (Trait.LOOP, Trait.APPLIES, Trait.HANDED_ON)
OF_IMPORTED = (*OF_STEPS, Trait.TF_KERAS)
"""The traits that count for a program also in files that it only imports."""
STEP_WITH_MODEL = (frozenset([Trait.LOOP]), frozenset([Trait.APPLIES, Trait.HANDED_ON]))
"""The traits of programs that may apply unscaled gradients with what `compile` makes.

A program has all traits of one of these sets, in any of its files.
"""


class When(enum.Enum):
    """What else must be so for a `Need` to count."""

    ALWAYS = "nothing"
    IF_NOT_FOR_KERAS_3 = "the program is not written for Keras 3's class"
    IF_READ = "another file reads a name of the file"
    IF_COMPILED = "the program compiles or loads models"
    IF_BOTH = "the program has both Keras classes"
    IF_EXPERIMENTAL = "the program has the experimental Keras class"
    IF_EXPERIMENTAL_POLICY = "the program sets or makes policies with a loss scale"
    IF_TF_KERAS = "the program imports `tf_keras`"
    IF_FLAG = "a name of another file depends on the version of TensorFlow"


class Need(NamedTuple):
    """A place that the final API does not fit, so that its group of symbols goes to the shim.

    Attributes:
      group: the symbols that go to the shim.
      code, symbol, line, column: the place, as in a finding.
      source: the index of the cell in a notebook; the line is one of the cell.
      why: the reason, as a clause.
      when: what else must be so.
      names: the name of the file that another one reads, or the names of other files that may
        depend on the version.
    """

    group: Group
    code: str
    symbol: str
    why: str
    line: int = 0
    column: int = 0
    source: int = 0
    when: When = When.ALWAYS
    names: tuple[str, ...] = ()


class Export(NamedTuple):
    """What a top-level name of a file means to the files that import it.

    Attributes:
      meanings: dotted paths, or what begins with `<` for values that the file makes; see
        `resolve.qualified_names`.
      is_kept: whether a place that binds the name keeps a legacy symbol, as it is silenced.
      returns: what a function with the name returns, as paths like `meanings`.
    """

    meanings: frozenset[str]
    is_kept: bool = False
    returns: frozenset[str] = frozenset()


class Made(NamedTuple):
    """What a top-level name, or an attribute of any object, is made of.

    Attributes:
      depends: whether the file makes it of the version of TensorFlow.
      names: the names of other files that it is made of, as in `Need`.
      value: its value on the newest TensorFlow, in a tuple; None if that cannot be computed.
      as_text: the first release that a comparison of versions as text takes for an older one.
    """

    depends: bool
    names: frozenset[str] = frozenset()
    value: Optional[tuple[Constant]] = None
    as_text: str = ""


class Links(NamedTuple):
    """What connects a file with others.

    Attributes:
      imports: the modules that it imports, as it writes them.
      reads: the names that it reads from each module; `*` stands for names that are not known.
      stars: the modules of which it imports all names.
      renamed: what it imports under other names than its own: the paths of each.
      given: the names under which it hands on what is made of the version of TensorFlow, as
        `names_given` has them.
      loads: whether it loads modules or files by names that are computed.
      reads_of_loaded: the names that it may read of these; `*` as above.
      traits: what the file has, if it was not read as a whole.
      is_known: whether it could be parsed; otherwise `imports` has all words of its imports,
        and it may read any name of these modules.
    """

    imports: frozenset[str] = frozenset()
    reads: Mapping[str, frozenset[str]] = {}
    stars: frozenset[str] = frozenset()
    renamed: Mapping[str, frozenset[str]] = {}
    given: frozenset[str] = frozenset()
    loads: bool = False
    reads_of_loaded: frozenset[str] = frozenset()
    traits: frozenset[Trait] = frozenset()
    is_known: bool = True


class FileFacts(NamedTuple):
    """What the other files of a program must know about a file.

    Attributes:
      groups: the groups of symbols that it has places of.
      needs: its places that the final API does not fit.
      traits: what else it has.
      exports: what its top-level names mean; None for a file without a place, of which they are
        read only if another file needs them.
      through: the legacy paths that it reads through other files.
      conditions: the names of other files that decide if some of its places run; the name of an
        attribute begins with a dot.
      asks: the traits of other files that its findings depend on.
      links: what connects it with other files.
    """

    groups: frozenset[Group] = frozenset()
    needs: tuple[Need, ...] = ()
    traits: frozenset[Trait] = frozenset()
    exports: Optional[Mapping[str, Export]] = {}
    through: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    asks: frozenset[Trait] = frozenset()
    links: Links = Links()

    @property
    def is_decided(self) -> bool:
        """Whether no decision changes what becomes of the file: it has no place of its own."""
        is_open = self.groups or self.needs or self.through or self.conditions or self.asks
        return not is_open and self.traits.isdisjoint(_OF_PLACES)


NO_FACTS = FileFacts()
"""The facts of a file without a legacy name in its code; its links are not read with it."""


class Reason(NamedTuple):
    """Why a group of symbols goes to the shim: a place of the program that needs it.

    Attributes:
      file: the file with the place.
      need: the place.
    """

    file: str
    need: Need


class Decision(NamedTuple):
    """What is decided about one file.

    Attributes:
      on_shim: the groups of symbols that go to the shim, each with what decided that.
      reads: the top-level names that other files may read.
      compared: those that files read which compare types of objects.
      flags: the names of other files that depend on the version, with their value on the newest
        TensorFlow, as in `Made`.
      texts: the flags that compare versions as text, with the first release that they take for an
        older one.
      settled: the paths through other files that need no change here.
      moved: the settled paths that lead to a legacy symbol, which is rewritten where it is bound.
      kept: the paths through other files that lead to a legacy symbol whose place is silenced.
      traits: what the files of the program have, this one included.
      others: what the other files of the program have.
      is_alone: whether the run has this file only, so that nothing is known about others.
    """

    on_shim: Mapping[Group, tuple[Reason, ...]] = {}
    reads: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    flags: Mapping[str, Optional[tuple[Constant]]] = {}
    texts: Mapping[str, str] = {}
    settled: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    traits: frozenset[Trait] = frozenset()
    others: frozenset[Trait] = frozenset()
    is_alone: bool = False

    def goes_to_shim(self, group: Group) -> bool:
        """Whether the symbols of a group go to the shim, and not to the final API."""
        return group in self.on_shim

    @property
    def is_for_keras_3(self) -> bool:
        """Whether the program is written for Keras 3's class, which then stays."""
        return is_written_for_keras_3(self.traits)

    @property
    def is_origin_known(self) -> bool:
        """Whether the program shows what makes its loss-scale optimizers."""
        return not self.traits.isdisjoint({Trait.MAKER, Trait.POLICY})

    @property
    def optimizers_on_shim(self) -> bool:
        """Whether the Keras optimizers go to the shim, with their arguments and methods."""
        return self.goes_to_shim(Group.KERAS_OPTIMIZERS)

    @property
    def has_maker(self) -> bool:
        """Whether the program makes Keras loss-scale optimizers, or sets such a policy."""
        return Trait.MAKER in self.traits

    @property
    def has_maker_elsewhere(self) -> bool:
        """Whether another file makes Keras loss-scale optimizers, or sets such a policy."""
        return Trait.MAKER in self.others

    @property
    def has_experimental_policy(self) -> bool:
        """Whether the program sets or makes policies that have a loss scale."""
        return Trait.EXPERIMENTAL_POLICY in self.traits

    @property
    def imports_tf_keras(self) -> bool:
        """Whether a file of the program, or one that it imports, imports `tf_keras`."""
        return Trait.TF_KERAS in self.traits

    @property
    def restores_elsewhere(self) -> bool:
        """Whether another file restores checkpoints or weights."""
        return Trait.RESTORE in self.others

    @property
    def has_keras_2_elsewhere(self) -> bool:
        """Whether other files make, use or test for optimizers as Keras 2 has them."""
        return not self.others.isdisjoint(USES_OF_KERAS_2)

    def may_read(self, name: str) -> bool:
        """Whether other files may read a top-level name."""
        return name in self.reads or "*" in self.reads


def is_written_for_keras_3(traits: frozenset[Trait]) -> bool:
    """Whether a program uses the methods of Keras 3's class only.

    A program that also uses methods of Keras 2, in another file, needs the shim's class, which has
    both.
    """
    return Trait.KERAS_3_METHODS in traits and Trait.KERAS_2_METHODS not in traits


SINGLE_FILE = Decision(is_alone=True)
UNDECIDED = Decision()

ANY_FILE = "*"
"""The name of every file, among the words of a file of which the imports are not known."""
UNREAD = Links(imports=frozenset([ANY_FILE]), is_known=False)
"""The links of a file that took too long to read: it may import every other one."""
