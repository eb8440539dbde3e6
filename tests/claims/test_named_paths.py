"""Every path, module, symbol, rule code, target and environment that a text names exists."""

import ast
import functools
import re
from typing import Iterable, List, Set

import pytest
from documents import ROOT, Text, config, everything, files, markdown, matching, name_of, place
from tf_lossscale_codemods.rules.codes import codes

from tf_lossscale import _paths

EXAMPLES = {
    "*_pb2.py": "a pattern for a user's repository",
    "src/train.py": "a user's script",
    "train.py": "a user's script",
    "amp.py": "a module of a user's project",
    "use.py": "a module of a user's project",
    "repositories/*/": "repositories that a user has",
    "runs.html": "a page that a user has written",
    "optimization.py": "BERT's",
    "cond/": "a scope in names of variables",
    "codemods/rules/v1/v1_step_loss_scale.py": "the file that CONTRIBUTING.md adds",
    "examples/traces/NAME.jsonl": "NAME stands for several",
    "examples/NAME.py": "likewise",
    ".venv-test/bin/python": "made by make",
    "pyvenv.cfg": "every virtual environment has one",
}
"""Paths in texts that are not of this repository, and why."""

ADDED = "tfls.train.experimental.StepLossScale"
"""The class that CONTRIBUTING.md adds as an example."""

ADDED_CODE = ("CONTRIBUTING.md", "LS206")
"""The code of its rule."""

RETIRED = {"LS306", "LS307", "LS911"}
"""Codes of rules that are gone. Only the list of changes names them, and no other rule gets one."""

WITH_OWN_CODES = re.compile(r"tests/(codemods|claims|package)/")
"""Tests have rules and codes of their own."""

GENERATED = ("out/", "site/")
"""Written by `make`."""

INTERNAL = ("BRIEF", "CONTRACT", "DEFECTS", "FACTS", "HOUSE", "STYLE")
"""Documents that are not in the repository: nobody can look anything up there."""

_PATH = re.compile(
    r"(?<![\w/.~$*@:-])((?:[\w.*-]+/)+[\w.*-]*|[\w*-]+\.(?:py|md|ini|cfg|toml|sh|html))(?![\w/*])"
)
_SOURCE = (".py", ".md", ".html", "/")


@functools.lru_cache(maxsize=None)
def existing() -> Set[str]:
    """Each file, and each folder with a slash at its end."""
    found = set()
    for path in files():
        found.add(name_of(path))
        found |= {name_of(folder) + "/" for folder in path.parents if ROOT in folder.parents}
    return found


def wrong_paths(texts: Iterable[Text]) -> List[str]:
    top = {path.name for path in ROOT.iterdir()}
    wrong = []
    for text in texts:
        for match in _PATH.finditer(text.text):
            path = match[0].rstrip(".")
            if text.text[: match.start()].endswith(("\n--- ", "\n+++ ")):  # in a diff
                path = path[2:]
            first = path.partition("/")[0]
            # Below a folder at the top it is a path from there; else the end of one.
            from_top = "/" in path.rstrip("/") and first in top
            ours = from_top or path.endswith(_SOURCE) or "/" not in path
            if path in EXAMPLES or path.startswith(GENERATED) or not ours or first in ("**", "*"):
                continue
            if not (is_there(path) if from_top else ends_one(path, text.file)):
                wrong.append(f"{place(text, match.start())}: {path}")
    return wrong


def is_there(path: str) -> bool:
    if "*" in path:
        return any(ROOT.glob(path))
    return path in existing() or path + "/" in existing()


def ends_one(path: str, file: str) -> bool:
    if path.startswith("../"):
        return (ROOT / file).parent.joinpath(path).exists()
    return any(known == path or known.endswith("/" + path) for known in existing())


_DOTTED = re.compile(r"(?<![\w./-])(tf_lossscale(?:_codemods)?|tfls)((?:\.\w+)+)")


def wrong_names(texts: Iterable[Text]) -> List[str]:
    def is_wrong(_, match):
        return match[0] != ADDED and not _is_a_name(match[1], match[2][1:].split("."))

    return matching(texts, _DOTTED, is_wrong)


def _is_a_name(package: str, parts: List[str]) -> bool:
    folder = ROOT / ("codemods" if package.endswith("_codemods") else "tf_lossscale")
    namespaces = {**_paths.NAMESPACES, **{k: _paths.NAMESPACES[v] for k, v in _paths.VIEWS.items()}}
    for length in range(len(parts), 0, -1):
        namespace = ".".join(parts[:length])
        if any((known + ".").startswith(namespace + ".") for known in namespaces):
            rest = parts[length:]
            own = bound_in(folder.joinpath(*parts[:length], "__init__.py"))
            return not rest or rest[0] in {"__all__", *namespaces.get(namespace, {}), *own}
    for length in range(len(parts) + 1):
        path = folder.joinpath(*parts[:length])
        module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        rest = parts[length:]
        if module.exists() and (not rest or rest[0] in bound_in(module)):
            return True
    return False


@functools.lru_cache(maxsize=None)
def bound_in(module) -> Set[str]:
    """Names that a module binds at its top."""
    names: Set[str] = set()
    if not module.exists():
        return names
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def wrong_documents(texts: Iterable[Text]) -> List[str]:
    return matching(texts, rf"\b({'|'.join(INTERNAL)})\b(?!_)", lambda *_: True)


def targets() -> Set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))


def environments() -> Set[str]:
    return set(config("tox.ini")["tox"]["env_list"].split())


def wrong_targets(texts: Iterable[Text]) -> List[str]:
    known = {"make": targets(), "tox -e": environments()}
    named = r"`(make|tox -e) ([a-z][\w.-]*)"
    return matching(texts, named, lambda _, match: match[2] not in known[match[1]])


def wrong_variables(texts: Iterable[Text]) -> List[str]:
    """Environment variables of ours that no program reads."""
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [*files(".py"), ROOT / ".ci" / "run", ROOT / "tox.ini", ROOT / "Makefile"]
    )

    def is_wrong(_, match):
        return not re.search(rf"""["']{match[0]}["']""", code)

    return matching(texts, r"\b(?:TF_LOSSSCALE|TFLS)_[A-Z_]+\b", is_wrong)


def wrong_codes(texts: Iterable[Text]) -> List[str]:
    known = [code.code for code in codes()]

    def is_wrong(text, match):
        return (
            not WITH_OWN_CODES.match(text.file)
            and (text.file, match[0]) != ADDED_CODE
            and not (text.file == "CHANGELOG.md" and match[0] in RETIRED)
            and not any(code.startswith(match[0]) for code in known)
        )

    return matching(texts, r"\bLS\d+\b", is_wrong)


def wrong_braces(texts: Iterable[Text]) -> List[str]:
    """Symbols in `tf.namespace.{A, B}` that the namespace does not have."""
    return [
        f"{place(text, match.start())}: {name}"
        for text in texts
        for match in re.finditer(r"`tf\.([\w.]+)\.\{([^}]*)\}", text.text)
        for name in match[2].split(", ")
        if name not in _paths.NAMESPACES.get(match[1], ())
    ]


def test_every_path_that_is_named_exists():
    assert wrong_paths(everything()) == []


def test_every_module_and_symbol_that_is_named_exists():
    assert wrong_names(everything()) == []


def test_every_code_that_is_named_exists():
    assert wrong_codes(everything()) == []
    assert not RETIRED & {code.code for code in codes()}


def test_symbols_in_braces_exist():
    assert sum(text.text.count(".{") for text in markdown()) >= 3
    assert wrong_braces(markdown()) == []


def test_no_text_cites_a_document_that_is_not_here():
    assert wrong_documents(everything()) == []


def test_every_target_and_environment_that_is_named_exists():
    assert wrong_targets(everything()) == []


def test_every_environment_variable_that_is_named_is_read():
    assert wrong_variables(everything()) == []


def test_every_example_is_used():
    text = "\n".join(text_of_page.text for text_of_page in everything())
    assert [example for example in EXAMPLES if example not in text] == []


@pytest.mark.parametrize(
    ("check", "claim"),
    [
        (wrong_paths, "see `tests/shim/test_not_there.py`"),
        (wrong_paths, "see test_not_there.py"),
        (wrong_paths, "see [that](docs/not-there.md)"),
        (wrong_paths, "the folder `not_there/`"),
        (wrong_names, "`tf_lossscale._core.loss_scales.HalfScale`"),
        (wrong_names, "`tf_lossscale_codemods.engine.stages`"),
        (wrong_names, "`tfls.keras.mixed_precision.LossScaleManager`"),
        (wrong_names, "`tfls.contrib.nothing`"),
        (wrong_documents, "as HOUSE says"),
        (wrong_targets, "run `make everything`"),
        (wrong_variables, "set TFLS_NOT" + "_READ"),
        (wrong_targets, "run `tox -e tf9.9-py37`"),
        (wrong_codes, "see LS999"),
        (wrong_codes, "see LS7"),
        (wrong_codes, "see LS1010"),
        (wrong_braces, "`tf.contrib.mixed_precision.{LossScale}`"),
    ],
)
def test_a_wrong_claim_is_found(check, claim):
    text = Text("docs/made-up.md", 1, f"# Made up\n\n{claim}\n")
    assert [problem.split(": ")[0] for problem in check([text])] == ["docs/made-up.md:3"]
