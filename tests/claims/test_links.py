"""Every link of a Markdown file to this repository leads to a file, and every anchor to a heading.

`mkdocs build --strict` sees the pages of the documentation only.
"""

import re
from typing import Iterable, List, Set

import pytest
from documents import ROOT, Text, markdown, place, prose

_LINK = re.compile(r"\]\(([^)\s]*)\)")
_CODE = re.compile(r"`[^`\n]*`")


def wrong_links(texts: Iterable[Text]) -> List[str]:
    wrong = []
    for text in texts:
        plain = _CODE.sub(lambda match: " " * len(match[0]), prose(text))
        for match in _LINK.finditer(plain):
            target, _, anchor = match[1].partition("#")
            if target.startswith(("https://", "http://")):
                continue
            path = (ROOT / text.file).parent.joinpath(target).resolve() if target else None
            if path is not None and not path.exists():
                wrong.append(f"{place(text, match.start())}: no file {target}")
            elif anchor:
                page = text.text if path is None else path.read_text(encoding="utf-8")
                if anchor not in anchors(page):
                    wrong.append(f"{place(text, match.start())}: no heading {match[1]}")
    return wrong


def anchors(page: str) -> Set[str]:
    """Of the headings, as mkdocs and GitHub make them."""
    found: Set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(Text("", 1, page)), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words).strip())
        found.add(slug if slug not in found else f"{slug}_1")
    return found


def test_every_link_leads_somewhere():
    assert wrong_links(markdown()) == []


@pytest.mark.parametrize(
    "link",
    [
        "migrate.md#no-such-heading",
        "#no-such-heading",
        "not-there.md",
        "../not-there/",
        "api/x.md",
    ],
)
def test_a_link_that_leads_nowhere_is_found(link):
    text = Text("docs/made-up.md", 1, f"# Made up\n\nsee [that]({link})\n")
    assert [problem.split(": ")[0] for problem in wrong_links([text])] == ["docs/made-up.md:3"]
