"""The command, through `main`: exit status, stdout, stderr and the bytes on disk."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_line import CLEAN, FINAL, LEGACY, MANUAL, PROGRAM
from file_system import git
from tf_lossscale_codemods.cli import command
from tf_lossscale_codemods.rules.codes import codes


def test_shows_a_diff_and_writes_nothing(command_line):
    command_line.write(a=LEGACY, b=CLEAN)
    before = command_line.bytes_on_disk()
    ran = command_line.run("migrate")
    assert ran.status == 1
    assert b"--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n" in ran.out
    assert b"+opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)\n" in ran.out
    assert b"\na.py:3:7: LS301 safe LossScaleOptimizer: " in ran.out
    first, second = ran.out.splitlines()[-2:]
    assert first == b"2 files checked: 1 to change, 0 failed, 1 safe, 0 unsafe, 0 manual"
    assert second == b"1 edit can be applied: add --write"
    assert ran.err == ""
    assert command_line.bytes_on_disk() == before


def test_no_code_of_a_repository_runs(command_line):
    leaves_a_trace = b"open('ran', 'w').close()\n"
    names = ("a", "setup", "conftest", "sitecustomize", "tensorflow", "libcst", "json", "package")
    for name in names:
        command_line.write(**{name: leaves_a_trace + LEGACY})
    # The working directory is in the path of `python -c`, and not in the path of `tf-lossscale`.
    as_installed = "import sys\nsys.path.remove('')\n" + PROGRAM
    for options in ([], ["--write"]):
        ran = subprocess.run(
            [sys.executable, "-c", as_installed, "migrate", "--jobs", "2", *options],
            capture_output=True,
            check=False,
        )
        assert ran.returncode == (0 if options else 1), ran.stderr
        assert not os.path.exists("ran")


def test_nothing_to_do_is_status_0(command_line):
    command_line.write(a=CLEAN)
    ran = command_line.run("migrate")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == b"1 file checked: 0 to change, 0 failed, 0 safe, 0 unsafe, 0 manual\n"


def test_the_commands_at_the_top_of_the_page_do_what_it_says(command_line):
    """In this order: a diff, the shim, the final API, and the check of a program on the shim."""
    page = (Path(__file__).parents[3] / "docs" / "migrate.md").read_text(encoding="utf-8")
    lines = re.findall(r"^tf-lossscale (migrate.*)$", page.partition("\n```\n\n")[0], re.MULTILINE)
    show, shim, final, check = (line.split() for line in lines)
    command_line.write(a=LEGACY)
    assert b"\n+opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)\n" in (
        command_line.run(*show).out
    )
    assert command_line.bytes_on_disk()["a.py"] == LEGACY
    assert command_line.run(*shim).status == 0
    on_the_shim = command_line.bytes_on_disk()["a.py"]
    assert b"tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, " in on_the_shim
    assert command_line.run(*check).status == 0
    assert command_line.run(*final).status == 0
    written = command_line.bytes_on_disk()["a.py"]
    assert b"tfls.keras.mixed_precision.LossScaleOptimizer(opt)\n" in written
    command_line.write(a=LEGACY)
    assert command_line.run(*check).status == 1
    assert command_line.bytes_on_disk()["a.py"] == LEGACY


def test_what_needs_a_tpu_is_reported_each_time_and_leaves_nothing_to_do(command_line):
    source = b"import tensorflow as tf\n\nopt = tf.contrib.tpu.CrossShardOptimizer(opt)\n"
    command_line.write(a=source)
    ran = command_line.run("migrate", "--write", "--mark")
    assert ran.status == 0
    assert b"a.py:3:7: LS501 safe CrossShardOptimizer: " in ran.out
    assert b"needs a TPU" in ran.out
    written = source.replace(b"contrib", b"compat.v1")
    for options in ([], ["--check"], ["--write"], ["--write", "--unsafe", "--mark"]):
        again = command_line.run("migrate", *options)
        assert again.status == 0
        assert b"a.py:3:7: LS501 safe (unchanged) CrossShardOptimizer: " in again.out
        assert b"--to shim" in again.out
        assert b": 0 rewritten" in again.out or b": 0 to change" in again.out
        assert command_line.bytes_on_disk() == {"a.py": written}
    silenced = written.replace(b"(opt)\n", b"(opt)  # lossscale: ignore[LS501] on TPUs only\n")
    command_line.write(a=silenced)
    assert b"LS" not in command_line.run("migrate").out
    (finding,) = json.loads(
        command_line.run("migrate", "--to", "shim", "--report", "json", "-", stdin=written).err
    )["findings"]
    assert (finding["outcome"], finding["applied"]) == ("safe", True)


@pytest.mark.parametrize("options", [[], ["--check"], ["--write"]], ids=["diff", "check", "write"])
def test_a_manual_finding_alone_is_status_1(command_line, options):
    command_line.write(a=MANUAL)
    ran = command_line.run("migrate", *options, "--select", "LS906")
    assert ran.status == 1
    assert b"a.py:3:13: LS906 manual" in ran.out
    assert command_line.bytes_on_disk() == {"a.py": MANUAL}


def test_failures_are_status_2_and_the_other_files_are_written(command_line):
    command_line.write(a=b"from tensorflow.keras import mixed_precision\ndef f(:\n", b=LEGACY)
    ran = command_line.run("migrate", "--write", "nope", ".")
    assert ran.status == 2
    path, syntax = sorted(ran.err.splitlines(), reverse=True)
    assert path == "nope: error: does not exist; check the spelling and the working directory"
    assert syntax.startswith("a.py:2: error: cannot be parsed: ")
    assert syntax.endswith("; fix the syntax error, or --exclude the file")
    assert command_line.bytes_on_disk()["b.py"] == FINAL


def test_a_crash_of_the_parser_costs_one_file(command_line, monkeypatch):
    from tf_lossscale_codemods.engine import transform as engine

    real = engine.FileWork

    def transform(source, options, path, *more):
        if b"# bad" in source:
            # Sent to the process, it would end it when another thread gets it: some jobs later.
            signal.pthread_kill(threading.get_ident(), signal.SIGSEGV)
        return real(source, options, path, *more)

    monkeypatch.setattr(engine, "FileWork", transform)
    command_line.write(a=LEGACY + b"# bad\n", b=LEGACY, c=LEGACY)
    ran = command_line.run("migrate", "--write", "--jobs", "1")
    assert ran.status == 2
    assert "a.py: error: could not be processed: its worker ended by a stack overflow" in ran.err
    assert command_line.bytes_on_disk()["b.py"] == FINAL
    assert command_line.bytes_on_disk()["c.py"] == FINAL


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("migrate --to nowhere", "invalid choice: 'nowhere'"),
        ("migrate --keras 4", "invalid choice: '4'"),
        ("migrate --jobs 0", "argument --jobs: '0' must be a whole number, 1 or more"),
        ("migrate --jobs x", "argument --jobs: 'x' must be a whole number, 1 or more"),
        ("migrate --time-limit x", "argument --time-limit: 'x' must be a number"),
        ("migrate --select LS777", "unknown rule code LS777; see `tf-lossscale rules`"),
        ("migrate --select LS399", "unknown rule code LS399; did you mean LS301, "),
        ("migrate --ignore SL501", "unknown rule code SL501; did you mean LS501"),
        ("migrate --ignore E501", "unknown rule code E501"),
        ("migrate --report xml", "unknown report format 'xml'; the formats are text, json, sarif"),
        ("migrate --report json:", "'json:' has no file name"),
        ("migrate --report json --report sarif", "only one --report can go to stdout"),
        ("migrate --report json:no/where.json", "the directory does not exist"),
        ("migrate --report sarif:a.py", "--report sarif:a.py: would replace a source file"),
        ("migrate a.py --report json:./a.py", "this is a.py, which is checked; name another file"),
        ("migrate --report json:r --report sarif:./r", "the file of --report json:r; name another"),
        ("migrate --report json:r --baseline r", "this is the file of --baseline; name another"),
        ("migrate --report json:r --write-baseline r", "this is the file of --write-baseline"),
        ("migrate --write --check", "--write cannot be combined with --check or -"),
        ("migrate - a.py", "- (stdin) cannot be combined with other paths"),
        ("migrate --stdin-filename a.py", "--stdin-filename requires -"),
        ("migrate --no-such-option", "unrecognized arguments: --no-such-option\n"),
        ("migrate --wirte .", "unrecognized arguments: --wirte; did you mean --write?"),
        ("migrate --exlude=x", "unrecognized arguments: --exlude=x; did you mean --exclude?"),
        ("migrate --to fnal", "invalid choice: 'fnal'"),
        ("explain LS777", "unknown rule code LS777; see `tf-lossscale rules`"),
        ("explain LS399", "unknown rule code LS399; did you mean LS301"),
        ("nonsense", "invalid choice"),
        ("", "tf-lossscale: error: a command is required"),
        ("", "rewrite files and trees"),
    ],
)
def test_wrong_usage_is_status_2(legacy, words, says):
    ran = legacy.run(*words.split())
    assert ran.status == 2
    assert says in ran.err
    assert ran.out == b""
    if words:
        error, hint = ran.err.splitlines()
        assert error.startswith("tf-lossscale")
        assert re.fullmatch(r"see `tf-lossscale.* --help`", hint)
    assert legacy.bytes_on_disk() == {"a.py": LEGACY}


def test_a_tree_without_files_to_check_gives_a_warning(command_line):
    command_line.path("notes.txt").write_text("")
    command_line.path("venv/x.py").write_bytes(LEGACY)
    ran = command_line.run("migrate")
    assert ran.status == 0
    assert ran.err.startswith("tf-lossscale: warning: no files to check in .; -v shows what was")
    command_line.write(a=CLEAN)
    assert command_line.run("migrate").err == ""
    assert "warning" not in command_line.run("migrate", "nope").err


def test_options_reach_the_engine(legacy):
    ran = legacy.run("migrate", "--to", "shim")
    assert b"+opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer" in ran.out
    ran = legacy.run("migrate", "--keras", "3")
    assert b"+opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)" in ran.out
    assert legacy.run("migrate", "--select", "LS1,LS2").status == 0
    assert legacy.run("migrate", "--select", "LS1", "--select", "LS301").status == 1
    assert legacy.run("migrate", "--ignore", "LS3").status == 0
    assert legacy.run("migrate", "--select", "LS3", "--ignore", "LS301").status == 0


def test_unsafe_edits_need_the_option(command_line):
    source = b"import tensorflow as tf\n\nx = tf.contrib.mixed_precision.FixedLossScaleManager(8)\n"
    command_line.write(a=source)
    ran = command_line.run("migrate")
    assert b", 0 unsafe, " in ran.out
    assert b"+x = tfls.contrib.mixed_precision.FixedLossScaleManager(8)\n" in ran.out
    ran = command_line.run("migrate", "--unsafe")
    assert b", 1 unsafe, " in ran.out
    assert b"+x = tf.compat.v1.mixed_precision.FixedLossScale(8)\n" in ran.out


def test_mark_leaves_a_comment_once(command_line):
    command_line.write(a=MANUAL)
    first = command_line.run("migrate", "--mark", "--write", "--select", "LS906")
    assert first.status == 1
    marked = command_line.bytes_on_disk()["a.py"]
    assert marked.count(b"# TODO(LS906): ") == 1
    assert re.search(rb"^# TODO\(LS906\): .*\nis_scaled = ", marked, re.MULTILINE)
    command_line.run("migrate", "--mark", "--write", "--select", "LS906")
    assert command_line.bytes_on_disk()["a.py"] == marked


def test_exclude_leaves_paths_out(command_line):
    command_line.write(a=LEGACY, gen__b=LEGACY, src__gen__c=LEGACY, src__d_pb2=LEGACY)
    ran = command_line.run("migrate", "--write", "--exclude", "gen", "--exclude", "*_pb2.py")
    assert ran.status == 0
    changed = {path for path, found in command_line.bytes_on_disk().items() if found == FINAL}
    assert changed == {"a.py"}


def test_an_empty_path_has_a_name_in_the_error(command_line):
    ran = command_line.fails("--check", "", says="'': error: does not exist; check the spelling")
    assert ran.err.startswith("''")


def test_exclude_counts_for_named_files_too(legacy):
    assert legacy.run("migrate", "a.py", "--exclude", "a.py").status == 0


def test_verbose_reports_why_each_file_was_left_unchanged(command_line):
    command_line.write(
        a=LEGACY,
        b=CLEAN,
        c=b"from tensorflow.keras import mixed_precision\n",
        d=LEGACY,
        venv__e=LEGACY,
        f__g=LEGACY,
    )
    git("init", "-q")
    command_line.path(".gitignore").write_text("d.py\n")
    command_line.path("f/pyvenv.cfg").write_text("")
    ran = command_line.run("migrate", "-v")
    assert sorted(ran.err.splitlines()) == [
        ".git: unchanged: belongs to a version control system",
        "b.py: unchanged: no legacy name in it",
        "c.py: unchanged: no symbol to migrate in it: its names are not TensorFlow's, or migrated "
        "already",
        "d.py: unchanged: is ignored by git",
        "f: unchanged: is a virtual environment (has a pyvenv.cfg)",
        "target: Keras 2 (tensorflow 2.15.1 is installed)",
        "venv: unchanged: is a virtual environment (by its name)",
    ]
    assert b"3 files checked" in ran.out


@pytest.mark.parametrize(
    ("symbol", "options", "why"),
    [
        (
            "contrib.tpu.CrossShardOptimizer",
            ["--to", "shim"],
            "its names are those of the shim already",
        ),
        (
            "keras.mixed_precision.LossScaleOptimizer",
            ["--keras", "3"],
            "its names are those of the shim already",
        ),
        (
            "contrib.mixed_precision.FixedLossScaleManager",
            [],
            "its contrib classes stay on the shim: nothing else has their behavior; see --unsafe",
        ),
    ],
)
def test_verbose_reports_why_symbols_stay_on_the_shim(command_line, symbol, options, why):
    command_line.write(a=f"import tf_lossscale as tfls\n\nx = tfls.{symbol}(y)\n".encode())
    ran = command_line.run("migrate", "-v", *options)
    assert (ran.status, ran.err.splitlines()[-1]) == (0, f"a.py: unchanged: {why}")


def test_stdin_gives_the_result_on_stdout_and_the_report_on_stderr(command_line):
    ran = command_line.run("migrate", "-", "--stdin-filename", "src/a.py", stdin=LEGACY)
    assert ran.status == 1
    assert ran.out == FINAL
    assert "src/a.py:3:7: LS301" in ran.err
    assert command_line.bytes_on_disk() == {}


@pytest.mark.parametrize("source", [CLEAN, b"", b"\xef\xbb\xbfx = 1\r\n"], ids=repr)
def test_stdin_that_needs_nothing_comes_back(command_line, source):
    ran = command_line.run("migrate", "-", stdin=source)
    assert (ran.status, ran.out) == (0, source)


def test_rules_lists_each_code_once(command_line):
    ran = command_line.run("rules")
    codes = [line.split()[0] for line in ran.out.decode().splitlines()]
    assert ran.status == 0
    assert codes == sorted(set(codes))
    assert {"LS101", "LS301", "LS900"} <= set(codes)


def test_explain_takes_codes_and_prefixes(command_line):
    codes = [line.split()[0] for line in command_line.run("rules").out.decode().splitlines()]
    ran = command_line.run("explain", "LS501", "ls3", "LS301,LS4")
    found = re.findall(r"^(LS\d+): ", ran.out.decode(), re.MULTILINE)
    assert found == [code for code in codes if code.startswith(("LS501", "LS3", "LS4"))]
    ran = command_line.run("explain", "LS301", "LS777")
    assert (ran.status, ran.out) == (2, b"")


def test_explain_shows_the_examples_of_each_rule(command_line):
    example = re.compile(r"^  (\S.*) \(--to .*\):$", re.MULTILINE)
    for code in codes():
        ran = command_line.run("explain", code.code)
        text = ran.out.decode()
        assert (ran.status, ran.err) == (0, "")
        assert text.startswith(code.code)
        assert set(example.findall(text)) == {
            example_of_rule.id for example_of_rule in code.rule.examples
        }


def start(*argv, code=PROGRAM, **options):
    return subprocess.Popen([sys.executable, "-c", code, *argv], **options)


def test_runs_without_tensorflow(legacy):
    missing = "import sys\nsys.modules['tensorflow'] = sys.modules['numpy'] = None\n"
    assert start("migrate", "--write", "--keras", "2", code=missing + PROGRAM).wait() == 0
    assert legacy.bytes_on_disk()["a.py"] == FINAL


def test_a_reader_that_has_seen_enough_is_no_traceback(command_line):
    for number in range(16):
        command_line.write(**{f"a{number}": LEGACY * 20})
    process = start("migrate", "--jobs", "1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 2


def shown_on_a_terminal(stream, *argv, code=PROGRAM, **environment) -> bytes:
    """The output of a run with one of its streams connected to a terminal."""
    pty = pytest.importorskip("pty", reason="terminals are a matter of POSIX")
    ours, theirs = pty.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    process = start(*argv, code=code, env={**os.environ, "TERM": "xterm", **environment}, **streams)
    os.close(theirs)
    shown = b""
    try:
        while True:
            shown += os.read(ours, 65536)
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    assert process.wait() == 1
    return shown


def test_a_progress_bar_on_a_terminal(command_line):
    for number in range(4):
        command_line.write(**{f"a{number}": LEGACY})
    at_once = "from tf_lossscale_codemods.cli.terminal import Messages\n" + "".join(
        f"Messages.{name} = 0.0\n" for name in ("_QUIET_SECONDS", "_EVERY_SECONDS")
    )
    code = PROGRAM.replace("sys.exit(main())", at_once + "sys.exit(main())")
    shown = shown_on_a_terminal("stderr", "migrate", "--check", "--jobs", "1", code=code)
    assert b"of 4 files [##" in shown
    assert shown.endswith(b"\r\x1b[K")


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({"NO_COLOR": ""}, True), ({}, False), ({"NO_COLOR": "", "TERM": "dumb"}, False)],
)
def test_colors_on_a_terminal_unless_they_are_turned_off(legacy, environment, colored):
    assert os.environ["NO_COLOR"] == "1"
    shown = shown_on_a_terminal("stdout", "migrate", **environment)
    assert b"+opt = " in shown
    assert (b"\x1b[32m+opt = " in shown) == colored


def test_report_and_diff_do_not_mix(legacy):
    ran = legacy.run("migrate", "--report", "json")
    assert json.loads(ran.out)["summary"]["changed"] == 1
    ran = legacy.run("migrate", "--report", "json:report.json")
    assert b"@@" in ran.out
    assert b"1 file checked" in ran.out
    with open("report.json", encoding="utf-8") as file:
        assert json.load(file)["summary"]["changed"] == 1


def test_only_quiet_silences_the_text(legacy):
    text = legacy.run("migrate", "--check").out
    for form in ("json", "sarif", "github", "html", "text"):
        ran = legacy.run("migrate", "--check", "--report", f"{form}:report")
        assert (ran.status, ran.out, ran.err) == (1, text, "")
        ran = legacy.run("migrate", "--quiet", "--report", f"{form}:report")
        assert (ran.status, ran.out, ran.err) == (1, b"", "")
        assert b"LS301" in legacy.bytes_on_disk()["report"]
    assert json.loads(legacy.run("migrate", "--quiet", "--report", "json").out)["findings"]
    ran = legacy.run("migrate", "-", "--quiet", stdin=LEGACY)
    assert (ran.status, ran.out, ran.err) == (1, FINAL, "")
    legacy.settings('report = ["text"]')
    assert legacy.run("migrate", "--quiet").out == b""
    legacy.write(bad=LEGACY + b"(")
    ran = legacy.run("migrate", "--quiet")
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err.startswith("bad.py:4: error: ")


def test_main_takes_the_arguments_of_the_process(command_line, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["anything", "rules"])
    assert command.main(prog="elsewhere") == 0
