"""Damaged and hostile `.h5` and `.keras` files: status 2 and one line, whatever HDF5 does."""

import json
import math
import os
import zipfile
import zlib

import pytest
import recorded_files

KERAS_3 = recorded_files.file_of("2.21.0/keras3.*/model_keras")


@pytest.fixture
def archive(tmp_path):
    """Writes a `.keras` file with these members; by default, with those of a real one."""

    def write(changes, compression=zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(KERAS_3) as real:
            members = [(name, real.read(name)) for name in real.namelist()]
        path = str(tmp_path / "model.keras")
        with zipfile.ZipFile(path, "w", compression) as new:
            for name, content in members:
                content = changes.pop(name, content)
                if content is not None:
                    new.writestr(name, content)
            for name, content in changes.items():
                new.writestr(name, content)
        return path

    return write


def test_a_member_that_unpacks_to_much_more_is_refused(archive, checkpoint, refused):
    zeros = bytes(2**20)
    assert checkpoint("inspect", archive({}))[0] == 0
    path = archive({"model.weights.h5": zeros * 65})
    assert os.path.getsize(path) < 2**19
    refused(("inspect", path), "model.weights.h5", "unpacks to more than")
    refused(
        ("inspect", archive({"config.json": zeros * 65})), "config.json", "unpacks to more than"
    )


def test_many_members_that_unpack_to_much_more_together_are_refused(archive, refused):
    zeros = bytes(2**20)
    path = archive({f"{number}.weights.h5": zeros for number in range(65)})
    assert os.path.getsize(path) < 2**19
    refused(("inspect", path), "unpacks to more than")


def test_settings_that_are_not_finite_are_strings_in_json(archive, checkpoint):
    with zipfile.ZipFile(KERAS_3) as real:
        config = json.loads(real.read("config.json"))
    settings = config["compile_config"]["optimizer"]["config"]
    settings["initial_scale"] = math.nan
    path = archive({"config.json": json.dumps(config)})
    status, out, _ = checkpoint("inspect", "--json", path)
    assert status == 0

    def refuse(name):
        raise AssertionError(name)

    (configured,) = json.loads(out, parse_constant=refuse)["configured"]
    assert configured["settings"]["initial_scale"] == "nan"


def test_a_member_that_lies_about_its_size_is_refused(archive, refused):
    path = archive({"config.json": b"{" + b" " * 2**20 + b"}"})
    with open(path, "rb") as file:
        contents = file.read()
    size = (2**20 + 2).to_bytes(4, "little")
    assert contents.count(size) == 2
    with open(path, "wb") as file:
        file.write(contents.replace(size, (40).to_bytes(4, "little")))
    refused(("inspect", path))


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5"])
def test_a_member_that_is_missing(name, archive, refused):
    refused(("inspect", archive({name: None})), name)


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"[" * 100000, b"\xff", b"1e999"])
def test_a_configuration_that_is_none(content, archive, refused):
    refused(("inspect", archive({"config.json": content})), "damaged")


def test_two_members_of_one_name(archive, refused):
    path = archive({})
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as opened:
        opened.writestr("config.json", "{}")
    refused(("inspect", path), "two members named 'config.json'")


def test_an_encrypted_member(archive, refused):
    path = archive({})
    with open(path, "rb") as file:
        contents = bytearray(file.read())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = contents.find(signature)
        while at >= 0:
            contents[at + flags] |= 1
            at = contents.find(signature, at + 1)
    with open(path, "wb") as file:
        file.write(bytes(contents))
    refused(("inspect", path), "is encrypted")


def test_members_are_never_unpacked_under_their_names(archive, tmp_path, refused):
    path = archive({"../../out.weights.h5": b"x", str(tmp_path / "abs.weights.h5"): b"x"})
    refused(("inspect", path))
    assert sorted(os.listdir(str(tmp_path))) == ["model.keras"]


@pytest.mark.parametrize("suffix", [".h5", ".weights.h5", ".keras", ".hdf5"])
@pytest.mark.parametrize("content", [b"hello", b"", bytes(100), zlib.compress(b"x" * 999)])
def test_junk_is_called_what_it_is(suffix, content, tmp_path, refused):
    path = tmp_path / ("model" + suffix)
    path.write_bytes(content)
    word = ".keras file" if suffix == ".keras" else "HDF5 file"
    refused(("inspect", str(path)), word if content else "empty")


def test_numbers_in_other_files_are_not_read(tmp_path, refused):
    """HDF5 would follow a dataset to any file of the user."""
    h5py = pytest.importorskip("h5py")
    other = tmp_path / "secret"
    other.write_bytes(bytes(8))
    path = str(tmp_path / "model.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("step_counter", data=5)
        space = h5py.h5s.create(h5py.h5s.SCALAR)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_external(os.fsencode(str(other)), 0, 8)
        kind = h5py.h5t.NATIVE_FLOAT
        h5py.h5d.create(file.id, b"dynamic_scale", kind, space, plist)
    refused(("inspect", path), "stored in another file")


def test_the_child_takes_no_module_from_the_working_directory(
    real_child, tmp_path, monkeypatch, checkpoint
):
    (tmp_path / "json.py").write_text("import os; os._exit(1)")
    (tmp_path / "h5py.py").write_text("import os; os._exit(1)")
    monkeypatch.chdir(tmp_path)
    assert checkpoint("inspect", KERAS_3)[0] == 0
