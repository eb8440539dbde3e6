"""`compare` refuses in a second what is no record, and writes only where nothing is lost."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from processes import REPOSITORY
from simulated import Run, record
from test_compare import HEADER, OPTIMIZER, write

from tf_lossscale._compare import command
from tf_lossscale._compare.command import main
from tf_lossscale._records import output

pytestmark = pytest.mark.by_file

GIGABYTE = 10**9
MEGABYTE = 10**6


@pytest.fixture
def right(tmp_path):
    return write(tmp_path / "right", record(Run(steps=40)))


def pipe(path):
    os.mkfifo(str(path))


def zeros(path):
    os.symlink("/dev/zero", str(path))


def long_line(path):
    with open(str(path), "wb") as file:
        file.truncate(GIGABYTE)


def long_second_line(path):
    with open(str(path), "wb") as file:
        file.write(HEADER.encode() + b'{"optimizer": 0, "class": "')
        file.truncate(GIGABYTE)


def bomb_of_zeros(path):
    with gzip.open(str(path), "wb") as file:
        for _ in range(100):
            file.write(bytes(MEGABYTE))


def bomb_of_lines(path):
    with gzip.open(str(path), "wb") as file:
        file.write((HEADER + OPTIMIZER).encode())
        line = '{"optimizer": 0, "step": %d' + " " * 4000 + "}\n"
        for step in range(25_000):
            file.write((line % step).encode())


def many_optimizers(path):
    with open(str(path), "w") as file:
        file.write(HEADER)
        for number in range(100):
            variables = [["w", []]] * 20_000
            line = {"optimizer": number, "class": "A", "scale": {}, "variables": variables}
            file.write(json.dumps(line) + "\n")


def long_number(path):
    path.write_text(HEADER + '{"optimizer": ' + "1" * 900_000 + ', "step": 0}\n')


HOSTILE = [
    (pipe, "not a regular file"),
    (zeros, "not a regular file"),
    (long_line, "is not a record"),
    (long_second_line, "line 2: it is too long for a line of a record"),
    (bomb_of_zeros, "is not a record"),
    (bomb_of_lines, "expands to more than 100 times its size"),
    (many_optimizers, "descriptions of optimizers are too long"),
    (long_number, "line 2: "),
]
CODE = """
import resource, sys, time
from tf_lossscale._compare.command import main
from tf_lossscale._records import output
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.process_time()
status = main(sys.argv[1:])
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(status, time.process_time() - started, grown / 1000)
"""


@pytest.mark.parametrize(("make", "message"), HOSTILE, ids=[case[0].__name__ for case in HOSTILE])
def test_it_is_refused_within_a_second_and_100_megabytes(tmp_path, right, make, message):
    path = tmp_path / "bad"
    make(path)
    done = subprocess.run(
        [sys.executable, "-c", CODE, right, str(path)],
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    status, seconds, megabytes = map(float, done.stdout.split())
    assert status == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert seconds < 1
    assert megabytes < 100


def test_names_and_versions_are_escaped_and_shortened(tmp_path, capsys):
    version = "\x1b[31m" + "9" * 10_000
    path = tmp_path / "bad\x1b\n"
    path.write_text(json.dumps({"tf_lossscale_record": version}) + "\n")
    assert main([str(path), str(path)]) == 2
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert (error.count("\n"), len(error) < 500) == (1, True)
    run = record(Run(steps=40))
    run.cls = "\x1b" + "C" * 10_000
    both = write(tmp_path / "two", run, run)
    assert main([both, both]) == 0
    out = capsys.readouterr().out
    assert "\\x1bC" in out
    assert max(map(len, out.splitlines())) < 300
    run.names, run.shapes = ["\x1b]0;title\x07"], [[2, 4]]
    assert main([both, write(tmp_path / "other", run, run)]) == 2
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_a_result_is_written_neither_through_a_link_nor_over_a_record(
    tmp_path, capsys, right, option
):
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("precious")
    os.symlink(str(precious), str(link))
    packed = tmp_path / "packed"
    with open(right, "rb") as file:
        packed.write_bytes(gzip.compress(file.read()))
    for target, message in (
        (str(link), "is a link"),
        (right, "is a record"),
        (str(packed), "is a record"),
        (str(tmp_path), "no regular file"),
        (str(tmp_path / "missing" / "page"), "No such file"),
    ):
        assert main([right, right, option, target]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert precious.read_text() == "precious"
    assert main([right, right, option, str(precious)]) == 0
    assert "bit-identical" in precious.read_text()
    assert not [name for name in os.listdir(str(tmp_path)) if name.startswith(".tf-lossscale")]


def test_a_result_is_written_at_once_or_not_at_all(tmp_path, capsys, right, monkeypatch):
    page = tmp_path / "page"
    page.write_text("before")
    page.chmod(0o640)

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output.os, "replace", fail)
    assert main([right, right, "--html", str(page)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert page.read_text() == "before"
    assert sorted(os.listdir(str(tmp_path))) == ["page", "right"]
    monkeypatch.undo()
    assert main([right, right, "--html", str(page)]) == 0
    assert page.stat().st_mode & 0o777 == 0o640


def test_the_end_of_memory_is_one_line(capsys, right, monkeypatch):
    def fail(path):
        raise MemoryError

    monkeypatch.setattr(command, "read_record", fail)
    assert main([right, right]) == 2
    error = capsys.readouterr().err
    assert error == "tf-lossscale compare: there is not enough memory for these records.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["new", "--html", "x", "--json", "./x"], "name the same file"),
        (["new", "--baseline", ""], "is empty"),  # a variable of the shell that is not set
        ([""], "is empty"),
    ],
)
def test_names_of_files_that_make_no_sense_are_wrong_usage(capsys, right, options, message):
    with pytest.raises(SystemExit) as raised:
        main([right, *options])
    assert raised.value.code == 2
    assert message in capsys.readouterr().err
