"""The hand-written pages of the documentation stay short, and have no sentence to read twice."""

import re
from typing import List

import pytest
from documents import Text, markdown, prose

LIMIT = 17_000
"""Words of all hand-written pages together."""

RIDDLES = re.compile(r"\b(that of|those of|another one|which is so|of which)\b", re.IGNORECASE)
"""What made readers of earlier versions read a sentence twice."""


def pages() -> List[Text]:
    """The pages that are written by hand: the rules' pages and the reference are made from code."""
    return [text for text in markdown() if re.fullmatch(r"docs/[\w-]+\.md", text.file)]


def words(text: Text) -> int:
    """The words of prose and tables, each of which has a letter or a digit.

    Blocks of code do not count: they are commands, what these print, and programs, and tests run
    them. Neither do marks that stand alone, such as the bars of a table, nor comments, which no
    reader of the site sees.
    """
    seen = re.sub("<!--.*?-->", "", prose(text), flags=re.DOTALL)
    return sum(1 for word in seen.split() if re.search(r"\w", word))


def riddles(texts: List[Text]) -> List[str]:
    return [
        f"{text.file}: {match[0]}"
        for text in texts
        for match in RIDDLES.finditer(" ".join(text.text.split()))
    ]


def test_the_pages_stay_below_the_limit():
    found = {text.file: words(text) for text in pages()}
    assert len(found) > 20
    assert sum(found.values()) < LIMIT, found


def test_words_of_prose_and_tables_count():
    page = "# A page\n\nTwo words. `one`\n<!-- not these -->\n\n```\nnot these\n```\n"
    page += "\n| in | a cell |\n|---|---|\n"
    assert words(Text("docs/made-up.md", 1, page)) == 8


def test_no_page_has_a_riddle():
    texts = [text for text in markdown() if not text.file.startswith(("tests/", "benchmarks/"))]
    assert riddles(texts) == []


@pytest.mark.parametrize("sentence", ["The scale is that of Keras.", "Those of\nAdam differ."])
def test_a_riddle_is_found(sentence):
    assert riddles([Text("docs/made-up.md", 1, sentence)])
