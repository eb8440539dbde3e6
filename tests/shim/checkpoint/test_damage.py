"""Damaged files: the right result, or status 2 and one line."""

import json
import os
import random
import shutil

import pytest
import recorded_files

CASES = {"small": 5, "long": 100}  # of each, one or two processes
# One of each layout.
CHECKPOINTS = {
    "contrib": ("1.15.5/contrib.LossScaleOptimizer/exponential_sgd_refvars", "v1"),
    "v1": ("2.4.4/v1.MixedPrecisionLossScaleOptimizer/dynamic_sgd_graph", "contrib"),
    "keras_old": ("2.2.3/keras_experimental.LossScaleOptimizer/dynamic_adam", "keras"),
    "keras": ("2.4.4/keras_final.LossScaleOptimizer/model_dyn_checkpoint", "keras"),
    "keras_3": ("2.21.0/keras3.LossScaleOptimizer/*_checkpoint", "keras3"),
}
KERAS_FILES = {
    "h5": "2.15.1/keras_final.*/model_dyn_h5",
    "keras": "2.15.1/keras_final.*/model_dyn_keras",
    "keras_3_h5": "2.21.0/keras3.*/model_h5",
    "keras_3_weights": "2.21.0/keras3.*/model_weights_h5",
    "keras_3_keras": "2.21.0/keras3.*/model_keras",
}
SUFFIXES = (".index", ".data-00000-of-00001")


def damages(contents, size, seed):
    """Yields descriptions and damaged contents: cut short, and with one byte changed."""
    seeded = random.Random(seed)
    count = min(len(contents), CASES[size])
    lengths = {0, 1, len(contents) - 1, *seeded.sample(range(len(contents)), count // 3)}
    places = seeded.sample(range(len(contents)), count)
    for length in sorted(lengths):
        yield f"cut to {length}", contents[:length]
    flips = random.Random(seed)
    for place in sorted(places):
        changed = bytearray(contents)
        changed[place] ^= 1 << flips.randrange(8)
        yield f"byte {place} changed", bytes(changed)


QUICK = ("keras", "v1")


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in sorted(CHECKPOINTS)
    ]
)
def copied(request, tmp_path):
    """The prefix of a copy of a checkpoint, and what `--to` does something with it."""
    pattern, to = CHECKPOINTS[request.param]
    original = recorded_files.file_of(pattern)
    prefix = tmp_path / "old" / "model"
    prefix.parent.mkdir()
    for suffix in SUFFIXES:
        shutil.copy(original + suffix, str(prefix) + suffix)
    return str(prefix), to


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_of_a_checkpoint(suffix, copied, size, tmp_path, checkpoint):
    prefix, to = copied
    path = prefix + suffix
    with open(path, "rb") as file:
        contents = file.read()
    inspect = ("inspect", prefix, "--json")
    convert = ("convert", prefix, tmp_path / "new" / "model", "--to", to)
    right = checkpoint(*inspect)
    assert right[0] == 0
    found = 0
    for what, damaged in damages(contents, size, suffix + to):
        with open(path, "wb") as file:
            file.write(damaged)
        status, out, err = checkpoint(*inspect)
        if status != 0:
            assert_one_line(status, out, err, prefix, what)
            found += 1
        else:
            assert (status, out, err) == right, what
        # Every byte of the data is covered by a checksum that `convert` verifies. In the index, the
        # filling of the footer is not.
        status, out, err = checkpoint(*convert)
        if status != 0 or suffix != ".index":
            assert_one_line(status, out, err, prefix, what)
            assert not (tmp_path / "new").exists() or not os.listdir(str(tmp_path / "new")), what
        else:
            shutil.rmtree(str(tmp_path / "new"))
        with open(path, "rb") as file:
            assert file.read() == damaged
    assert found


def assert_one_line(status, out, err, path, what):
    assert status == 2, (what, out, err)
    assert out == "", what
    assert err.count("\n") == 1, (what, err)
    assert err.endswith("\n")
    assert path in err, (what, err)
    assert "cannot be read: " not in err, (what, err)  # an exception that nothing expected


@pytest.mark.parametrize("name", ["one_file", *sorted(KERAS_FILES)])
def test_damaged_files(name, size, tmp_path, checkpoint):
    if name == "one_file":
        source = recorded_files.save(tmp_path / "original", recorded_files.V1_STATE, "V1")
    else:
        source = recorded_files.file_of(KERAS_FILES[name])
    path = str(tmp_path / ("model" + os.path.splitext(source)[1]))
    shutil.copy(source, path)
    right = checkpoint("inspect", path, "--json")
    assert right[0] == (1 if name in ("h5", "keras") else 0)
    with open(path, "rb") as file:
        contents = file.read()
    refused = set()
    for what, damaged in damages(contents, size, name):
        with open(path, "wb") as file:
            file.write(damaged)
        status, out, err = got = checkpoint("inspect", path, "--json")
        if status == 2:
            assert_one_line(status, out, err, path, what)
            refused.add(what.split()[0])
        elif got != right:
            # HDF5 has no checksums: a changed byte can change a value or a name. It notices each
            # file that is too short; a zip archive has its directory at its end, and checksums.
            assert path.endswith(".h5"), (what, out)
            assert "changed" in what
            assert (err, out[:1]) == ("", "{")
    assert "cut" in refused
    if path.endswith(".keras"):
        assert "byte" in refused


@pytest.mark.parametrize("name", ["keras_3_h5", "keras_3_weights"])
def test_a_changed_byte_of_an_h5_file_can_change_a_value(name, tmp_path, checkpoint):
    """Keras writes it without checksums, so nothing detects it."""
    h5py = pytest.importorskip("h5py")
    path = str(tmp_path / "model.h5")
    shutil.copy(recorded_files.file_of(KERAS_FILES[name]), path)

    def value():
        status, out, _ = checkpoint("inspect", path, "--json")
        assert status == 0
        (state,) = json.loads(out)["states"]
        return state["variables"][0]

    before = value()
    with h5py.File(path, "r") as file:
        place = file[before["key"]].id.get_offset()
    with open(path, "r+b") as file:
        file.seek(place + 2)  # of four bytes: 32.0 has 0x42 and zeros
        file.write(b"\x01")
    assert (before["value"], value()["value"]) == (32.0, 32.25)
