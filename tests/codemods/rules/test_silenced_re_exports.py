"""A name from another file, where its own place is hidden, is reported where it is used."""

import re

import pytest
from command_line import LEGACY

NAME = "LossScaleOptimizer"
PLACE = f"import tensorflow as tf\n\n{NAME} = tf.keras.mixed_precision.experimental.{NAME}"
READERS = {
    "from": f"from compat import {NAME}\n\nopt = {NAME}(opt, 'dynamic')\n",
    "alias": f"from compat import {NAME} as Scaled\n\nopt = Scaled(opt, 'dynamic')\n",
    "attribute": f"import compat\n\nopt = compat.{NAME}(opt, 'dynamic')\n",
    "star": f"from compat import *\n\nopt = {NAME}(opt, 'dynamic')\n",
    "twice": f"from again import {NAME}\n\nopt = {NAME}(opt, 'dynamic')\n",
    "subclass": f"from compat import {NAME}\n\nclass Mine({NAME}):\n    pass\n",
}


@pytest.mark.sampled(5, each="reader")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("comment", "options"),
    [
        ("  # lossscale: ignore[LS301] later", []),
        ("  # lossscale: ignore", []),
        ("", ["--ignore", "LS301"]),
        ("", ["--ignore", "LS3"]),
        ("", ["--select", "LS9"]),
    ],
)
@pytest.mark.parametrize("target", [["--keras", "2"], ["--keras", "3"], ["--to", "shim"]])
def test_one_finding_where_it_is_used(command_line, reader, comment, options, target):
    command_line.path("compat.py").write_text(PLACE + comment + "\n")
    command_line.path("again.py").write_text("from compat import *\n")
    command_line.path("main.py").write_text(READERS[reader])
    ran = command_line.run("migrate", "--check", "-v", *target, *options)
    assert ran.status == 1
    found = re.findall(r"(?m)^(\w+\.py):\d+:\d+: LS90[13] manual", ran.out.decode())
    assert "main.py" in found or "again.py" in found
    for path in re.findall(r"(?m)^(\S+): unchanged: .*see the findings", ran.err):
        assert path in found


def test_where_its_own_place_is_migrated_nothing_is_left(command_line):
    command_line.path("compat.py").write_text(PLACE + "\n")
    command_line.path("main.py").write_text(READERS["from"])
    assert command_line.run("migrate", "--write", "--to", "shim").status == 0
    assert command_line.run("migrate", "--to", "shim").status == 0


def test_a_file_without_findings_does_not_name_them(command_line):
    command_line.write(a=LEGACY)
    ran = command_line.run("migrate", "--write-baseline", "base.json")
    ran = command_line.run("migrate", "--baseline", "base.json", "-v")
    assert "a.py: unchanged: its findings are in the baseline\n" in ran.err
