"""Comments that silence findings, and those that mark them.

`# lossscale: ignore[CODE,...] reason` silences what is on its line, and what is on a line on which
a bracket was opened that is closed on its line: it may stand behind the last line of a call.
`# TODO(CODE): ...` is what `--mark` adds above each manual finding, once.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ..model import Finding, Options, Safety
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import Proposal
from .render import LONGEST_LINE, Place, Rendered

__all__ = ["UNUSED_CODE", "Suppressions", "mark_edits", "may_suppress"]

UNUSED_CODE = "LS900"
_WORD = "lossscale:"
_COMMENT = re.compile(r"#\s*lossscale:\s*ignore(?P<list>\s*\[(?P<codes>[^\]]*)(?P<end>\])?)?", re.I)
_MARK = re.compile(r"#\s*TODO\(LS[0-9]+\):")  # a comment of `--mark`, which can quote the syntax
_CODE = re.compile(r"LS[0-9]*\Z")


def may_suppress(source: bytes) -> bool:
    """Whether `source` may contain a suppression comment."""
    return _WORD.encode() in source.lower()


class _Suppression(NamedTuple):
    """A suppression comment.

    Attributes:
      line: the line, from 1.
      column: the column, from 1.
      codes: the code prefixes to silence; `("",)` (all codes) for a comment without codes.
      problem: why the comment is invalid; then it silences nothing.
      end_column: the column after the comment.
      text: the line.
      opened: the lines on which the brackets were opened that are closed on its line.
    """

    line: int
    column: int
    codes: tuple[str, ...]
    problem: str = ""
    end_column: int = 0
    text: str = ""
    opened: tuple[int, ...] = ()


class Suppressions:
    """The suppression comments of one program, and which of their codes have silenced something."""

    def __init__(self, texts: Sequence[Optional[Rendered]]) -> None:
        self._found: dict[tuple[int, int], _Suppression] = {}
        self._used: set[tuple[int, int, str]] = set()
        for index, text in enumerate(texts):
            if text is not None and _WORD in text.text.lower():
                for suppression in _suppressions(text.text):
                    self._found[index, suppression.line] = suppression

    def silence(self, code: str, place: Place) -> bool:
        """Whether a comment at `place` silences `code`; marks the comment as used."""
        silenced = False
        for (source, line), found in self._found.items():
            if source == place.source and any(
                place.line <= one <= place.end_line for one in (line, *found.opened)
            ):
                for prefix in found.codes:
                    if code.startswith(prefix):
                        self._used.add((source, line, prefix))
                        silenced = True
        return silenced

    def unused(self, options: Options, path: str) -> list[tuple[int, Finding]]:
        """Returns a finding for each comment that is invalid or has a code that silenced nothing.

        Codes that `--select` or `--ignore` turned off are not reported.
        """
        if not options.selects(UNUSED_CODE):
            return []
        findings = []
        for (source, line), found in self._found.items():
            idle = [
                prefix
                for prefix in found.codes
                if (source, line, prefix) not in self._used and _looked_for(prefix, options)
            ]
            if found.problem:
                findings.append((source, _finding(path, found, found.problem)))
            elif idle:
                named = "" if idle == [""] else f" for {', '.join(idle)}"
                message = f"this comment silences nothing{named}; remove it or fix its codes"
                findings.append((source, _finding(path, found, message)))
        return findings


def _looked_for(prefix: str, options: Options) -> bool:
    """Whether all rules with this prefix were active."""
    if options.select and not prefix.startswith(options.select):
        return False
    return not any(prefix.startswith(one) or one.startswith(prefix) for one in options.ignore)


def _finding(path: str, found: _Suppression, message: str) -> Finding:
    return Finding(
        path=path,
        line=found.line,
        column=found.column,
        code=UNUSED_CODE,
        symbol="lossscale: ignore",
        outcome=Safety.MANUAL,
        applied=False,
        message=message,
        end_line=found.line,
        end_column=found.end_column,
        text=found.text,
    )


def _suppressions(code: str) -> list[_Suppression]:
    found = []
    brackets: list[int] = []
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.OP and token.string in "([{":
                brackets.append(token.start[0])
            elif token.type == tokenize.OP and token.string in ")]}" and brackets:
                opened.append(brackets.pop())
            elif token.type in (tokenize.NL, tokenize.NEWLINE):
                opened.clear()
            match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if match is not None and not _MARK.match(token.string):
                line, column = token.start
                comment = _read(match, line, column + match.start() + 1)
                end = comment.column + len(match[0])
                found.append(
                    comment._replace(end_column=end, text=_shown(token.line), opened=tuple(opened))
                )
    except (tokenize.TokenError, SyntaxError):
        pass  # the tokenizer rejects some sources that LibCST accepts
    return found


def _shown(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) < LONGEST_LINE else ""


def _read(match: re.Match[str], line: int, column: int) -> _Suppression:
    if match["list"] is None:
        return _Suppression(line, column, ("",))
    codes = tuple(part.strip().upper() for part in match["codes"].split(",") if part.strip())
    wrong = [code for code in codes if not _CODE.match(code)]
    if match["end"] and codes and not wrong:
        return _Suppression(line, column, codes)
    what = f"{', '.join(wrong)} is not a rule code" if wrong else "there are no codes in brackets"
    hint = "write `# lossscale: ignore[LS301] reason`"
    return _Suppression(line, column, (), f"this comment silences nothing: {what}; {hint}")


def mark_edits(program: Program, manual: Iterable[Proposal]) -> dict[cst.CSTNode, list[Edit]]:
    """Returns the edits that add the comments, except where a statement already has them."""
    wanted: dict[cst.CSTNode, dict[str, str]] = {}
    for one in manual:
        if one.outcome is Safety.MANUAL:
            statement = _statement(program, one.node)
            wanted.setdefault(statement, {}).setdefault(one.code, one.message)
    edits: dict[cst.CSTNode, list[Edit]] = {}
    for statement, messages in wanted.items():
        present = _comments_above(program, statement)
        missing = [
            f"# TODO({code}): {message}"
            for code, message in messages.items()
            if f"# TODO({code}):" not in present
        ]
        if missing:
            edits[statement] = [_marking(missing)]
    return edits


def _marking(comments: list[str]) -> Edit:
    def edit(old: cst.CSTNode) -> object:
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
