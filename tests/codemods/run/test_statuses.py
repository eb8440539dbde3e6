"""Every failure gives a status and one line; streams and ends are those of real processes."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from command_line import FINAL, LEGACY, PROGRAM
from tf_lossscale_codemods.cli import migrate, request
from tf_lossscale_codemods.engine import transform as engine

from tf_lossscale._process import guarded

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="says how Linux does it")
POSIX = pytest.mark.skipif(os.name != "posix", reason="streams and signals of POSIX")

# In a worker, which is forked: what `act` does for each file that holds "# bad".
ACTS = """
import os, sys, time
from tf_lossscale_codemods.engine import transform as engine
real = engine.FileWork
def transform(source, options, path, *more):
    if b"# bad" in source:
        with open(f"worker-{{os.getpid()}}", "w") as file:
            file.write("busy")
        {act}
    return real(source, options, path, *more)
engine.FileWork = transform
sys.exit(main())
"""
CLOSED = "stdout is closed; redirect it to /dev/null to discard the output"
SLEEPS = "time.sleep(300)"
# For years, and never back in Python, or asleep.
NEVER_ENDS = f"""if b"# native" in source:
            import re
            re.match("(a+)+$", "a" * 60 + "b")
        {SLEEPS}"""
SLEEPING, NATIVE = LEGACY + b"# bad\n", LEGACY + b"# bad, # native\n"


def few(processes: int, has_threads: bool, last: str = "sys.exit(main())") -> str:
    """The command where the system allows only so many further processes, and perhaps no thread."""
    limits = f"""
import errno, os, threading
fork = os.fork
left = {processes}
def forks():
    global left
    left -= 1
    if left < 0:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return fork()
os.fork = forks
if not {has_threads}:
    def refuse(thread):
        raise RuntimeError("can't start new thread")
    threading.Thread.start = refuse
"""
    return PROGRAM.replace("sys.exit(main())", limits + last)


def program(act: str) -> str:
    return PROGRAM.replace("sys.exit(main())", ACTS.format(act=act))


def run(*argv, before="", code=PROGRAM, **environment):
    """A run started by a shell, after the command `before` or with redirections."""
    shell = f'{before} exec "$@"' if before.endswith(";") else f'exec "$@" {before}'
    return subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", code, *argv],
        capture_output=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )


def lines(ran) -> list:
    assert b"Traceback" not in ran.stderr, ran.stderr.decode()
    return ran.stderr.decode().splitlines()


def busy_workers(directory, count: int) -> list:
    """The ids of the workers, as many as there are, that are processing a bad file."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = [name for name in os.listdir(directory) if name.startswith("worker-")]
        if len(found) == count:
            return [int(name.partition("-")[2]) for name in found]
        time.sleep(0.02)
    raise AssertionError("no worker has begun")


def has_ended(pid: int) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":  # ended, though nobody has asked how
            return True
        time.sleep(0.02)
    return False


class TestLimits:
    @LINUX
    def test_time(self, command_line):
        command_line.write(a=LEGACY, native=NATIVE, sleeping=SLEEPING, z=LEGACY)
        limits = ("--jobs", "2", "--time-limit", "3")
        ran = run("migrate", "--write", *limits, code=program(NEVER_ENDS))
        assert ran.returncode == 2
        late = "error: took more than 3 seconds; raise --time-limit, or --exclude it"
        assert lines(ran) == [f"native.py: {late}", f"sleeping.py: {late}"]
        found = command_line.bytes_on_disk()
        assert (found["a.py"], found["z.py"]) == (FINAL, FINAL)
        assert (found["native.py"], found["sleeping.py"]) == (NATIVE, SLEEPING)

    @LINUX
    def test_time_on_stdin(self, command_line):
        command_line.path("in.py").write_bytes(SLEEPING)
        code = program(SLEEPS)
        ran = run("migrate", "-", "--time-limit", "1", before="< in.py", code=code)
        assert (ran.returncode, ran.stdout) == (2, SLEEPING)
        assert lines(ran)[0] == (
            "<stdin>: error: took more than 1 seconds; raise --time-limit, or --exclude it"
        )

    def test_size(self, command_line):
        command_line.write(large=LEGACY + b"#" * 2_000_000, clean=b"#" * 2_000_000, b=LEGACY)
        ran = command_line.run("migrate", "--write", "--size-limit", "1")
        assert ran.status == 2
        assert ran.err == (
            "large.py: error: is larger than 1 MB; raise --size-limit, or --exclude it\n"
        )
        assert command_line.bytes_on_disk()["b.py"] == FINAL
        assert command_line.run("migrate", "--size-limit", "3").status == 1

    def test_size_on_stdin(self, command_line):
        ran = command_line.run("migrate", "-", "--size-limit", "0.001", stdin=LEGACY * 50)
        assert (ran.status, ran.out) == (2, b"")
        assert "<stdin>: is larger than 0.001 MB" in ran.err

    @LINUX
    @pytest.mark.parametrize(
        "act", ["bytearray(1 << 45)", "[bytes(1 << 20) for _ in range(600)]"], ids=["one", "many"]
    )
    def test_memory(self, command_line, act):
        command_line.write(bad=LEGACY + b"# bad\n", c=LEGACY)
        code = program(act).replace(
            "engine.FileWork = transform",
            "engine.FileWork = transform\n"
            "from tf_lossscale_codemods.run import worker\n"
            "worker.memory_bound = lambda: 500 << 20\n",
        )
        ran = run("migrate", "--write", "--jobs", "1", code=code)
        assert ran.returncode == 2
        (line,) = lines(ran)
        assert line.startswith("bad.py: error: needs more than ")
        assert command_line.bytes_on_disk()["c.py"] == FINAL

    @LINUX
    @pytest.mark.parametrize("megabytes", [160, 371, 381, 391])
    def test_little_memory(self, command_line, megabytes):
        """A thread with a large stack would leave too little for its work."""
        for number in range(50):
            command_line.write(**{f"a{number}": LEGACY})
        ran = run("migrate", "--write", "--jobs", "2", before=f"ulimit -v {megabytes << 10};")
        assert (ran.returncode, lines(ran)) == (0, [])

    @LINUX
    def test_the_message_has_the_limit_that_holds(self, command_line):
        command_line.write(bad=LEGACY + b"# bad\n")
        code = program("[bytes(1 << 20) for _ in range(600)]")
        ran = run("migrate", "--jobs", "1", code=code, before="ulimit -v 400000;")
        assert lines(ran) == ["bad.py: error: needs more than 391 MB of memory; --exclude it"]

    @pytest.mark.parametrize("option", ["--time-limit", "--size-limit"])
    @pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "much"])
    def test_values_that_are_none(self, command_line, option, value):
        assert command_line.run("migrate", f"{option}={value}").status == 2


def fails(*_):
    raise ZeroDivisionError("by zero")


class TestDefects:
    def test_one_line_with_the_file_and_the_run_goes_on(self, command_line, monkeypatch):
        transform = engine.FileWork

        def fails_on_some(source, *more):
            return fails() if b"# bad" in source else transform(source, *more)

        monkeypatch.setattr(engine, "FileWork", fails_on_some)  # the workers are forked
        command_line.write(bad=LEGACY + b"# bad\n", c=LEGACY)
        ran = command_line.run("migrate", "--write")
        assert ran.status == 2
        (line,) = ran.err.splitlines()
        assert line.startswith("bad.py: error: not rewritten: a rule failed (ZeroDivisionError: ")
        assert command_line.bytes_on_disk()["c.py"] == FINAL

    @LINUX
    def test_a_traceback_on_request(self, command_line):
        command_line.write(bad=LEGACY + b"# bad\n")
        ran = run("migrate", "-vv", code=program("1 / 0"))
        assert ran.returncode == 2
        assert b"Traceback" in ran.stderr

    @pytest.mark.parametrize(
        ("module", "name"),
        [(migrate, "FileSearch"), (migrate, "_report"), (request, "load")],
        ids=["search", "report", "settings"],
    )
    def test_outside_of_a_file(self, legacy, monkeypatch, module, name):
        monkeypatch.setattr(module, name, fails)
        ran = legacy.run("migrate", "--check")
        assert ran.status == 2
        (line,) = ran.err.splitlines()
        assert (
            "error: internal error (ZeroDivisionError: by zero); run with -vv for a traceback; "
            in line
        )
        assert "Traceback" in legacy.run("migrate", "--check", "-vv").err

    def test_a_dependency_that_is_not_installed(self, legacy, monkeypatch):
        def fails_to_import(*_):
            raise ModuleNotFoundError("No module named 'libcst'", name="libcst")

        monkeypatch.setattr(migrate, "FileSearch", fails_to_import)
        ran = legacy.run("migrate", "--check")
        assert ran.status == 2
        (line,) = ran.err.splitlines()
        assert "error: the module 'libcst', which this command needs, is not installed" in line


@POSIX
class TestSurroundings:
    @pytest.mark.parametrize(
        "options",
        [[], ["-v", "--write"], ["--report", "json"], ["--report", "html"]],
        ids=" ".join,
    )
    @pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
    def test_names_that_no_stream_can_show(self, command_line, options, errors):
        """The second is how Python writes to stdout in the C locale, without its UTF-8 mode."""
        comment = "  # ü漢\n".encode()  # a report shows the line
        for name in (b"\xff.py", "ü漢.py".encode(), b"b\xfe\xff.py"):
            legacy = LEGACY.rstrip(b"\n") + comment
            with open(name, "wb") as file:
                file.write(legacy if name != b"b\xfe\xff.py" else b"tf.keras.mixed_precision (")
        ran = run("migrate", *options, PYTHONIOENCODING=f"ascii:{errors}")
        assert ran.returncode == 2
        assert any("cannot be parsed" in line for line in lines(ran))
        assert not any("internal error" in line for line in lines(ran))
        written = (FINAL if "--write" in options else LEGACY).rstrip(b"\n") + comment
        assert sorted(command_line.bytes_on_disk().values()) == [
            written,
            written,
            b"tf.keras.mixed_precision (",
        ]

    def test_few_open_files(self, command_line):
        for number in range(40):
            command_line.write(**{f"a{number}": LEGACY})
        ran = run("migrate", "--write", "--jobs", "60", before="ulimit -n 64;")
        assert (ran.returncode, lines(ran)) == (0, [])

    @pytest.mark.parametrize("processes", [0, 1])
    @pytest.mark.parametrize("has_threads", [True, False])
    def test_few_processes_and_threads(self, command_line, processes, has_threads):
        """As below `ulimit -u`, which does not bind root."""
        for number in range(4):
            command_line.write(**{f"a{number}": LEGACY})
        command_line.write(deep=LEGACY + b"(" * 3000 + b")" * 3000)
        ran = run("migrate", "--write", "--jobs", "3", code=few(processes, has_threads))
        assert ran.returncode == 2
        (line,) = lines(ran)
        assert line.startswith("deep.py:4: error: ")
        found = command_line.bytes_on_disk()
        assert [found[f"a{number}.py"] for number in range(4)] == [FINAL] * 4

    @pytest.mark.slow
    def test_the_time_limit_without_a_process(self, command_line):
        command_line.write(a=LEGACY)
        command_line.write(bad=LEGACY + b"# bad\n")
        code = few(0, has_threads=True, last=ACTS.format(act="while True: pass"))
        ran = run("migrate", "--write", "--time-limit", "2", code=code)
        assert ran.returncode == 2
        assert lines(ran) == [
            "bad.py: error: took more than 2 seconds; raise --time-limit, or --exclude it"
        ]
        assert command_line.bytes_on_disk()["a.py"] == FINAL

    @pytest.mark.parametrize(
        ("argv", "streams", "says"),
        [
            *(
                pytest.param(argv.split(), "> /dev/full", "no space left on device", marks=LINUX)
                for argv in ("migrate", "rules", "explain LS301", "--help")
            ),
            (["migrate", "--write"], ">&-", CLOSED),
            (["rules"], ">&-", CLOSED),
            (["migrate", "-"], "<&-", "stdin is closed"),
            (["migrate", "--write"], "<&- >&- 2>&-", None),
        ],
    )
    def test_streams_that_fail(self, legacy, argv, streams, says):
        ran = run(*argv, before=streams)
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert lines(ran) == ([f"tf-lossscale: error: {says}"] if says else [])
        assert legacy.bytes_on_disk() == {"a.py": LEGACY}

    def test_a_closed_stderr(self, command_line):
        command_line.write(a=LEGACY, bad=b"tf.keras.mixed_precision (")
        ran = run("migrate", "--write", before="2>&-")
        assert (ran.returncode, ran.stderr) == (2, b"")
        assert b"cannot be parsed" not in ran.stdout
        assert command_line.bytes_on_disk() == {
            "a.py": FINAL,
            "bad.py": b"tf.keras.mixed_precision (",
        }


def start(code: str, *argv: str) -> subprocess.Popen:
    # Where the tests themselves are a background job of a shell, interrupts are ignored at first.
    heed = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return subprocess.Popen(
        [sys.executable, "-c", heed + code, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@LINUX
class TestEnds:
    def test_the_first_interrupt_ends_the_run(self, command_line):
        command_line.write(a=LEGACY, native=NATIVE, sleeping=SLEEPING, z=LEGACY)
        process = start(program(NEVER_ENDS), "migrate", "--jobs", "2")
        pids = busy_workers(command_line.directory, 2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert err == b"tf-lossscale: interrupted; no file was left half-written\n"
        assert all(has_ended(pid) for pid in pids)

    @pytest.mark.parametrize(
        "platform", ["linux", pytest.param("elsewhere", marks=pytest.mark.slow)]
    )
    def test_workers_end_with_their_parent(self, command_line, platform):
        """Elsewhere, only the pipe says so."""
        command_line.write(native=NATIVE, sleeping=SLEEPING)
        act = NEVER_ENDS if platform == "linux" else SLEEPS
        code = program(act).replace(
            "engine.FileWork = transform",
            f"engine.FileWork = transform\nsys.platform = {platform!r}\n",
        )
        process = start(code, "migrate", "--jobs", "2")
        pids = busy_workers(command_line.directory, 2)
        process.kill()
        process.communicate(timeout=60)
        assert all(has_ended(pid) for pid in pids)

    def test_an_interrupt_in_the_first_moments(self, legacy):
        code = (
            "import os, sys\nfrom tf_lossscale._cli.main import main\n"
            "class Here:\n"
            "    def find_spec(self, name, *rest):\n"
            "        if name == 'tf_lossscale_codemods.cli.command':\n"
            "            os.write(1, b'here')\n"
            "sys.meta_path.insert(0, Here())\n"
            "sys.exit(main(['migrate', '--check']))"
        )
        code = PROGRAM.replace("from tf_lossscale_codemods.cli.command import main", "").replace(
            "sys.exit(main())", code
        )
        choices = random.Random(3)
        interrupted = 0
        for _ in range(6):
            process = start(code)
            assert process.stdout.read(4) == b"here"
            time.sleep(choices.uniform(0, 0.05))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            assert b"Traceback" not in err, err
            assert process.returncode in (1, 130, -signal.SIGINT)  # shells show the last as 130
            interrupted += process.returncode != 1
        assert interrupted

    def test_an_interrupt_where_python_drops_exceptions(self, capsys):
        class Dropping:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        def work(seconds):
            Dropping()
            time.sleep(seconds)
            return 0

        before = sys.unraisablehook
        # A job that a shell starts in the background ignores it otherwise.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            for seconds in (60, 0):  # it comes again, and counts where the command ends before
                assert guarded("prog", lambda seconds=seconds: work(seconds)) == 130
                assert capsys.readouterr().err == "prog: interrupted\n"
        finally:
            signal.signal(signal.SIGINT, handler)
        assert sys.unraisablehook is before


@LINUX
def test_a_worker_without_a_parent_does_not_begin():
    begins = "from tf_lossscale_codemods.run import worker\nworker._end_with(1)\nprint('on')"
    ran = run(code=PROGRAM.replace("sys.exit(main())", begins))
    assert (ran.returncode, ran.stdout) == (1, b"")
