"""Every rule code that a text names is the code of a rule, and every prefix the start of one."""

import re
from typing import Iterable, List

import pytest
from documents import Text, everything, place
from tf_lossscale_codemods.rules.codes import codes

MADE_UP = re.compile(r"tests/(codemods|claims|package)/")
"""Tests have rules and codes of their own."""

ADDED = {("CONTRIBUTING.md", "LS206")}
"""The code of the rule that a page adds as an example."""


RETIRED = {"LS306", "LS307", "LS911"}
"""Codes of rules that are gone. Only the list of changes names them, and no other rule gets one."""


def wrong_codes(texts: Iterable[Text]) -> List[str]:
    known = [code.code for code in codes()]
    return [
        f"{place(text, match.start())}: {match[0]}"
        for text in texts
        if not MADE_UP.match(text.file)
        for match in re.finditer(r"\bLS\d+\b", text.text)
        if (text.file, match[0]) not in ADDED
        if text.file != "CHANGELOG.md" or match[0] not in RETIRED
        if not any(code.startswith(match[0]) for code in known)
    ]


def test_every_code_that_is_named_exists():
    assert wrong_codes(everything()) == []


def test_a_retired_code_stays_reserved():
    assert not RETIRED & {code.code for code in codes()}


@pytest.mark.parametrize("code", ["LS999", "LS7", "LS1010"])
def test_a_code_that_no_rule_has_is_found(code):
    assert wrong_codes([Text("docs/made-up.md", 1, f"see {code}")]) == [
        f"docs/made-up.md:1: {code}"
    ]
