"""Every command line of the documentation is one that works, and every option is documented."""

import itertools
import json
import re
import shlex
import shutil
from typing import Iterable, Iterator, List, Set, Tuple

import pytest
from command_parsers import WITH_OPTIONS, actions, entry_point, options, parse
from documents import ROOT, Text, blocks, config, markdown, matching, place, prose
from test_named_paths import EXAMPLES, environments, targets
from tf_lossscale_codemods.cli import command as codemods, settings

import tf_lossscale
from tf_lossscale._versions.releases import CANDIDATES, RELEASES

PAGES = {
    "migrate": "docs/migrate.md",
    "explain": "docs/migrate.md",
    "run": "docs/drop-in.md",
    "record": "docs/prove.md",
    "show": "docs/compare.md",
    "compare": "docs/compare.md",
    "checkpoint inspect": "docs/checkpoints.md",
    "checkpoint convert": "docs/checkpoints.md",
}
"""Where the options of a sub-command are documented."""

NOT_OURS = {
    "--batch_size": "of a user's script",
    "--steps": "of the scripts of the guides",
    "--model-dir": "of examples/guide-tf1/train.py",
    "--loss-scale": "of examples/guide-tf1/train.py",
    "--path": "of examples/guide-keras/train.py",
    "--inplace": "of tf_upgrade_v2",
    "--intree": "of tf_upgrade_v2",
    "--reportfile": "of tf_upgrade_v2",
    "--no-deps": "of pip",
    "--no-binary": "of pip",
    "--global": "of git",
    "--add": "of git",
}

GUIDES = ("docs/guide-tf1.md", "docs/guide-keras.md")
"""Their commands stand after a prompt, `(old) $`; test_guides.py runs them."""

IN_GUIDES = (
    "cd",
    "cp",
    "git",
    "pip",
    "python3.7",
    "python3.8",
    "python3.9",
    "python3.12",
    "rm",
    "tar",
    "tf_upgrade_v2",
)
"""Programs of others that they use."""

_COMMAND = re.compile(r"(tf-lossscale|make|pip|python3?|tox|\.ci/run)(\s|$)")
_PROMPT = re.compile(r"^(\(\w+\) )?\$ ")
_USAGE = re.compile(r"[\[\]|…]")


def read(name: str) -> Text:
    return Text(name, 1, (ROOT / name).read_text(encoding="utf-8"))


def pages() -> List[Text]:
    return [text for text in markdown() if not text.file.startswith(("tests/", "docs/rules/"))]


def command_lines(texts: Iterable[Text]) -> Iterator[Tuple[str, str, bool]]:
    """Place, command line and whether it stands for itself, as it does in a block of its own."""
    for text in texts:
        for block in blocks(text):
            if block.language:
                continue
            lines = block.code.splitlines()
            prompted = _PROMPT.match(lines[0]) is not None
            for number, line in enumerate(lines, block.line):
                if _PROMPT.match(line) or (line.strip() and not prompted):
                    yield f"{text.file}:{number}", _PROMPT.sub("", line), True
        plain = prose(text)
        for match in re.finditer(r"`([^`\n]+)`", plain):
            if _COMMAND.match(match[1]):
                yield place(text, match.start()), match[1], False


def wrong_commands(texts: Iterable[Text]) -> List[str]:
    found = []
    for where, line, whole in command_lines(texts):
        words = shlex.split(line, comments=True)
        if where.startswith(GUIDES) and words[0] in IN_GUIDES:
            continue
        error = _wrong(words, whole)
        if error:
            found.append(f"{where}: {line}: {error}")
    return found


def _wrong(words: List[str], whole: bool) -> str:
    if words[:3] == ["python", "-m", "tf_lossscale"]:
        words = ["tf-lossscale", "run", *words[3:]]
    program, *rest = words
    if program == ".venv-test/bin/python":  # made by make
        program = "python"
    check = {
        "tf-lossscale": _wrong_use,
        "make": lambda rest, _: "no such target" if set(rest) - targets() else "",
        "pip": _wrong_pip,
        "python": _wrong_script,
        "tox": _wrong_tox,
        ".ci/run": lambda rest, _: "takes no arguments" if rest else "",
    }.get(program)
    return "no such command" if check is None else check(rest, whole)


def _wrong_pip(rest: List[str], _: bool) -> str:
    setup = config("setup.cfg")
    for word in rest[1:]:
        name, _, extra = word.rstrip("]").partition("[")
        if name not in (setup["metadata"]["name"], "show"):
            return f"{name} is not this package"
        if extra and extra not in setup["options.extras_require"]:
            return f"no such extra: {extra}"
    return "" if rest[:1] in (["install"], ["show"]) else "neither install nor show"


def _wrong_script(rest: List[str], _: bool) -> str:
    scripts = [word for word in rest if not word.startswith("-")]
    if not scripts or scripts[0] in EXAMPLES or "-m" in rest:
        return ""
    path = ROOT / scripts[0]
    if path.is_dir() and (path / "__main__.py").exists():
        known = {script.stem for script in path.glob("*.py")}
        if path.name == "versions":
            known = {".versions", *(release.name for release in RELEASES + CANDIDATES)}
        return "" if set(scripts[1:]) <= known else "no such part"
    return "" if path.is_file() else "no such script"


def _wrong_tox(rest: List[str], _: bool) -> str:
    if not rest:
        return ""
    if rest[0] != "-e" or rest[1] not in environments():
        return "no such environment"
    return "" if all((ROOT / path).exists() for path in rest[3:]) else "no such test"


def _wrong_use(words: List[str], whole: bool) -> str:
    """What is wrong with a use of our command; placeholders and alternatives are tried out."""
    usage = any(_USAGE.search(word) for word in words)
    words = [re.sub(r"[\[\]]", "", word) for word in words if word not in ("[options]", "…")]
    if words and words[0] == "COMMAND":
        return ""
    for arguments in itertools.product(*[word.split("|") for word in words]):
        if arguments[:1] == ("--print-completion",) and arguments[1] in ("bash", "zsh", "tcsh"):
            continue
        error = "" if arguments[-1:] in (("--help",), ("--version",)) else parse(list(arguments))[0]
        # In a sentence a command may be named without all its arguments.
        if error and not ((usage or not whole) and "required" in error):
            return error
    return ""


def of_benchmarks() -> Set[str]:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py")]
    return set(re.findall(r'add_argument\(\s*"(--[\w-]+)"', "\n".join(sources)))


def wrong_options(texts: Iterable[Text]) -> List[str]:
    known = (
        set.union(*options().values())
        | {"--version", "--print-completion"}
        | set(NOT_OURS)
        | of_benchmarks()
    )
    option = r"(?<![\w-])--[a-z][\w-]*"
    return matching(texts, option, lambda _, match: match[0] not in known)


def undocumented(command: str, page: str) -> List[str]:
    named = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", page))
    return [
        action.option_strings[0]
        for action in actions(command)
        if not named & set(action.option_strings)
    ]


def test_every_sub_command_is_known_here():
    _, parsers = parse(["doctor"])
    (command,) = [action for action in parsers[0]._actions if action.dest == "command"]
    assert set(command.choices) == {name.partition(" ")[0] for name in WITH_OPTIONS}


def test_every_command_line_is_accepted():
    assert wrong_commands(pages()) == []


def test_every_option_that_is_named_exists():
    assert wrong_options(pages()) == []


@pytest.mark.parametrize("command", options())
def test_every_option_is_documented(command):
    page = read(PAGES[command]).text if command in PAGES else ""
    assert undocumented(command, page) == []


@pytest.mark.parametrize(
    "line",
    [
        "tf-lossscale migrate --keras 4",
        "tf-lossscale migrate --rewrite",
        "tf-lossscale checkpoint convert SRC DST --to contrib|v2",
        "tf-lossscale run --fast train.py",
        "tf-lossscale upgrade",
        "make everything",
        "pip install tensorflow",
        "pip install 'tf-lossscale[gpu]'",
        "python tests/not_there.py",
        "python benchmarks nothing",
        "tox -e tf9.9-py37",
        "conda install tf-lossscale",
    ],
)
def test_a_wrong_command_is_found(line):
    text = Text("docs/made-up.md", 1, f"# Made up\n\n```\n{line}\n```\n")
    assert [problem.split(": ")[0] for problem in wrong_commands([text])] == ["docs/made-up.md:4"]


def test_wrong_and_missing_options_are_found():
    assert wrong_options([Text("docs/made-up.md", 1, "pass `--rewrite`")])
    assert undocumented("run", "It has no option.") == [
        "--replace",
        "--monitor",
        "--record",
        "--overwrite",
        "--no-norm",
        "--seed",
    ]


def settings_of(code: str, folder) -> dict:
    (folder / "pyproject.toml").write_text(code, encoding="utf-8")
    return settings.load([str(folder)]).values


def language_blocks(name: str, language: str) -> List[str]:
    return [block.code for block in blocks(read(name)) if block.language == language]


def test_the_settings_that_are_shown_are_all_there_are(tmp_path):
    (code,) = language_blocks("docs/migrate.md", "toml")
    assert {key.replace("_", "-") for key in settings_of(code, tmp_path)} == set(settings._KEYS)


def keys(value) -> set:
    """Of nested JSON: `{"a": [{"b": 1}]}` has `a` and `a.b`."""
    if isinstance(value, list):
        return set().union(*map(keys, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    below = {f"{key}.{inner_key}" for key, inner in value.items() for inner_key in keys(inner)}
    return set(value) | below


def report_on(source: str, folder, monkeypatch, capsys) -> dict:
    """What `migrate --report json` prints about a program."""
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text("import tensorflow as tf\n" + source)
    codemods.main(["migrate", "--jobs", "1", "--report", "json"])
    return json.loads(capsys.readouterr().out)


def test_the_comment_that_is_shown_silences_its_line(tmp_path, monkeypatch, capsys):
    (code,) = language_blocks("docs/migrate.md", "python")
    without = code.partition("#")[0] + "\n"
    found = report_on(without, tmp_path, monkeypatch, capsys)["findings"]
    assert [finding["code"] for finding in found] == re.findall(r"ignore\[(LS\d+)\]", code)
    assert report_on(code, tmp_path, monkeypatch, capsys)["findings"] == []


def test_the_json_report_that_is_shown_has_the_keys_of_a_real_one(tmp_path, monkeypatch, capsys):
    (code,) = language_blocks("docs/migrate.md", "json")
    source = "x = tf.keras.mixed_precision.experimental.LossScaleOptimizer(a, 'dynamic')\n"
    real = report_on(source, tmp_path, monkeypatch, capsys)
    assert real["findings"], "nothing to compare"
    assert keys(json.loads(code)) == keys(real)
    assert keys({"summary": {"files": 1}}) != keys(real)


OPTIMIZER = "tensorflow.keras.mixed_precision.experimental.LossScaleOptimizer"


def test_what_mark_leaves_without_a_comment(tmp_path, monkeypatch, capsys):
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cell["source"] = ["%timeit tf.contrib.tpu.CrossShardOptimizer(opt)\n"]
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    sources = {
        "a.ipynb": json.dumps(notebook),
        "b.yaml": f"optimizer: {OPTIMIZER}\n",
        "c.py": "import tensorflow as tf\n\nx = 1  # lossscale: ignore[LS501]\n",
    }
    for name, source in sources.items():
        (tmp_path / name).write_text(source)
    monkeypatch.chdir(tmp_path)
    codemods.main(["migrate", "--jobs", "1", "--mark", "--write", "--report", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["code"] for finding in found} == {"LS910", "LS912", "LS900"}
    assert {finding["outcome"] for finding in found} == {"manual"}
    assert {name: (tmp_path / name).read_text() for name in sources} == sources


def test_what_a_report_counts_and_warns_of(tmp_path, monkeypatch, capsys):
    """A line without a finding counts no configuration; no word of the search needs no parser."""
    (tmp_path / "a.yaml").write_text("optimizer: adam\n")
    (tmp_path / "b.yaml").write_text(f"optimizer: {OPTIMIZER}\n")
    (tmp_path / "unknown.py").write_text("def f(:\n")
    (tmp_path / "searched.py").write_text("def f(: LossScaleOptimizer\n")
    report = report_on("", tmp_path, monkeypatch, capsys)
    assert report["summary"]["files"] == 4
    assert [warning["path"] for warning in report["warnings"]] == ["searched.py"]
    assert report["errors"] == []


def test_the_guide_of_keras_says_why_its_loop_stays_on_the_shim(tmp_path, monkeypatch, capsys):
    """The section "Optional: remove the shim"."""
    shutil.copytree(ROOT / "examples" / "guide-keras", tmp_path / "example")
    monkeypatch.chdir(tmp_path / "example")
    codemods.main(["migrate", "--jobs", "1", "--keras", "3", "--unsafe", "--check"])
    assert "LS402 safe (unchanged)" in capsys.readouterr().out


def test_the_hook_that_is_shown_runs_a_command_of_this_version():
    (code,) = language_blocks("docs/ci.md", "yaml")
    assert re.findall(r"tf-lossscale==([\d.]+)", code) == [tf_lossscale.__version__]
    (entry,) = re.findall(r"entry: tf-lossscale (.*)", code)
    (arguments,) = re.findall(r"args: \[(.*)\]", code)
    assert not parse([*entry.split(), *arguments.split(", ")])[0]


def test_the_inspection_that_is_shown_is_what_is_printed(tmp_path, read_here, monkeypatch, capsys):
    (block,) = [b for b in blocks(read("docs/checkpoints.md")) if b.code.startswith("$ ")]
    line, *expected = block.code.splitlines()
    program, *words = shlex.split(line[2:])
    source = ROOT / "tests/data/fixtures/1.15.5/contrib.LossScaleOptimizer"
    (tmp_path / "logs").mkdir()
    for path in (source / "exponential_sgd_refvars" / "saver").iterdir():
        name = path.name.replace(path.name.partition(".")[0], "model.ckpt-7")
        shutil.copy(str(path), str(tmp_path / "logs" / name))
    monkeypatch.chdir(tmp_path)
    assert (program, entry_point()(words)) == ("tf-lossscale", 0)
    assert capsys.readouterr().out.splitlines() == expected


def test_the_optimizer_that_is_shown_is_what_is_printed(tmp_path, read_here, monkeypatch, capsys):
    (code,) = language_blocks("docs/checkpoints.md", "text")
    source = ROOT / "tests/data/fixtures/2.2.3/keras_experimental.LossScaleOptimizer"
    shutil.copytree(str(source / "model_dyn_checkpoint"), str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path)
    assert entry_point()(["checkpoint", "inspect", "run/ckpt-1"]) == 0
    assert code in capsys.readouterr().out


def test_the_json_of_an_inspection_has_the_keys_that_are_shown(read_here, capsys):
    (code,) = language_blocks("docs/checkpoints.md", "json")
    found = set()
    for fixture in (
        "1.15.5/contrib.LossScaleOptimizer/exponential_sgd_refvars/saver/model",
        "2.4.4/keras_final.LossScaleOptimizer/model_dyn_h5/model.h5",
        "2.2.3/keras_experimental.LossScaleOptimizer/model_dyn_checkpoint/ckpt-1",
    ):
        path = str(ROOT / "tests/data/fixtures" / fixture)
        entry_point()(["checkpoint", "inspect", "--json", path])
        found |= keys(json.loads(capsys.readouterr().out))
    of_class = (".settings.", ".slots.", ".hyperparameters.")  # other keys for each class
    shown = keys(json.loads(code))
    for part in of_class:
        shown, found = ({key for key in names if part not in key} for names in (shown, found))
    assert shown == found
