"""`# lossscale: ignore[CODE,...] reason` comments, tested through the command."""

import json

import pytest
from command_line import FINAL, LEGACY

LINE = LEGACY.rstrip(b"\n")


def found(command_line, source: bytes, *options: str) -> list:
    command_line.write(a=source)
    report = json.loads(command_line.run("migrate", *options, "--report", "json").out)
    assert not report["errors"]
    return [(finding["line"], finding["code"]) for finding in report["findings"]]


@pytest.mark.parametrize(
    "comment",
    [
        b"# lossscale: ignore[LS301]",
        b"# lossscale: ignore[LS301] a reason, with [brackets]",
        b"#lossscale:ignore[LS3]",
        b"# lossscale: ignore[LS]",
        b"# lossscale: ignore[ ls301 ]",
        b"# lossscale: ignore",
        b"# lossscale: ignore  # type: ignore",
        b"# noqa: E501  # lossscale: ignore[LS301]",
        b"# lossscale: ignore[LS301]  # type: ignore",
    ],
    ids=bytes.decode,
)
def test_silenced(command_line, comment):
    source = LINE + b"  " + comment + b"\n"
    assert found(command_line, source) == []
    assert command_line.run("migrate", "--write").status == 0
    assert command_line.bytes_on_disk()["a.py"] == source


@pytest.mark.parametrize(
    "source",
    [
        LINE + b'\nx = "# lossscale: ignore[LS301]"\n',
        b'"""# lossscale: ignore[LS301]"""\n' + LEGACY,
    ],
    ids=["in a string", "in a docstring"],
)
def test_not_silenced_by_what_is_no_comment(command_line, source):
    assert [code for _, code in found(command_line, source)] == ["LS301"]


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        (b"# lossscale: ignore[LS1]", ["LS301", "LS900"]),
        (b"# lossscale: ignore[LS301, LS501]", ["LS900"]),
        (b"# lossscale: ignore[E501]", ["LS301", "LS900"]),
        (b"# lossscale: ignore[]", ["LS301", "LS900"]),
        (b"# lossscale: ignore[LS301", ["LS301", "LS900"]),
        (b"# lossscale ignore[LS301]", ["LS301"]),
        (b"# lossscale: ignored until now", ["LS301", "LS900"]),
        (b"# lossscale: ignores[LS301]", ["LS301", "LS900"]),
        (b"# lossscale: ignore LS301", ["LS301", "LS900"]),
        (b"# lossscale: ignore(LS301)", ["LS301", "LS900"]),
        (b"# lossscale: ignore=LS301", ["LS301", "LS900"]),
        (b"# lossscale: ignore: LS301", ["LS301", "LS900"]),
        (b"# lossscale: ignore until 2.4; see LS301", ["LS301", "LS900"]),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_a_comment_that_silences_nothing_is_reported(command_line, comment, codes):
    source = LINE + b"  " + comment + b"\n"
    assert sorted(code for _, code in found(command_line, source)) == codes


def test_a_comment_without_brackets_is_reported_with_what_to_write(command_line):
    command_line.write(a=LINE + b"  # lossscale: ignore LS301\n")
    report = json.loads(command_line.run("migrate", "--report", "json").out)
    (message,) = (found["message"] for found in report["findings"] if found["code"] == "LS900")
    assert "write `# lossscale: ignore[LS301] reason`" in message


def test_an_unused_comment_is_reported_without_legacy_symbols(command_line):
    source = b"x = 1  # lossscale: ignore[LS301]\n" + FINAL
    assert found(command_line, source) == [(1, "LS900")]
    assert found(command_line, b"x = 1\ny = 2  # lossscale: ignore[LS301]\n") == [(2, "LS900")]


def test_a_comment_on_a_line_of_its_own_silences_that_line_only(command_line):
    source = LEGACY.replace(b"opt =", b"# lossscale: ignore[LS301]\nopt =")
    assert found(command_line, source) == [(3, "LS900"), (4, "LS301")]


@pytest.mark.parametrize(
    "options",
    [
        ["--ignore", "LS301"],
        ["--ignore", "LS3"],
        ["--select", "LS1"],
        ["--select", "LS1,LS900"],
        ["--ignore", "LS9"],
    ],
    ids=" ".join,
)
def test_codes_of_rules_that_are_turned_off_are_not_reported(command_line, options):
    source = FINAL.rstrip(b"\n") + b"  # lossscale: ignore[LS301]\n"
    assert found(command_line, source) == [(3, "LS900")]
    assert found(command_line, source, *options) == []
    assert command_line.run("migrate", *options).status == 0


@pytest.mark.parametrize("line", range(4))
def test_a_comment_in_a_call_of_several_lines(command_line, line):
    lines = LEGACY.replace(b"(opt, ", b"(\n    opt,\n    ").replace(b")\n", b"\n)\n").split(b"\n")
    lines[2 + line] += b"  # lossscale: ignore[LS301]"
    source = b"\n".join(lines)
    silences = line in (0, 3)  # the first and the last
    codes = [code for _, code in found(command_line, source)]
    assert codes == ([] if silences else ["LS301", "LS900"])


def test_a_comment_behind_one_call_does_not_silence_the_next(command_line):
    call = LINE.split(b"\n")[-1].replace(b"(opt, ", b"(\n    opt,\n    ").replace(b")", b"\n)")
    source = LINE + b"\n" + call + b"  # lossscale: ignore\n" + call + b"\n"
    assert [line for line, _ in found(command_line, source)] == [3, 8]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["def f(tf):", "    tf.contrib.tpu.cross_replica_sum(x)"] * 2, "LS902"),
        (
            [
                "from lingvo import compat as tf",
                "tf.tpu.cross_replica_sum(x)",
                "tf",
                "tf.tpu.CrossShardOptimizer(opt)",
            ],
            "LS903",
        ),
        (["from compat import (", "    DynamicLossScale,", "    FixedLossScale,", ")"], "LS903"),
    ],
    ids=["a module that is passed", "a module of the project", "an import"],
)
def test_a_comment_silences_no_other_place_with_the_same_text(command_line, lines, code):
    places = [line for line, _ in found(command_line, "\n".join(lines).encode())]
    assert len(places) == 2
    for number, line in enumerate(places):
        silenced = list(lines)
        silenced[line - 1] += f"  # lossscale: ignore[{code}]"
        left = found(command_line, "\n".join(silenced).encode())
        assert left == [(places[1 - number], code)]
    assert found(command_line, "\n".join(lines).encode(), "--mark", "--write", "--allow-dirty")
    marks = command_line.bytes_on_disk()["a.py"].count(f"TODO({code})".encode())
    assert marks == (1 if "import (" in lines[0] else 2)


def test_a_comment_silences_one_use_of_a_method_of_keras_2(command_line):
    uses = ["    loss = opt.get_scaled_loss(loss)", "    grads = opt.get_unscaled_gradients(grads)"]
    lines = ["def step(opt, loss, grads):", *uses]
    assert found(command_line, "\n".join(lines).encode(), "--keras", "3") == [
        (2, "LS407"),
        (3, "LS407"),
    ]
    lines[1] += "  # lossscale: ignore[LS407]"
    assert found(command_line, "\n".join(lines).encode(), "--keras", "3") == [(3, "LS407")]


def test_an_unused_comment_has_a_place_and_its_line(command_line):
    command_line.write(a=b"x = 1  # lossscale: ignore[LS301] why\n")
    (finding,) = json.loads(command_line.run("migrate", "--report", "json").out)["findings"]
    assert (finding["line"], finding["column"]) == (1, 8)
    assert (finding["end_line"], finding["end_column"]) == (1, 34)


WRAPPED = b"""\
import tensorflow as tf
opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
    tf.keras.optimizers.SGD(),
    "dynamic",
)  # lossscale: ignore[LS301]
"""


@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
def test_what_is_called_on_a_silenced_optimizer_stays(command_line, options):
    source = WRAPPED + b"print(opt.loss_scale(), opt._optimizer)\n"
    assert found(command_line, source, "--write", "--allow-dirty", *options) == []
    assert command_line.bytes_on_disk()["a.py"] == source


def test_what_is_called_on_an_ignored_optimizer_stays(command_line):
    source = WRAPPED.replace(b"  # lossscale: ignore[LS301]", b"")
    source += b"print(opt.loss_scale(), opt._optimizer)\n"
    options = ["--ignore", "LS301", "--write", "--allow-dirty", "--keras", "2"]
    assert found(command_line, source, *options) == []
    assert command_line.bytes_on_disk()["a.py"] == source


def test_silenced_import_stays_and_its_uses_get_another_name(command_line):
    line = b"from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer"
    line += b"  # lossscale: ignore\n"
    command_line.write(a=line + b"\nopt = LossScaleOptimizer(opt, 'dynamic')\n")
    assert command_line.run("migrate", "--keras", "2", "--write").status == 0
    assert command_line.bytes_on_disk()["a.py"] == (
        line + b"import tf_lossscale as tfls\n\n"
        b"opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')\n"
    )


def test_what_binds_the_name_of_a_silenced_place_stays(command_line):
    """Or the comment would not keep the class that its line uses."""
    source = b"from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as Old"
    source += b"\n\nopt = Old(opt, 'dynamic')  # lossscale: ignore\n"
    assert found(command_line, source, "--write", "--allow-dirty", "--to", "shim") == []
    assert command_line.bytes_on_disk()["a.py"] == source
