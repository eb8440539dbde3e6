"""`# lossscale: ignore[CODE,...] reason`: comments that silence findings on their line.

Behind the last line of a statement, such a comment counts for its first line, too.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence
from typing import NamedTuple, Optional

from ..model import Finding, Options, Safety
from .render import LONGEST_LINE, Place, Rendered

__all__ = ["UNUSED_CODE", "Suppressions", "may_suppress"]

UNUSED_CODE = "LS900"
_WORD = "lossscale:"
_COMMENT = re.compile(r"#\s*lossscale:\s*ignore(?P<list>\s*\[(?P<codes>[^\]]*)(?P<end>\])?)?", re.I)
_MARK = re.compile(r"#\s*TODO\(LS[0-9]+\):")  # a comment of `--mark`, which can quote the syntax
_BETWEEN = (tokenize.COMMENT, tokenize.DEDENT, tokenize.INDENT, tokenize.NL)
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
      first: the first line of the statement that the comment ends; 0 if it ends none.
    """

    line: int
    column: int
    codes: tuple[str, ...]
    problem: str = ""
    end_column: int = 0
    text: str = ""
    first: int = 0


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
        """Whether a comment on a line of `place` silences `code`; marks the comment as used."""
        silenced = False
        lines = set(range(place.line, place.end_line + 1))
        lines |= {
            one.line
            for (source, _), one in self._found.items()
            if source == place.source and one.first == place.line
        }
        for line in sorted(lines):
            found = self._found.get((place.source, line))
            for prefix in found.codes if found is not None else ():
                if code.startswith(prefix):
                    self._used.add((place.source, line, prefix))
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
    found: list[_Suppression] = []
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if match is not None and not _MARK.match(token.string):
                line, column = token.start
                comment = _read(match, line, column + match.start() + 1)
                end = comment.column + len(match[0])
                found.append(comment._replace(end_column=end, text=_shown(token.line)))
            if token.type == tokenize.NEWLINE:
                if found and found[-1].line == token.start[0]:
                    found[-1] = found[-1]._replace(first=first)
                first = 0
            elif token.type not in _BETWEEN and not first:
                first = token.start[0]
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
