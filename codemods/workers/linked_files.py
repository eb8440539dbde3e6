"""Holds back what must keep the same class in several files of a run.

The class of an optimizer, the tests of it and whatever else reads the class are often in different
files. If a place that reads the class keeps the old one, and a constructor elsewhere moves to
another class, the test is False for what that constructor makes. So both move, or neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Callable

from ..model import Finding, Options, Safety, Target
from ..run.programs import Programs
from .results import FileOutcome

__all__ = ["LinkedFiles"]

_KERAS = ("LS301", "LS304", "LS401")
"""The rules that move the Keras loss-scale optimizers."""
_REWRITE = "LS205"
"""The graph rewrite, which makes both Keras and graph optimizers."""
_EXPERIMENTAL = "LS301"
"""No other class subclasses the experimental one; the shim's final class does the final one."""
_CONTRIB = ("LS101", "LS102", "LS103", "LS104")
_LOSS_SCALES = ("LS201", "LS202", "LS203")
_GRAPH = "LS204"
_CROSS_SHARD = "LS501"
_POLICY = "LS602"
_POLICIES = ("LS601", "LS602", "LS603", "LS604")
_MAKERS: Mapping[str, tuple[str, ...]] = {
    _EXPERIMENTAL: (*_KERAS, _REWRITE),
    _GRAPH: (_GRAPH, _REWRITE),
    _CROSS_SHARD: (_CROSS_SHARD,),
    _POLICY: _POLICIES,
    **dict.fromkeys(_CONTRIB, _CONTRIB),
    **dict.fromkeys(_LOSS_SCALES, _LOSS_SCALES),
}
"""For a class, given by the code of its rule, the rules that move what makes its instances."""
_SHIM = "tf_lossscale"


class LinkedFiles:
    """What each file of a run must leave, because another file keeps an old class.

    Args:
      options: how the files are rewritten.
      links: pairs of files: one with tests of a Keras optimizer, and one that constructs it.
      shown: converts an absolute path to the one in reports.
      words: the words of a file; see `run.module_facts`.
      programs: tells which files a program can contain together.
    """

    def __init__(
        self,
        options: Options,
        links: Collection[tuple[str, str]],
        shown: Callable[[str], str],
        words: Callable[[str], frozenset[str]],
        programs: Programs,
    ) -> None:
        self._options = options
        self._links = links
        self._shown = shown
        self._words = words
        self._programs = programs
        self._blocked_by: dict[str, dict[str, str]] = {}

    def of(self, file: str) -> Mapping[str, str]:
        """The rules that must not apply to a file, each with the file that is the reason."""
        return dict(self._blocked_by.get(file, {}))

    def hold(self, outcomes: Mapping[str, FileOutcome], makers: Iterable[str]) -> None:
        """Adds what the files must leave, if they were rewritten with these outcomes.

        Args:
          outcomes: the outcomes on trial, at least of the linked files and of those with tests.
          makers: the files that may construct loss-scale optimizers or their parts.
        """
        self._hold_linked(outcomes)
        self._hold_connected(outcomes, sorted(makers))

    def _hold_linked(self, outcomes: Mapping[str, FileOutcome]) -> None:
        """If a constructor stays on the old class, so do the tests of it, and the other way."""
        unmoved = {
            file
            for link in self._links
            for file in link
            if self._keeps_class(file, outcomes[file].findings)
        }
        is_new = True
        while is_new:
            is_new = False
            for tester, constructor in self._links:
                if constructor in unmoved or self._is_held(constructor):
                    is_new |= self._block(tester, _KERAS, constructor)
                elif _leaves_test(outcomes[tester].findings) or self._is_held(tester):
                    is_new |= self._block(constructor, _KERAS, tester)

    def _hold_connected(self, outcomes: Mapping[str, FileOutcome], makers: Sequence[str]) -> None:
        """If a read of a class stays, so do the constructors that one program has with it."""
        for file in sorted(outcomes):
            codes = {maker for code in outcomes[file].left for maker in self._makers(code)}
            if codes:
                for maker in self._programs.connected(file, makers):
                    self._block(maker, sorted(codes), file)

    def _makers(self, code: str) -> tuple[str, ...]:
        """The rules that would give the instances of a class another one."""
        is_same = self._options.target is not Target.SHIM and code[:3] in ("LS2", "LS5")
        return () if is_same else _MAKERS.get(code, ())

    def _is_held(self, file: str) -> bool:
        return _EXPERIMENTAL in self._blocked_by.get(file, {})

    def _block(self, file: str, codes: Iterable[str], reason: str) -> bool:
        known = self._blocked_by.setdefault(file, {})
        new = [code for code in codes if code not in known]
        known.update(dict.fromkeys(new, self._shown(reason)))
        return bool(new)

    def _keeps_class(self, file: str, findings: Sequence[Finding]) -> bool:
        """Whether the constructors in a file do not move to the class of the target."""
        moves = [one for one in findings if one.code in _KERAS]
        if any(not one.applied and one.outcome is not Safety.SAFE for one in moves):
            return True
        to_shim = self._options.target is Target.SHIM or self._options.for_keras_3
        return to_shim and not moves and _SHIM not in self._words(file)


def _leaves_test(findings: Sequence[Finding]) -> bool:
    """Whether a test stays on the experimental class."""
    return any(one.code == _EXPERIMENTAL and one.is_left for one in findings)
