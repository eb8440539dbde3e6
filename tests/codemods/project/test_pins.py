"""The pins in each kind of file, with their lines."""

import pytest
from tf_lossscale_codemods.project.pins import evidence_of, reader_of

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
    (
        "constraints.txt",
        "tensorflow-cpu==2.8.0 \\\n  --hash=sha256:00\n",
        [(1, 2, "tensorflow-cpu==2.8.0")],
    ),
    (
        "requirements.txt",
        "# tensorflow==2.10\ntensorflow\ntensorflow>=2.4\n-e .\ngit+https://x/tensorflow==2\n",
        [],
    ),
    ("requirements.txt", "tensorflow @ https://x/tensorflow-2.10.whl\ntensorflow-text==2.10\n", []),
    (
        "setup.cfg",
        "[metadata]\nname = tensorflow==2.1\n[options]\ninstall_requires =\n    numpy\n"
        "    tensorflow<2.11\n[options.extras_require]\nnew = tensorflow>=2.17\n",
        [(6, 2, "tensorflow<2.11"), (8, 3, "tensorflow>=2.17")],
    ),
    (
        "setup.py",
        "'tensorflow==2.1'\nTF = ['tensorflow>=2.2,<2.9', 'x']\n"
        'setup(name=\'tensorflow\', extras_require={"k": ["keras==3.1"]},\n'
        "  install_requires='''\n  tf-keras\n  ''')\n"
        "setup(x=['tensorflow==' + V, 'tensorflow==%s' % V])\n",
        [(2, 2, "tensorflow>=2.2,<2.9"), (3, 3, "keras==3.1"), (5, 2, "tf-keras")],
    ),
    (
        "setup.py",
        "setup(install_requires=['keras<3']\nprint 'python 2'\n(((\n",
        [(1, 2, "keras<3")],
    ),
    (
        "pyproject.toml",
        "[project]\ndependencies = [\n  'numpy',\n  'tensorflow>=2.16',\n]\n"
        "[project.optional-dependencies]\nold = ['tensorflow==2.9']\n"
        "[dependency-groups]\ntest = [{include-group = 'x'}, 'keras>=3']\n"
        "[tool.mypy]\ntensorflow = '==2.1'\n",
        [(4, 3, "tensorflow>=2.16"), (7, 2, "tensorflow==2.9"), (9, 3, "keras>=3")],
    ),
    (
        "pyproject.toml",
        "[tool.poetry.dependencies]\npython = '^3.9'\ntensorflow = '^1.15'\n"
        "[tool.poetry.group.x.dependencies]\nkeras = {version = '~2.6', optional = true}\n"
        "tf-keras = {git = 'x'}\n[tool.poetry.dev-dependencies]\n"
        "tensorflow-cpu = [{version = '2.9.1', python = '<3.9'}, {version = '2.17.0'}]\n",
        [
            (3, 2, "tensorflow^1.15"),
            (8, 2, "tensorflow-cpu 2.9.1"),
            (8, 3, "tensorflow-cpu 2.17.0"),
            (5, 2, "keras~2.6"),
            (6, 2, "tf-keras"),
        ],
    ),
    ("pyproject.toml", "project = 1\n[tool]\npoetry = []\n", []),
    ("pyproject.toml", "this is no TOML: tensorflow==2.10\n", []),
    (
        "environment.yml",
        "name: x\ndependencies:\n  - python=3.9\n  - conda-forge::tensorflow=2.10.0=py39_0\n"
        '  - keras >=3\n  - pip:\n    - "tensorflow-cpu==2.8"  # pip\n',
        [(4, 2, "tensorflow=2.10.0"), (5, 3, "keras>=3"), (7, 2, "tensorflow-cpu==2.8")],
    ),
    (
        "Pipfile",
        "[packages]\ntensorflow = '==2.10'\nkeras = '*'\n[dev-packages]\ntf-keras = '*'\n",
        [(2, 2, "tensorflow==2.10"), (5, 2, "tf-keras*")],
    ),
    (
        "Pipfile.lock",
        '{\n  "default": {\n    "tensorflow": {\n      "hashes": [],\n      "version": "==2.10.1"\n'
        '    },\n    "numpy": {\n      "version": "==1.2"\n}}}\n',
        [(3, 2, "tensorflow==2.10.1")],
    ),
    (
        "poetry.lock",
        '[[package]]\nname = "numpy"\nversion = "1.2"\n[[package]]\nname = "tensorflow"\n'
        'version = "2.16.1"\n[package.dependencies]\nkeras = "<3"\n',
        [(5, 3, "tensorflow==2.16.1")],
    ),
    ("uv.lock", '[[package]]\nname = "keras"\nversion = "3.3.3"\n', [(2, 3, "keras==3.3.3")]),
    ("pylock.toml", '[[packages]]\nname = "keras"\nversion = "2.8.0"\n', [(2, 2, "keras==2.8.0")]),
    (
        "conda-lock.yml",
        "package:\n- name: tensorflow\n  version: 2.10.0\n  manager: conda\n",
        [(2, 2, "tensorflow==2.10.0")],
    ),
]


@pytest.mark.parametrize(("path", "text", "found"), FILES)
def test_pins(path, text, found):
    reader = reader_of(path)
    if found is None:
        assert reader is None
        return
    evidence = evidence_of(path, text, reader)
    assert [(one.line, one.keras, one.words) for one in evidence] == found


@pytest.mark.parametrize(
    "text",
    [
        "a." * 200_000 + " = 1\n",
        "[" * 100_000,
        "x = " + "[" * 100_000,
        "tensorflow==2.10" + " " * 500_000 + "\n",
        '"tensorflow": {' + "\n" * 200_000,
        "name = tensorflow\n" * 50_000,
        "'" * 200_000,
        "('" * 100_000,
        "\\\n" * 100_000,
    ],
    ids=range(9),
)
def test_hostile_text_is_read_in_bounded_time(text):
    import time

    started = time.process_time()
    for name in ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "poetry.lock"):
        list(evidence_of(name, text, reader_of(name)))
    for name in ("Pipfile", "Pipfile.lock", "environment.yml"):
        list(evidence_of(name, text, reader_of(name)))
    assert time.process_time() - started < 30
