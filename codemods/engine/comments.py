"""Comments that silence findings, and those that mark them.

`# lossscale: ignore[CODE,...] reason` silences what is on its line, and what is on a line on which
a bracket was opened that is closed on its line: it may stand behind the last line of a call.
`# lossscale: ignore` alone, or before another comment, silences all codes there. Everything else
that begins so, such as `# lossscale: ignored`, silences nothing, and is reported.
`# TODO(CODE): ...` is what `--mark` adds above each manual finding, once.
"""

from __future__ import annotations

import contextlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from ..model import Finding, Options, Safety
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import Proposal
from .render import LONGEST_LINE, Place, Source

__all__ = ["UNUSED_CODE", "Suppressions", "mark_edits", "may_suppress"]

UNUSED_CODE = "LS900"
_WORD = "lossscale:"
_COMMENT = re.compile(
    r"#\s*lossscale:\s*ignore"
    r"(?:\s*\[(?P<codes>[^\]]*)(?P<end>\])?|(?P<bare>(?=\s*\Z|\s+#))|\w*)",
    re.I,
)
_MARK = re.compile(r"#\s*TODO\(LS[0-9]+\):")  # a comment of `--mark`, which can quote the syntax
_CODE = re.compile(r"LS[0-9]*\Z")


def may_suppress(source: bytes) -> bool:
    """Whether `source` may contain a suppression comment."""
    return _WORD.encode() in source.lower()


class _Suppression(NamedTuple):
    """A suppression comment.

    Attributes:
      place: the comment.
      codes: the code prefixes to silence; `("",)` (all codes) for a comment without codes.
      problem: why the comment is invalid; then it silences nothing.
      opened: the lines on which the brackets were opened that are closed on its line.
    """

    place: Place
    codes: tuple[str, ...]
    problem: str
    opened: tuple[int, ...]

    def covers(self, place: Place) -> bool:
        """Whether the comment silences what is at a place."""
        return place.source == self.place.source and any(
            place.line <= line <= place.end_line for line in (self.place.line, *self.opened)
        )


class Suppressions:
    """The suppression comments of one program, and which of their codes have silenced something."""

    def __init__(self, found: Iterable[_Suppression]) -> None:
        self._found = list(found)
        self._used: set[tuple[Place, str]] = set()

    @classmethod
    def of_sources(cls, sources: Sequence[Source]) -> Suppressions:
        """Those of Python sources, which are located."""
        return cls(
            comment
            for index, source in enumerate(sources)
            if _WORD in source.text.lower()
            for comment in _suppressions(source.text, index)
        )

    @classmethod
    def of_line(cls, line: str, number: int) -> Suppressions:
        """Those of a line that is not Python."""
        match = _COMMENT.search(line) if _WORD in line.lower() else None
        return cls([] if match is None else [_suppression(match, 0, number, 0, line, ())])

    def silence(self, code: str, place: Place) -> bool:
        """Whether a comment at `place` silences `code`; marks the comment as used."""
        used = {
            (comment.place, prefix)
            for comment in self._found
            if comment.covers(place)
            for prefix in comment.codes
            if code.startswith(prefix)
        }
        self._used |= used
        return bool(used)

    def unused(self, options: Options, path: str) -> Iterator[tuple[int, Finding]]:
        """A finding for each comment that is invalid or has a code that silenced nothing.

        Codes that `--select` or `--ignore` turned off are not reported.
        """
        for place, codes, problem, _ in self._found if options.selects(UNUSED_CODE) else ():
            idle = [
                prefix
                for prefix in codes
                if (place, prefix) not in self._used and _looked_for(prefix, options)
            ]
            named = "" if idle == [""] else f" for {', '.join(idle)}"
            message = f"this comment silences nothing{named}; remove it or fix its codes"
            if problem or idle:
                yield (
                    place.source,
                    place.finding(path, UNUSED_CODE, "lossscale: ignore", problem or message),
                )


def _looked_for(prefix: str, options: Options) -> bool:
    """Whether all rules with this prefix were active."""
    if options.select and not prefix.startswith(options.select):
        return False
    return not any(
        prefix.startswith(ignored) or ignored.startswith(prefix) for ignored in options.ignore
    )


def _suppressions(code: str, source: int) -> Iterator[_Suppression]:
    """Yields the comments that silence codes, each with the lines that it covers.

    A comment after a bracket that closes also covers the line where the bracket was opened.

    Args:
      code: a Python source, or the text of a cell.
      source: its index among the sources of the program.
    """
    brackets: list[int] = []
    opened: list[int] = []
    # The tokenizer rejects some sources that LibCST accepts.
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.OP and token.string in "([{":
                brackets.append(token.start[0])
            elif token.type == tokenize.OP and token.string in ")]}" and brackets:
                opened.append(brackets.pop())
            elif token.type in (tokenize.NL, tokenize.NEWLINE):
                opened.clear()
            match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if match is not None and not _MARK.match(token.string):
                line, start = token.start
                text = token.line.rstrip("\r\n")
                yield _suppression(match, source, line, start, text, tuple(opened))


def _suppression(
    match: re.Match[str], source: int, line: int, start: int, text: str, opened: tuple[int, ...]
) -> _Suppression:
    """The comment that a match in a line is; `start` is where the searched part begins."""
    column, end = start + match.start() + 1, start + match.end() + 1
    shown = text if len(text) < LONGEST_LINE else ""
    place = Place(source, line, column, line, end, shown)
    return _Suppression(place, *_codes(match), opened)


def _codes(match: re.Match[str]) -> tuple[tuple[str, ...], str]:
    """The code prefixes of a comment, and why it is invalid."""
    if match["bare"] is not None:
        return ("",), ""
    listed = match["codes"] or ""
    codes = tuple(part.strip().upper() for part in listed.split(",") if part.strip())
    wrong = [code for code in codes if not _CODE.match(code)]
    if match["end"] and codes and not wrong:
        return codes, ""
    what = f"{', '.join(wrong)} is not a rule code" if wrong else "there are no codes in brackets"
    hint = "write `# lossscale: ignore[LS301] reason`"
    return (), f"this comment silences nothing: {what}; {hint}"


def mark_edits(
    program: Program, proposals: Iterable[Proposal]
) -> Iterator[tuple[cst.CSTNode, Edit]]:
    """The edits that mark manual findings, except where a statement has the comment already."""
    wanted: dict[cst.CSTNode, dict[str, str]] = {}
    for proposal in proposals:
        if proposal.outcome is Safety.MANUAL:
            statement = _statement(program, proposal.node)
            wanted.setdefault(statement, {}).setdefault(proposal.code, proposal.message)
    for statement, messages in wanted.items():
        present = _comments_above(program, statement)
        marks = {f"# TODO({code}):": message for code, message in messages.items()}
        missing = [f"{mark} {marks[mark]}" for mark in marks if mark not in present]
        if missing:
            yield statement, _marking(missing)


def _marking(comments: list[str]) -> Edit:
    def edit(old: cst.CSTNode) -> cst.CSTNode:
        lines = [cst.EmptyLine(comment=cst.Comment(comment)) for comment in comments]
        return old.with_changes(leading_lines=[*old.leading_lines, *lines])  # type: ignore[attr-defined]

    return edit


def _statement(program: Program, node: cst.CSTNode) -> cst.CSTNode:
    """The innermost statement around `node` that can have comment lines above it."""
    for above in program.ancestors(node):
        if isinstance(above, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            parent = program.parents.get(above)
            is_elif = isinstance(parent, cst.If) and parent.orelse is above
            if not is_elif:
                return above
    raise AssertionError("a node outside a statement")


def _comments_above(program: Program, statement: cst.CSTNode) -> str:
    # Every statement has leading lines, but LibCST's types give them to no common base.
    found = [line.comment.value for line in statement.leading_lines if line.comment]  # type: ignore[attr-defined]
    parent = program.parents.get(statement)
    if isinstance(parent, cst.Module) and parent.body[0] is statement:
        found += [line.comment.value for line in parent.header if line.comment]
    return "\n".join(found)
