"""The pins in each kind of file, with their lines, and the versions that specifiers allow."""

import itertools

import pytest
from packaging.specifiers import SpecifierSet
from tf_lossscale_codemods.project.pins import has_pins, keras_of, pins_in

FILES = [
    ("requirements.txt", "numpy\ntensorflow==2.10  # last\n", [(2, 2, "tensorflow==2.10")]),
    (
        "requirements-dev.txt",
        "tensorflow[and-cuda]>=2.16 ; python_version>'3'",
        [(1, 3, "tensorflow>=2.16")],
    ),
    ("dev_requirements.in", "TF_Nightly == 2.18.0.dev1", [(1, 3, "TF_Nightly== 2.18.0.dev1")]),
    ("requirements/prod.txt", "keras<3\n", [(1, 2, "keras<3")]),
    ("prod.txt", "keras<3\n", None),
    ("requirements.txt", "-r prod.txt\n-c tensorflow==2.9\nkeras==3.1\n", [(3, 3, "keras==3.1")]),
    (
        "constraints.txt",
        "tensorflow-cpu==2.8.0 \\\n  --hash=sha256:00\nkeras==2.8 --hash=x\n",
        [(1, 2, "tensorflow-cpu==2.8.0"), (3, 2, "keras==2.8")],
    ),
    (
        "requirements.txt",
        "# tensorflow==2.10\ntensorflow\ntensorflow>=2.4\n-e .\ngit+https://x/tensorflow==2\n",
        [],
    ),
    ("requirements.txt", "tensorflow @ https://x/tensorflow-2.10.whl\ntensorflow-text==2.10\n", []),
    (
        "setup.cfg",
        "[metadata]\nname = tensorflow-thing\n[options]\ninstall_requires =\n    numpy\n"
        "    tensorflow<2.11\n[options.extras_require]\nnew = tensorflow>=2.17\n"
        "tensorflow = tensorflow==2.9\n",
        [(6, 2, "tensorflow<2.11"), (8, 3, "tensorflow>=2.17"), (9, 2, "tensorflow==2.9")],
    ),
    (
        "setup.py",
        "TF = ['tensorflow>=2.2,<2.9', 'x']\n"
        'setup(name=\'tensorflow\', extras_require={"k": ["keras==3.1"]},\n'
        "  install_requires='''\n  tf-keras\n  ''')\n"
        "setup(x=['tensorflow==' + V, 'tensorflow==%s' % V])\n"
        "setup(description='keras 2 for tensorflow models')\nprint 'python 2'\n(((\n",
        [(1, 2, "tensorflow>=2.2,<2.9"), (2, 3, "keras==3.1"), (4, 2, "tf-keras")],
    ),
    (
        "pyproject.toml",
        "[project]\ndependencies = [\n  'numpy',\n  'tensorflow>=2.16',\n]\n"
        "[project.optional-dependencies]\nold = ['tensorflow==2.9']\n"
        "[dependency-groups]\ntest = [{include-group = 'x'}, 'keras>=3']\n",
        [(4, 3, "tensorflow>=2.16"), (7, 2, "tensorflow==2.9"), (9, 3, "keras>=3")],
    ),
    (
        "pyproject.toml",
        "[tool.poetry.dependencies]\npython = '^3.9'\ntensorflow = '^1.15'\n"
        "[tool.poetry.group.x.dependencies]\nkeras = {version = '~2.6', optional = true}\n"
        "tf-keras = {git = 'x'}\n[tool.tf-lossscale]\nkeras = 3\nkeras=3\n",
        [(3, 2, "tensorflow^1.15"), (5, 2, "keras~2.6"), (6, 2, "tf-keras")],
    ),
    (
        "environment.yml",
        "name: x\ndependencies:\n  - python=3.9\n  - conda-forge::tensorflow=2.10.0=py39_0\n"
        '  - keras >=3\n  - pip:\n    - "tensorflow-cpu==2.8"  # pip\n',
        [(4, 2, "tensorflow=2.10.0=py39_0"), (5, 3, "keras>=3"), (7, 2, "tensorflow-cpu==2.8")],
    ),
    (
        "Pipfile",
        "[packages]\ntensorflow = '==2.10'\nkeras = '*'\n[dev-packages]\ntf-keras = '*'\n",
        [(2, 2, "tensorflow==2.10"), (5, 2, "tf-keras*")],
    ),
    (
        "Pipfile.lock",
        '{\n  "default": {\n    "tensorflow": {\n      "hashes": ["sha256:0"],\n'
        '      "index": "pypi",\n      "version": "==2.10.1"\n    },\n'
        '    "keras": {"git": "x"}, "numpy": {"version": "==1.2"}}}\n',
        [(3, 2, "tensorflow==2.10.1")],
    ),
    (
        "poetry.lock",
        '[[package]]\nname = "numpy"\nversion = "1.2"\n[[package]]\nname = "tensorflow"\n'
        'version = "2.16.1"\n[package.dependencies]\nkeras = "<3"\n'
        '[[package]]\nname = "keras"\nversion = "3.3.3"\n',
        [(5, 3, "tensorflow==2.16.1"), (10, 3, "keras==3.3.3")],
    ),
    ("pylock.toml", '[[packages]]\nname = "keras"\nversion = "2.8.0"\n', [(2, 2, "keras==2.8.0")]),
    (
        "conda-lock.yml",
        "package:\n- name: tensorflow\n  version: 2.10.0\n  manager: conda\n",
        [(2, 2, "tensorflow==2.10.0")],
    ),
]


@pytest.mark.parametrize(("path", "text", "found"), FILES)
def test_pins(path, text, found):
    assert has_pins(f"/project/{path}") is (found is not None)
    if found is not None:
        assert [pin[:3] for pin in pins_in(path, text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "a." * 200_000 + " = 1\n",
        "[" * 100_000,
        "tensorflow==2.10" + " " * 500_000 + "\n",
        ("tensorflow = {" + " version" * 240 + "\n") * 400,
        ('"keras' + " " * 1900 + "\n") * 400,
        "name = tensorflow\n" * 50_000,
        "name = tensorflow" + "\n" * 200_000,
        "'" * 200_000,
        "('keras" * 60_000,
        ("-" * 1990 + "\n") * 400,
    ],
    ids=range(10),
)
@pytest.mark.timeout(60)
def test_hostile_text_is_read_in_bounded_time(text):
    for name in ("pyproject.toml", "poetry.lock"):
        [pin[:3] for pin in pins_in(name, text)]


VERSIONS = [
    *(f"1.{minor}.0" for minor in range(15)),
    *("1.15.0", "1.15.9"),
    *(
        f"2.{minor}.{patch}"
        for minor in range(40)
        for patch in (0, 1, 2, 9)
        if (minor, patch) < (15, 2) or minor > 15
    ),
    *("3.0.0", "3.1.0", "4.0.0"),
]
NUMBERS = ["1.15", "2", "2.0", "2.4.1", "2.10.0", "2.15", "2.15.1", "2.16", "2.16.1", "2.18", "3"]
SINGLE = [
    *(f"{operator}{number}" for operator in ("==", "<", "<=", ">", ">=") for number in NUMBERS),
    *(f"~={number}" for number in NUMBERS if "." in number),
    *(f"=={number}.*" for number in NUMBERS[1:]),
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
        ("tensorflow", ">= 2.4, < 2.16", 2),
        ("tensorflow", ">=2.4,!=2.7.0,<2.16", 2),
        ("tensorflow", "(>=2.4,<2.11)", 2),
        ("tensorflow", "==2.16.0rc1", 3),
        ("tensorflow", "==2.10.1+nv22.12", 2),
        ("tensorflow", "==2.15.0.post1", 2),
        ("TensorFlow_CPU", "==2.9.*", 2),
        ("tensorflow-gpu", "<3", None),
        ("tf-nightly", "==2.17.0.dev20240312", 3),
        ("keras", "<3", 2),
        ("keras", "~=2.6", 2),
        ("keras", "==3.0.5", 3),
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
        ("keras", "^3.1", 3),
        # conda
        ("tensorflow", "=2.10", 2),
        ("tensorflow", "2.16.*", 3),
        # cannot be read
        ("tensorflow", "~2.9 || ~2.10", None),
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
