"""Every claim of a page that is written by hand names the tests that prove it.

A block of prose (a paragraph, an item of a list, a table) ends with a comment, which readers of the
site do not see: `<!-- tests/shim/keras/test_final.py::test_weights -->`. Several are separated by
commas. In place of a test, a comment may name the page that proves the claim (`docs/keras.md`), or
say why there is nothing to prove: `advice` (an instruction), `outline` (what the page contains), or
`by hand: ...` (what a machine without GPU or TPU cannot test). The identifiers of the rows of
known-differences.md, such as C1, are names, not proofs.

A block needs no comment if it links to its source on the web, or only introduces what follows it.
"""

import ast
import functools
import re
from typing import Iterator, List, NamedTuple, Set

import pytest
from documents import ROOT, Text, markdown

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")
_SILENT = re.compile(r"^(?:#|</?[a-z])")
"""Lines that claim nothing: headings and HTML."""

_CODE = "(code)"
_WORDS = re.compile(r"advice|outline|by hand: \w.+", re.DOTALL)
_IDENTIFIERS = re.compile(r"[A-Z]\d+(?:,[A-Z]\d+)*")


class Claim(NamedTuple):
    """A block of prose: where it starts, what it says, what proves it, and what follows it."""

    file: str
    line: int
    text: str
    proofs: List[str]
    introduces: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text[:60]}"


def claims(page: Text) -> List[Claim]:
    """The blocks of a page, but its headings and code."""
    chunks = list(_chunks(page.text))
    found = []
    for position, (line, text) in enumerate(chunks):
        if text == _CODE:
            continue
        words = _COMMENT.sub("", text).strip()
        proofs = [
            proof.strip()
            for comment in _COMMENT.findall(text)
            if not _IDENTIFIERS.fullmatch(comment)
            for proof in re.split(r",\s+(?=tests/|docs/)", comment.strip())
        ]
        if not words and found:
            found[-1].proofs.extend(proofs)
        elif words:
            follows = position + 1 < len(chunks)
            introduces = (
                words.rstrip("*").endswith(":") and follows and _goes_on(chunks[position + 1][1])
            )
            found.append(Claim(page.file, line, words, proofs, introduces))
    return found


def _chunks(text: str) -> Iterator["tuple[int, str]"]:
    """The line and text of each block, code and comments that stand alone included."""
    plain = _FENCE.sub(lambda match: "\n" + _CODE + "\n" * match[0].count("\n"), text)
    plain = _COMMENT.sub(lambda match: match[0].replace("\n", "\r"), plain)
    lines: List[str] = []
    start = 1
    for number, line in enumerate([*plain.split("\n"), ""], 1):
        ends = not line.strip() or _SILENT.match(line.strip()) or line == _CODE
        if lines and (
            ends or _ITEM.match(line) or line.startswith("|") != lines[-1].startswith("|")
        ):
            yield start, "\n".join(lines)
            lines = []
        if line == _CODE:
            yield number, _CODE
        elif not ends:
            start = start if lines else number
            lines.append(line)


def _goes_on(text: str) -> bool:
    """Whether a block is what a sentence before it can introduce."""
    return text == _CODE or text.startswith("|") or _ITEM.match(text) is not None


@functools.lru_cache(maxsize=None)
def _functions(file: str) -> Set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _is_proof(proof: str) -> bool:
    file, _, function = proof.partition("::")
    if function:
        return (
            (ROOT / file).is_file() and file.startswith("tests/") and function in _functions(file)
        )
    if file.startswith("docs/"):
        return (ROOT / file).is_file()
    return _WORDS.fullmatch(proof) is not None


def unproven(page: Text) -> List[str]:
    """The claims of a page without a proof, and those whose proof is not there."""
    return [
        str(claim) if not claim.proofs else f"{claim} <!-- {proof} -->"
        for claim in claims(page)
        if claim.proofs or not (claim.introduces or "https://" in claim.text)
        for proof in claim.proofs or [""]
        if not _is_proof(proof)
    ]


def _pages() -> List[Text]:
    return [text for text in markdown() if re.fullmatch(r"docs/[\w-]+\.md|README\.md", text.file)]


@pytest.mark.parametrize("page", _pages(), ids=lambda page: page.file)
def test_each_claim_names_its_tests(page):
    assert unproven(page) == []


def test_the_pages_are_found():
    assert len(_pages()) > 20


@pytest.mark.parametrize(
    "block",
    [
        "It is so.",
        "- It is so.",
        "1. It is so.\n2. So is this.\n   <!-- advice -->",
        "| a | b |\n|---|---|\n| it | is so |",
        "It is so:\n\nAnd this.\n<!-- outline -->",
        "It is so.\n<!-- because -->",
        "- It is so. <!--K1,K2-->",
        "It is so.\n<!-- tests/claims/test_proofs.py::test_that_is_not_there -->",
        "It is so.\n<!-- tests/claims/not_there.py::test_it -->",
        "It is so.\n<!-- docs/not-there.md -->",
    ],
)
def test_a_claim_without_a_proof_is_found(block):
    page = Text("docs/made-up.md", 1, f"# Made up\n\n{block}\n")
    assert len(unproven(page)) == 1


@pytest.mark.parametrize(
    "block",
    [
        "It is so.\n<!-- tests/claims/test_proofs.py::test_a_claim_without_a_proof_is_found -->",
        "It is so.\n<!-- tests/claims/test_proofs.py::claims,\n     docs/keras.md -->",
        "- It is so.\n  <!-- by hand: a TPU, or two GPUs -->",
        "**So:**\n\n- So is this. <!--K1,K2-->\n  <!-- advice -->",
        "| a | b |\n|---|---|\n| it | is so |\n\n<!-- docs/keras.md -->",
        "It is so ([source](https://example.org)).",
        "It prints:\n\n```\nso\n```\n\n## A heading\n\n<details markdown>\n</details>",
        "It is:\n\n- so\n  <!-- advice -->",
    ],
)
def test_a_claim_with_a_proof_passes(block):
    assert unproven(Text("docs/made-up.md", 1, f"# Made up\n\n{block}\n")) == []
