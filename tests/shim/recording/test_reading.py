"""Records as they come from disks, pipes and other systems: read, or refused with a sentence."""

import gzip
import math

import pytest
from simulated import Run, record
from test_compare import HEADER, OPTIMIZER, write

from tf_lossscale._compare.command import main
from tf_lossscale._records.destination import Destination
from tf_lossscale._records.format import COLUMNS, Disturbance, OptimizerRecord, RunHeader
from tf_lossscale._records.reading import RecordError, read_record
from tf_lossscale._records.writing import RecordFile

pytestmark = pytest.mark.by_file

RIGHT = Run(steps=40, growth_steps=10)
SECOND = OPTIMIZER.replace('"optimizer": 0', '"optimizer": 1')


@pytest.fixture
def right(tmp_path):
    return write(tmp_path / "right", record(RIGHT))


def content(path):
    with open(path, "rb") as file:
        return file.read()


CHANGES = [
    lambda text: gzip.compress(text),
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.replace(b"\n", b"\r\n"),
    lambda text: text.rstrip(b"\n"),
]


@pytest.mark.parametrize("change", CHANGES, ids=["gzip", "mark", "CRLF", "no line end"])
def test_the_same_lines_in_another_form_are_read(right, tmp_path, capsys, change):
    other = tmp_path / "other"
    other.write_bytes(change(content(right)))
    assert main([right, str(other)]) == 0
    assert capsys.readouterr().out.startswith("Same: 40 steps, bit-identical.")


def with_a_word(text):
    """Ends with a step of which only the first values are read, and with what is cut off."""
    line = b'{"optimizer": 0, "step": 40, "loss": 1, "scale": "much"}'
    return text[: text.index(b'{"end"')] + line + bytes(60)


@pytest.mark.parametrize("compress", [gzip.compress, bytes, with_a_word])
def test_the_end_of_a_truncated_file_is_noted(right, tmp_path, capsys, compress):
    other = tmp_path / "other"
    other.write_bytes(compress(content(right))[:-60])
    assert main([right, str(other)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Not shown to be the same: the new run ends")
    assert "\nnote: " in out


def test_a_damaged_gzip_file_is_refused(right, tmp_path, capsys):
    other = tmp_path / "other"
    packed = bytearray(gzip.compress(content(right)))
    packed[40:60] = b"\xff" * 20
    other.write_bytes(packed)
    assert main([right, str(other)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("tf-lossscale compare: ")
    assert error.count("\n") == 1


def steps(optimizer, numbers):
    line = '{{"optimizer": {}, "step": {}, "loss": 1.0, "scale": 8, "finite": true}}\n'
    return [line.format(optimizer, step) for step in numbers]


def test_interleaved_optimizers_are_told_apart(tmp_path, capsys):
    path = tmp_path / "record"
    lines = [line for pair in zip(steps(0, range(5)), steps(1, range(5))) for line in pair]
    path.write_text(HEADER + OPTIMIZER + SECOND + "".join(lines) + '{"end": 10}\n')
    assert [optimizer.steps for optimizer in read_record(str(path)).optimizers] == [[*range(5)]] * 2
    assert main([str(path), str(path)]) == 0
    capsys.readouterr()


def test_steps_that_are_missing_are_gaps(tmp_path, capsys):
    path, whole = tmp_path / "record", tmp_path / "whole"
    gap = '{"optimizer": 0, "gap": [4, 7]}\n'
    rest = [*steps(0, range(7, 10)), *steps(0, range(12, 14))]
    path.write_text(HEADER + OPTIMIZER + "".join([*steps(0, range(4)), gap, *rest]))
    whole.write_text(HEADER + OPTIMIZER + "".join(steps(0, range(14))))
    (found,) = read_record(str(path)).optimizers
    assert [(gap.first, gap.end) for gap in found.gaps] == [(4, 7), (10, 12)]
    assert main([str(path), str(whole)]) == 1
    out = capsys.readouterr().out
    assert "steps 4 to 6 of the old run are missing, and 1 more gaps" in out


def test_literals_that_are_no_json_are_read(tmp_path):
    path = tmp_path / "record"
    line = '{"optimizer": 0, "step": 0, "loss": NaN, "scale": Infinity, "norm": -Infinity}\n'
    path.write_text(HEADER + OPTIMIZER + line)
    (found,) = read_record(str(path)).optimizers
    assert found.loss[0] != found.loss[0]
    assert found.scales == [float("inf")]
    assert found.norm == [-float("inf")]


def test_the_end_line_shows_whether_a_run_was_cut_off(tmp_path):
    path = tmp_path / "record"
    written = steps(0, range(5))
    second = HEADER + OPTIMIZER
    path.write_text(second + "".join(written))
    assert read_record(str(path)).ended is False
    path.write_text(second + "".join([*written, '{"end": 5}\n']))
    assert read_record(str(path)).ended is True
    for lines in ([*written, '{"end": 4}\n'], ['{"end": 0}\n', *written]):
        path.write_text(second + "".join(lines))
        with pytest.raises(RecordError, match="line"):
            read_record(str(path))


@pytest.mark.parametrize("unscaled", ["1", "[1]", '["0"]', "[[0]]", '{"a": 0}'])
def test_the_end_line_names_optimizers_that_scaled_no_loss(tmp_path, unscaled):
    path = tmp_path / "record"
    text = HEADER + OPTIMIZER + "".join(steps(0, range(2)))
    path.write_text(text + '{"end": 2, "unscaled": [0]}\n')
    assert read_record(str(path)).optimizers[0].scales_no_loss
    for absent in ("", ', "unscaled": null', ', "unscaled": []'):
        path.write_text(f'{text}{{"end": 2{absent}}}\n')
        assert not read_record(str(path)).optimizers[0].scales_no_loss
    path.write_text(f'{text}{{"end": 2, "unscaled": {unscaled}}}\n')
    with pytest.raises(RecordError, match="line 5"):
        read_record(str(path))


def test_what_is_written_is_read(tmp_path):
    values = {
        "loss": 1.5,
        "scales": 8.0,
        "finite": True,
        "applied": False,
        "norm": 0.5,
        "bad": 3,
        "bad_count": 2,
        "unscaled_norm": math.inf,
        "rate": 0.01,
        "replica_norms": [0.25, None, math.inf],
    }
    assert {column.name for column in COLUMNS} == set(values)
    destination = Destination(str(tmp_path / "record"))
    destination.hold()
    file = RecordFile(destination)
    described = OptimizerRecord(
        names=["v", "w"], shapes=[[2], []], computed=["float16", None], slots="fresh"
    )
    header = RunHeader(
        "2.21.0",
        xla=True,
        id="1f",
        supplied=["tf.contrib"],
        disturbed=Disturbance("0e", 2, 2.0**-11, 1.37),
    )
    number = file.add_optimizer(header, described)
    file.add_norms(number, [0.5, math.nan])
    file.add_step(number, 0, **values)
    file.close(has_ended=True)
    record = read_record(str(tmp_path / "record"))
    assert (record.ended, record.header) == (True, header)
    (read,) = record.optimizers
    assert [getattr(read, column.name) for column in COLUMNS] == [
        [values[column.name]] for column in COLUMNS
    ]
    assert (read.names, read.computed, read.slots) == (["v", "w"], ["float16", None], "fresh")
    assert (read.norms[0], math.isnan(read.norms[1])) == (0.5, True)


def test_optimizers_are_read_in_the_order_of_their_numbers(tmp_path):
    # One whose first step is skipped is described after another that was built later.
    destination = Destination(str(tmp_path / "record"))
    destination.hold()
    file = RecordFile(destination)
    first, second = file.reserve(), file.reserve()
    for number, name in ((second, "second"), (first, "first")):
        file.add_optimizer(RunHeader(), OptimizerRecord(cls=name), number)
        file.add_step(number, 0)
    file.close(has_ended=True)
    assert [run.cls for run in read_record(str(tmp_path / "record")).optimizers] == [
        "first",
        "second",
    ]
    assert [summary.cls for summary in file.summaries] == ["first", "second"]
