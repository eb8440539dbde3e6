"""Specifiers are read as pip, Poetry and conda read them."""

import itertools

import pytest
from packaging.specifiers import SpecifierSet
from tf_lossscale_codemods.project.specifiers import keras_of

VERSIONS = [
    *(f"1.{minor}.0" for minor in range(16)),
    *(f"2.{minor}.{patch}" for minor in range(15) for patch in range(3)),
    *("2.15.0", "2.15.1", "2.16.0", "2.16.1", "2.16.2", "2.17.0", "2.17.1"),
    *(f"2.{minor}.0" for minor in range(18, 40)),
    *("3.0.0", "3.1.0", "4.0.0"),
]
NUMBERS = ["1.15", "2", "2.0", "2.4.1", "2.10.0", "2.15", "2.15.1", "2.16", "2.16.1", "2.18", "3"]
SINGLE = [
    *(
        f"{operator}{number}"
        for operator in ("==", "!=", "<", "<=", ">", ">=")
        for number in NUMBERS
    ),
    *(f"~={number}" for number in NUMBERS if "." in number),
    *(f"{operator}{number}.*" for operator in ("==", "!=") for number in NUMBERS[1:]),
]
CLAUSES = [*SINGLE, *map(",".join, itertools.combinations(SINGLE[::3], 2))]


def by_packaging(specifier: str):
    allowed = SpecifierSet(specifier)
    sides = {
        3 if tuple(map(int, version.split("."))) >= (2, 16) else 2
        for version in VERSIONS
        if version in allowed
    }
    return sides.pop() if len(sides) == 1 else None


def test_pip_specifiers_decide_as_packaging_does():
    found = {specifier: keras_of("tensorflow", specifier) for specifier in CLAUSES}
    assert found == {specifier: by_packaging(specifier) for specifier in CLAUSES}
    assert set(found.values()) == {None, 2, 3}


@pytest.mark.parametrize(
    ("package", "specifier", "keras"),
    [
        ("tensorflow", "", None),
        ("tensorflow", "*", None),
        ("tensorflow", ">=2.4", None),
        ("tensorflow", ">= 2.4, < 2.16", 2),
        ("tensorflow", "(>=2.4,<2.11)", 2),
        ("tensorflow", ">2.15.1", 3),
        ("tensorflow", "==2.16.0rc1", 3),
        ("tensorflow", "==2.10.1+nv22.12", 2),
        ("tensorflow", "==2.15.0.post1", 2),
        ("TensorFlow_CPU", "==2.9.*", 2),
        ("tensorflow-gpu", "<3", None),
        ("tf-nightly", "==2.17.0.dev20240312", 3),
        ("keras", "<3", 2),
        ("keras", "~=2.6", 2),
        ("keras", ">=3,<4", 3),
        ("keras", ">2.15", 3),
        ("tf-keras", "", 2),
        ("tf_keras", "~=2.17", 2),
        # Poetry
        ("tensorflow", "^2.10", None),
        ("tensorflow", "^2.16", 3),
        ("tensorflow", "^1.15", 2),
        ("tensorflow", "~2.10", 2),
        ("tensorflow", "~2", None),
        ("tensorflow", "2.10.0", 2),
        ("tensorflow", ">=2.4 <2.11", 2),
        ("tensorflow", "~2.9 || ~2.10", 2),
        ("tensorflow", "~2.9 || ~2.17", None),
        ("keras", "^3.1", 3),
        # conda
        ("tensorflow", "=2.10", 2),
        ("tensorflow", "2.16.*", 3),
        ("tensorflow", "2.10|2.11", 2),
        # cannot be read
        ("tensorflow", "==", None),
        ("tensorflow", "==%s", None),
        ("tensorflow", "== 2.10 and more", None),
        ("tensorflow", "==2." + "9" * 180, None),
        ("tensorflow", "<2.16" + " " * 300, None),
        ("tensorflow-probability", "==0.20", None),
        ("numpy", "==1.0", None),
    ],
)
def test_specifiers(package, specifier, keras):
    assert keras_of(package, specifier) == keras


@pytest.mark.parametrize("text", ["2" + ".a" * 90, "=" * 200, "2.1" + "-a" * 90 + "!", "|" * 200])
def test_long_specifiers_take_no_time(text):
    assert keras_of("tensorflow", text) in (None, 2)
