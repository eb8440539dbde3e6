"""Runs the command in its own directory, as a shell would, and reads the bytes on disk."""

import io
import os
import sys
from typing import NamedTuple

import pytest
from tf_lossscale_codemods.cli.command import main
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options
from tf_lossscale_codemods.project import evidence

LEGACY = b"""\
import tensorflow as tf

opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
"""
FINAL = b"""\
import tensorflow as tf

opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
"""
MANUAL = b"""\
import tensorflow as tf

is_scaled = type(opt).__name__ == "LossScaleOptimizer"
"""
CLEAN = b"import tensorflow as tf\n"

INSTALLED = {"tensorflow": "2.15.1"}
"""What the command takes as installed, so that results do not depend on the test environment."""

_HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = f"""
import sys
sys.path.append({_HERE!r})
import from_source
sys.path.remove({_HERE!r})
from tf_lossscale_codemods.cli.command import main
from tf_lossscale_codemods.project import evidence
evidence.version_of = {INSTALLED!r}.get
sys.exit(main())
"""
"""The command as a program of its own, from the source folder where it is not installed."""


class Ran(NamedTuple):
    status: int
    out: bytes
    err: str


class CommandLine:
    """`run("migrate", "--check")` in a directory that starts empty."""

    def __init__(self, directory, capture, monkeypatch):
        self.directory = directory
        self._capture = capture
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(directory)
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(evidence, "version_of", INSTALLED.get)

    def write(self, **files: bytes):
        for name, content in files.items():
            self.path(name.replace("__", "/") + ".py").write_bytes(content)

    def settings(self, lines: str, where: str = "pyproject.toml"):
        """Writes the table of the command, and nothing else, into a file."""
        self.path(where).write_text(f"[tool.tf-lossscale]\n{lines}\n", encoding="utf-8")

    def path(self, name: str):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def run(self, *argv: str, stdin: bytes = b"") -> Ran:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capture.readouterr()
        status = main(list(argv))
        out, err = self._capture.readouterr()
        return Ran(status, out, err.decode())

    def fails(self, *argv: str, says: str, **more: bytes) -> Ran:
        """`migrate` with the status 2, and with an error that says so."""
        ran = self.run("migrate", *argv, **more)
        assert ran.status == 2, ran.err
        assert says in ran.err
        return ran

    def bytes_on_disk(self) -> dict:
        found = {}
        for directory, _, names in os.walk(self.directory):
            for name in names:
                path = os.path.join(directory, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, self.directory)] = file.read()
        return found


@pytest.fixture(scope="session")
def warm():
    """Loads here, once, what each forked worker would have to load again."""
    for source in (LEGACY, MANUAL):
        transform(source, Options())


@pytest.fixture
def command_line(warm, tmp_path, capsysbinary, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    return CommandLine(here, capsysbinary, monkeypatch)


@pytest.fixture
def legacy(command_line):
    """A directory with one file, which has a legacy name."""
    command_line.write(a=LEGACY)
    return command_line
