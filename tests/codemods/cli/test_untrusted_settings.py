"""The settings and file names of a repository cannot write or run anything, or use up resources."""

import json
import os
import random
import stat
import subprocess
import sys
import time

import pytest
from command_line import LEGACY, MANUAL, PROGRAM
from file_system import commit, git, snapshot
from tf_lossscale_codemods.cli import migrate
from tf_lossscale_codemods.files.printable import quoted, visible
from tf_lossscale_codemods.model import FileError
from tf_lossscale_codemods.reports import FORMATS, text
from tf_lossscale_codemods.run.results import FileOutcome, Summary

MODES = ([], ["--check"], ["--write", "--allow-dirty"])


@pytest.fixture
def victim(tmp_path):
    """A directory of the user, next to the repository."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    return outside


# Reports


def test_a_report_removes_what_a_killed_one_has_left(legacy, monkeypatch):
    os.mkdir("reports")
    with monkeypatch.context() as patched:  # as after a kill, nothing is renamed or removed
        patched.setattr(os, "replace", lambda *arguments, **more: None)
        assert legacy.run("migrate", "--report", "json:reports/report.json").status == 1
    (left,) = os.listdir("reports")
    assert left.startswith(".tf-lossscale-")
    assert legacy.run("migrate", "--report", "json:reports/report.json").status == 1
    assert os.listdir("reports") == ["report.json"]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "absolute") for name in sorted(FORMATS)),
        *(("json", how) for how in ("relative", "through a link", "in a linked folder")),
    ],
)
def test_no_setting_names_a_file_to_write(legacy, victim, mode, target, name):
    os.symlink(victim / "precious", "link")
    os.symlink(victim, "folder")
    file = {
        "absolute": str(victim / "precious"),
        "relative": "../outside/precious",
        "through a link": "link",
        "in a linked folder": "folder/precious",
    }[target]
    legacy.settings(f"report = [{json.dumps(name + ':' + file)}]")
    before = snapshot(victim, legacy.directory)
    ran = legacy.run("migrate", *mode)
    assert ran.status == 2
    assert "pyproject.toml:2: [tool.tf-lossscale] report: names a file" in ran.err
    assert f"allowed on the command line only: --report {name}:FILE" in ran.err
    assert snapshot(victim, legacy.directory) == before


def test_a_report_of_the_command_line_follows_no_link(legacy, victim):
    os.symlink(victim / "precious", "report.json")
    os.symlink(victim / "new", "dangling.json")
    os.symlink(victim, "folder")
    before = snapshot(victim)
    for name in ("report.json", "dangling.json"):
        ran = legacy.run("migrate", "--report", f"json:{name}")
        assert ran.status == 2
        assert "is a symbolic link; name the file that it leads to" in ran.err
        assert os.path.islink(name)
    for folder in ("folder", os.path.join(os.getcwd(), "folder"), "./x/../folder"):
        ran = legacy.run("migrate", "--report", f"json:{folder}/precious")
        assert ran.status == 2
        assert "symbolic links below the working directory are not followed" in ran.err
    assert snapshot(victim) == before


def test_a_report_leaves_the_other_names_of_a_file_alone(legacy, victim):
    earlier = victim / "earlier.json"
    assert legacy.run("migrate", "--report", f"sarif:{earlier}").status == 1
    before = earlier.read_bytes()
    os.link(earlier, "report.json")
    assert legacy.run("migrate", "--report", "json:report.json").status == 1
    assert earlier.read_bytes() == before
    assert json.loads(legacy.path("report.json").read_bytes())["version"] == 1


def test_a_report_takes_the_place_of_an_old_one_when_it_is_whole(legacy, monkeypatch):
    assert legacy.run("migrate", "--report", "sarif:report.json").status == 1
    old = legacy.path("report.json").read_text()

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    ran = legacy.run("migrate", "--report", "json:report.json")
    assert ran.status == 2
    assert "--report json:report.json: no space left on device" in ran.err
    assert sorted(os.listdir()) == ["a.py", "report.json"]
    assert legacy.path("report.json").read_text() == old


def test_a_report_has_the_mode_of_a_new_file(command_line):
    command_line.path("new").write_text("x")
    command_line.run("migrate", "--report", "json:report.json")
    assert os.stat("report.json").st_mode == os.stat("new").st_mode


def test_a_report_goes_to_the_null_device(legacy):
    assert legacy.run("migrate", "--report", "json:/dev/null").status == 1
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_report_goes_to_a_pipe_that_is_read(legacy):
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    for name in ("pipe", "link"):
        assert legacy.run("migrate", "--report", f"json:{name}").status == 2
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert legacy.run("migrate", "--report", "json:pipe").status == 1
        assert json.loads(os.read(reader, 1 << 16))["version"] == 1
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system has no such links")
@pytest.mark.parametrize("name", ["stdout", "fd/1", "out"])
def test_a_report_goes_to_an_open_file_behind_what_is_there(legacy, name):
    """As root, a report to /dev/stdout replaced the link of the machine by a file."""
    os.mkdir("dev")
    os.symlink("/proc/self/fd/1", "dev/stdout")
    os.symlink("/proc/self/fd", "dev/fd")
    os.symlink("stdout", "dev/out")
    with open("output", "w", encoding="utf-8") as output:
        output.write("before\n")
        output.flush()
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, "migrate", "--report", f"json:dev/{name}"],
            stdout=output,
            check=False,
        )
    assert ran.returncode == 1
    text = legacy.path("output").read_text()
    assert text.startswith("before\n")
    assert '"version": 1' in text
    assert all(os.path.islink(f"dev/{link}") for link in ("stdout", "fd", "out"))


# Where settings come from


def test_the_search_ends_at_the_top_of_the_work_tree(command_line):
    command_line.write(repository__src__a=LEGACY)
    command_line.settings('exclude = ["*"]')
    assert command_line.run("migrate", "repository/src").status == 0
    git("init", "-q", "repository")
    assert command_line.run("migrate", "repository/src").status == 1
    command_line.settings('exclude = ["*"]', "repository/pyproject.toml")
    assert command_line.run("migrate", "repository/src").status == 0


def test_the_search_ends_at_the_working_directory(command_line, monkeypatch):
    command_line.write(project__src__a=LEGACY)
    command_line.settings('exclude = ["*"]')
    monkeypatch.chdir(command_line.directory / "project")
    assert command_line.run("migrate").status == 1
    assert command_line.run("migrate", "src").status == 1
    # From elsewhere, it is the directory that was named alone.
    monkeypatch.chdir(command_line.path("elsewhere/x").parent)
    assert command_line.run("migrate", str(command_line.directory / "project")).status == 1
    assert command_line.run("migrate", str(command_line.directory)).status == 0


def foreign(path, monkeypatch):
    """Makes another user the owner of `path`, if this process may do so."""
    if os.geteuid() == 0:
        os.chown(path, 54321, 54321, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54321)


@pytest.mark.parametrize("link", [False, True])
def test_settings_of_another_user_are_refused(legacy, monkeypatch, link):
    legacy.settings("unsafe = true", "elsewhere.toml")
    if link:
        os.symlink("elsewhere.toml", "pyproject.toml")
    else:
        os.rename("elsewhere.toml", "pyproject.toml")
    foreign("pyproject.toml", monkeypatch)
    ran = legacy.run("migrate")
    assert ran.status == 2
    assert ran.err.startswith("tf-lossscale: error: pyproject.toml: belongs to another user (id ")
    assert ran.out == b""
    assert legacy.run("migrate", "--no-settings").status == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="writes files of root")
def test_settings_of_root_are_read(legacy, monkeypatch):
    legacy.settings('to = "shim"')
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert b"tfls" in legacy.run("migrate").out


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="changes owners, as root")
def test_a_job_in_a_container_reads_the_settings_where_git_works(legacy, monkeypatch, tmp_path):
    """The files belong to a user outside of the container, in which root runs the job."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    git("init", "-q")
    legacy.settings('to = "shim"')
    commit(".")
    for folder, names, files in os.walk("."):
        for name in [".", *names, *files]:
            os.chown(os.path.join(folder, name), 54321, 54321)
    says = "another user (id 54321), and git does not call it safe; add its directory to git's"
    legacy.fails(says=says)
    with open(".git/config", "a", encoding="utf-8") as file:  # of the repository itself
        file.write("[safe]\ndirectory = *\n")
    legacy.fails(says=says)
    assert legacy.run("migrate", "--no-settings").status == 1
    ran = legacy.run("migrate", "--settings", "pyproject.toml")
    assert (ran.status, b"tfls" in ran.out) == (1, True)
    git("config", "--global", "safe.directory", os.getcwd())
    before = snapshot(".")
    ran = legacy.run("migrate")
    assert (ran.status, ran.err, b"tfls" in ran.out) == (1, "", True)
    assert snapshot(".") == before
    assert legacy.run("migrate", "--write").status == 0
    assert os.stat("a.py").st_uid == 54321


def test_a_file_of_another_user_without_settings_is_no_error(legacy, monkeypatch):
    legacy.path("pyproject.toml").write_text("[project]\n")
    foreign("pyproject.toml", monkeypatch)
    assert legacy.run("migrate").status == 1


@pytest.mark.parametrize("target", ["fifo", "/dev/zero", "/proc/self/mem", "huge", "nothing"])
def test_what_is_no_ordinary_file_ends_with_an_error(legacy, target):
    if target == "fifo":
        os.mkfifo("pyproject.toml")
    elif target == "huge":
        with open("pyproject.toml", "wb") as file:
            file.write(b"[tool.tf-lossscale]\n")
            file.truncate(10**12)
    else:
        os.symlink(target, "pyproject.toml")
    ran = legacy.run("migrate", "--write")
    assert ran.status == 2
    assert ran.err.startswith("tf-lossscale: error: pyproject.toml: ")
    assert legacy.path("a.py").read_bytes() == LEGACY


# What settings can take


EXHAUSTING = {
    "arrays": ("a = " + "[" * 100_000, "is nested too deeply"),
    "tables": ("a = " + "{a=" * 100_000, "is nested too deeply"),
    "dots": (".".join("a" * 200_000) + " = 1", "too many parts"),
    "dots and line separators": ('"\u2028"."\u2028".' * 40_000 + "a = 1", "too many parts"),
    "header": ("[" + ".".join("a" * 200_000) + "]", "too many parts"),
    "digits": ("keras = " + "9" * 5_000, "error: pyproject.toml:"),
    "hex": ("keras = 0x" + "f" * 100_000, "[tool.tf-lossscale] keras: "),
    "long": ("to = '" + "x" * 400_000 + "'", "at most 200 strings of at most 200 characters"),
    "globs": ("exclude = [" + "'*',\n" * 201 + "]", "at most 200 strings"),
    "rules": ("select = [" + "'LS3',\n" * 201 + "]", "at most 200 strings"),
    "unknown rules": (f"ignore = ['{'LS8,' * 50}']", "unknown rule code LS8, LS8"),
    "glob": (f"exclude = ['{'*a' * 150}']", "at most 200 strings of at most 200 characters"),
}
"""Settings, and what is said of them."""


@pytest.mark.parametrize("name", EXHAUSTING)
def test_settings_that_exhaust_are_an_error_soon(command_line, name):
    lines, says = EXHAUSTING[name]
    command_line.write(a=LEGACY)
    command_line.settings(lines)
    started = time.process_time()
    ran = command_line.fails(says=says)
    assert len(ran.err) < 2_000
    assert time.process_time() - started < 20


@pytest.mark.parametrize("source", ["settings", "command line"])
def test_the_number_of_processes_is_bounded(command_line, monkeypatch, source):
    asked = []
    monkeypatch.setattr(migrate, "run", lambda request: asked.append(request.jobs) or 0)
    argv = []
    if source == "settings":
        command_line.settings("jobs = 1000000000")
    else:
        argv = ["--jobs", "1000000000"]
    assert command_line.run("migrate", *argv).status == 0
    assert 1 <= asked[0] <= 8 * (os.cpu_count() or 1)


# Names

NAMES = [
    (b"a\n::error ::x.py", '"a\\n::error ::x.py"'),
    (b"::error ::x.py", '"::error ::x.py"'),
    (b" ::stop-commands::x.py", '" ::stop-commands::x.py"'),
    (b"x##[error]y.py", '"x\\043#[error]y.py"'),
    (b"x##vso[y]z.py", '"x\\043#vso[y]z.py"'),
    (b"\x1b[2J\x07.py", '"\\033[2J\\a.py"'),
    (b"a\rb.py", '"a\\rb.py"'),
    (b'quote".py', '"quote\\".py"'),
    (b"back\\slash.py", '"back\\\\slash.py"'),
    (b"\xff\xfe.py", '"\\377\\376.py"'),
    ("\u202egnp.py".encode(), '"\\342\\200\\256gnp.py"'),
    ("\u2028.py".encode(), '"\\342\\200\\250.py"'),
    ("\x85.py".encode(), '"\\302\\205.py"'),
    ("\u00fc it's.py".encode(), "\u00fc it's.py"),
]


def unquoted(name: str) -> bytes:
    """The bytes of a C-style quoted name, read by git."""
    diff = f"diff --git {name} {name}\nnew file mode 100644\n--- /dev/null\n+++ {name}\n"
    diff += "@@ -0,0 +1 @@\n+x\n"
    ran = subprocess.run(
        ["git", "apply", "--numstat", "-z", "-p0"], input=diff.encode(), capture_output=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split(b"\t", 2)[2].rstrip(b"\0")


@pytest.mark.parametrize(("name", "shown"), NAMES, ids=[shown for _, shown in NAMES])
def test_names_are_quoted_so_that_git_reads_them(name, shown):
    assert quoted(os.fsdecode(name)) == shown
    assert visible(os.fsdecode(name)).isprintable()
    assert unquoted(shown) == name


@pytest.fixture
def hostile_names(command_line):
    for number, (name, _) in enumerate(NAMES):
        source = [LEGACY, MANUAL, b"tf.train.experimental.MixedPrecisionLossScaleOptimizer((\n"]
        with open(name, "wb") as file:
            file.write(source[number % 3])
    return command_line


COMMAND = r"(?m)^\s*::(?!(notice|warning|error) file=)|##"


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_name_reaches_an_output_as_it_is(hostile_names, name):
    import re

    ran = hostile_names.run("migrate", "--report", name, "-v")
    assert ran.status == 2
    out = ran.out.decode("utf-8")  # and that is strict
    for output in (out, ran.err) if name != "html" else (ran.err,):
        assert all(line.isprintable() for line in output.split("\n"))
        raw = name in ("json", "sarif", "github") and output is out
        assert raw or not re.search(COMMAND, output), output
    if name == "github":
        for line in out.splitlines()[:-2]:
            assert re.match(r"::(notice|warning|error) file=[^:,\r\n]*,", line)
    if name == "json":
        paths = {
            entry["path"] for part in ("findings", "errors") for entry in json.loads(out)[part]
        }
        not_utf8 = os.fsdecode(b"\xff\xfe.py")
        real = {os.fsdecode(path) for path, _ in NAMES} - {not_utf8}
        assert paths == {*real, quoted(not_utf8)}


def test_a_diff_shows_lines_as_they_are_and_check_shows_none(command_line):
    command_line.write(a=LEGACY + b'"""\n::error ::forged\n"""\n')
    assert b"\n ::error ::forged\n" in command_line.run("migrate").out
    ran = command_line.run("migrate", "--check")
    assert ran.status == 1
    assert b"forged" not in ran.out + ran.err.encode()


def test_the_diff_of_hostile_names_can_be_applied(hostile_names):
    diff = hostile_names.run("migrate").out
    before = hostile_names.bytes_on_disk()
    subprocess.run(["git", "apply", "-"], input=diff, check=True)
    applied = hostile_names.bytes_on_disk()
    assert applied != before
    for path, data in before.items():
        with open(path, "wb") as file:
            file.write(data)
    assert hostile_names.run("migrate", "--write").status == 2
    assert hostile_names.bytes_on_disk() == applied


def test_wrong_usage_shows_names_safely(command_line):
    ran = command_line.run("migrate", "--x\n::error ::y", "a\n::error ::z")
    assert ran.status == 2
    assert "\n::" not in ran.err
    ran = command_line.run("migrate", "a\n::error ::z")
    assert ran.status == 2
    assert "\n::" not in ran.err


# At random


VALUES = [
    *("true", "1", "-1", "1e999", "nan", "9223372036854775808", "1979-05-27T07:32:00Z"),
    *("[]", "[[]]", "{}", "'x'", "'LS3'"),
    *("[{a.b = 1}]", "['text:/etc/passwd']", "'json'", "'json:../outside/precious'"),
    *("['html:link', 'sarif:../outside/new']", '"\\u0000\\u001b"'),
    "['*', '**', '[', '[!', '[]-a]', '../..', '/', '', '\u202e']",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_random_settings_and_names_change_nothing_outside(command_line, victim, seed):
    rng = random.Random(seed)
    os.symlink(victim / "precious", "link")
    before = snapshot(victim)
    keys = ["to", "keras", "unsafe", "mark", "allow-dirty", "select", "ignore", "exclude", "report"]
    for _ in range(40):
        lines = [f"{rng.choice([*keys, 'jobs', 'x'])} = {rng.choice(VALUES)}" for _ in range(2)]
        data = bytearray("\n".join(["[tool.tf-lossscale]", *lines, ""]).encode())
        for _ in range(rng.choice([0, 0, 1, 3])):
            data[rng.randrange(len(data))] = rng.choice(b"\x00\n\"'[]{}=.#\xff a1\\")
        name = bytes(rng.choice(b'\x01\n\r\t\x1b"\\:#%, a\xc3\xbc\xff-') for _ in range(5)) + b".py"
        command_line.path("pyproject.toml").write_bytes(bytes(data))
        with open(name, "wb") as file:
            file.write(rng.choice([LEGACY, MANUAL, b"("]))
        argv = rng.choice([["--check"], [], ["--report", "github"], ["--write"]])
        ran = command_line.run("migrate", *argv)
        assert ran.status in (0, 1, 2)
        assert all(line.isprintable() for line in ran.err.split("\n")), ran.err
        assert "Traceback" not in ran.err
        assert not any(line.startswith("::") for line in ran.err.split("\n"))
        os.unlink(name)
    assert snapshot(victim) == before


@pytest.mark.parametrize("seed", range(4))
def test_random_names_are_quoted_so_that_git_reads_them(seed):
    rng = random.Random(seed)
    for _ in range(10):
        name = bytes(rng.randrange(1, 256) for _ in range(6)).replace(b"/", b"_") + b".py"
        shown = quoted(os.fsdecode(name))
        assert shown.isprintable()
        assert unquoted(shown) == name, shown


def test_messages_cannot_break_a_line():
    error = FileError("a.py", 1, "b\r\n::error ::c\x1b")
    assert text.problem_line("error", error) == "a.py:1: error: b\\r\\n::error ::c\\033"
    assert FileOutcome("a.py", error=error).error == error
    assert all(line.isprintable() for line in text.summary_lines(Summary(False)))
