"""Damaged and hostile `.h5` and `.keras` files: status 2 and one line, whatever HDF5 does."""

import os
import zipfile
import zlib

import processes
import pytest
import recorded_files

from tf_lossscale._checkpoint import isolated

PROGRAM = os.path.join(os.path.dirname(__file__), "damaged_keras_files.py")
FILES = {
    "h5": "2.15.1/keras_final.*/model_dyn_h5",
    "keras": "2.15.1/keras_final.*/model_dyn_keras",
    "keras_3_h5": "2.21.0/keras3.*/model_h5",
    "keras_3_weights": "2.21.0/keras3.*/model_weights_h5",
    "keras_3_keras": "2.21.0/keras3.*/model_keras",
}


def path_of(name):
    return recorded_files.files(recorded_files.folders(FILES[name])[0])[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
@pytest.mark.parametrize("name", sorted(FILES))
def test_damaged_files(name, size):
    source = path_of(name)
    done = processes.run_alone(PROGRAM, source, size, env={"OPENBLAS_NUM_THREADS": "1"})
    assert done["wrong"] == []
    assert done["status"] == (0 if "3" in name else 1)
    found = done["found"]
    assert found["refused cut"] > 10
    # HDF5 notices each file that is too short, and a zip archive has its directory at its end.
    assert set(found) <= {"refused cut", "refused byte", "right byte", "other byte"}
    if source.endswith(".keras"):
        assert found["refused byte"] > 0
        assert "other byte" not in found


@pytest.fixture
def archive(tmp_path):
    """Writes a `.keras` file with these members; by default, with those of a real one."""

    def write(changes, compression=zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path_of("keras_3_keras")) as real:
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


def refused(checkpoint, path, *words):
    status, out, err = checkpoint("inspect", path)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in (path, *words):
        assert word in err


def test_a_member_that_unpacks_to_much_more_is_refused(archive, checkpoint):
    zeros = bytes(2**20)
    assert checkpoint("inspect", archive({}))[0] == 0
    path = archive({"model.weights.h5": zeros * 65})
    assert os.path.getsize(path) < 2**19
    refused(checkpoint, path, "model.weights.h5", "unpacks to more than")
    refused(checkpoint, archive({"config.json": zeros * 65}), "config.json", "unpacks to more than")


def test_a_member_that_lies_about_its_size_is_refused(archive, checkpoint):
    path = archive({"config.json": b"{" + b" " * 2**20 + b"}"})
    with open(path, "rb") as file:
        contents = file.read()
    size = (2**20 + 2).to_bytes(4, "little")
    assert contents.count(size) == 2
    with open(path, "wb") as file:
        file.write(contents.replace(size, (40).to_bytes(4, "little")))
    refused(checkpoint, path)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5"])
def test_a_member_that_is_missing(name, archive, checkpoint):
    refused(checkpoint, archive({name: None}), name)


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"[" * 100000, b"\xff", b"1e999"])
def test_a_configuration_that_is_none(content, archive, checkpoint):
    refused(checkpoint, archive({"config.json": content}), "damaged")


def test_two_members_of_one_name(archive, checkpoint):
    path = archive({})
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as opened:
        opened.writestr("config.json", "{}")
    refused(checkpoint, path, "two members named 'config.json'")


def test_an_encrypted_member(archive, checkpoint):
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
    refused(checkpoint, path, "is encrypted")


def test_members_are_never_unpacked_under_their_names(archive, tmp_path, checkpoint):
    path = archive({"../../out.weights.h5": b"x", str(tmp_path / "abs.weights.h5"): b"x"})
    refused(checkpoint, path)
    assert sorted(os.listdir(str(tmp_path))) == ["model.keras"]


@pytest.mark.parametrize("suffix", [".h5", ".weights.h5", ".keras", ".hdf5"])
@pytest.mark.parametrize("content", [b"hello", b"", bytes(100), zlib.compress(b"x" * 999)])
def test_junk_is_called_what_it_is(suffix, content, tmp_path, checkpoint):
    path = tmp_path / ("model" + suffix)
    path.write_bytes(content)
    word = ".keras file" if suffix == ".keras" else "HDF5 file"
    refused(checkpoint, str(path), word if content else "empty")


def test_numbers_in_other_files_are_not_read(tmp_path, checkpoint):
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
    refused(checkpoint, path, "stored in another file")


CRASHES = {
    "crash": (
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "the library that reads it crashed",
    ),
    "abort": ("import os; os.abort()", "the library that reads it crashed"),
    "exit": ("import os; os._exit(1)", "the library that reads it crashed"),
    "silence": ("", "the library that reads it crashed"),
    "noise": ("print('hello')", "the library that reads it crashed"),
    "deep": ("print('[' * 100000)", "the library that reads it crashed"),
    "end": ("import time; time.sleep(600)", "more than"),
}


@pytest.mark.parametrize("what", sorted(CRASHES))
def test_whatever_the_child_does_is_one_line(what, monkeypatch, checkpoint):
    program, words = CRASHES[what]
    monkeypatch.setattr(isolated, "_PROGRAM", program)
    if what == "end":
        monkeypatch.setattr(isolated, "SECONDS", 1)
    refused(checkpoint, path_of("h5"), words)


@pytest.mark.parametrize("limit", ["memory", "time"])
def test_the_child_has_limits(limit, monkeypatch, checkpoint):
    """The real child, made to read in a way that does not end."""
    body = "data = bytes(2**34); data[0]" if limit == "memory" else "\n    while True: pass"
    program = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
        "from tf_lossscale._checkpoint import isolated, keras_files\n"
        f"def read(place): {body}\n"
        "keras_files.read = read\n"
        "isolated.child(*sys.argv[2:-1], '1')\n"
    )
    monkeypatch.setattr(isolated, "_PROGRAM", program)
    refused(checkpoint, path_of("h5"), "bytes of memory" if limit == "memory" else "seconds")


def test_the_child_takes_no_module_from_the_working_directory(tmp_path, monkeypatch, checkpoint):
    (tmp_path / "json.py").write_text("import os; os._exit(1)")
    (tmp_path / "h5py.py").write_text("import os; os._exit(1)")
    monkeypatch.chdir(tmp_path)
    assert checkpoint("inspect", path_of("keras_3_keras"))[0] == 0
