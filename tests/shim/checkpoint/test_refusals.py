"""Files that nothing can be restored from: `restore`, `inspect` and `convert` say why.

`restore` leaves the program as it was; the commands end with status 2 and one line.
"""

import contextlib
import glob
import os
import shutil
import zipfile

import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_restore import KINDS, begun, fresh, weights

import tf_lossscale as tfls
from tf_lossscale._restore.optimizers import ProgramOptimizer


@pytest.fixture(autouse=True)
def _eager():
    with recorded.eagerly():
        yield


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A directory with a checkpoint, `ckpt-1`, that `fresh` programs restore."""
    folder = tmp_path_factory.mktemp("intact")
    with recorded.eagerly():
        model, optimizer = begun(sorted(KINDS)[-1], "functional")
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        tf.train.CheckpointManager(checkpoint, str(folder), 1, checkpoint_name="ckpt").save()
    return folder


def cut(path, kept):
    with open(path, "r+b") as file:
        file.truncate(int(os.path.getsize(path) * kept))


def data_of(prefix):
    (path,) = glob.glob(prefix + ".data-*")
    return path


def hdf5(path, **attributes):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["values"] = np.arange(1000.0)
        file.attrs.update(attributes)
    return path


def archive(path):
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("hello.txt", "hello" * 100)
    return path


def written(path, content):
    with open(path, "wb") as file:
        file.write(content)
    return path


# Each makes a file in a directory with a copy of the checkpoint, and returns the path to pass.


def without_index(folder):
    os.remove(os.path.join(folder, "ckpt-1.index"))
    return os.path.join(folder, "ckpt-1.data-00000-of-00001")


def without_shard(folder):
    os.remove(data_of(os.path.join(folder, "ckpt-1")))
    return os.path.join(folder, "ckpt-1")


def of_two_shards(folder):
    """The index names two data files, and one is there."""
    path = data_of(os.path.join(folder, "ckpt-1"))
    os.rename(path, path.replace("of-00001", "of-00002"))
    return os.path.join(folder, "ckpt-1")


def with_cut_data(folder):
    cut(data_of(os.path.join(folder, "ckpt-1")), 0.5)
    return os.path.join(folder, "ckpt-1")


def with_cut_index(folder):
    cut(os.path.join(folder, "ckpt-1.index"), 0.5)
    return os.path.join(folder, "ckpt-1")


def with_index_of_another(folder):
    path = tf.train.Checkpoint(other=tf.Variable(tf.ones([3]))).write(os.path.join(folder, "b"))
    shutil.copy(path + ".index", os.path.join(folder, "ckpt-1.index"))
    return os.path.join(folder, "ckpt-1")


def named_latest_is_missing(folder):
    for path in glob.glob(os.path.join(folder, "ckpt-1.*")):
        os.remove(path)
    return folder


def empty_directory(folder):
    os.mkdir(os.path.join(folder, "empty"))
    return os.path.join(folder, "empty")


def other_directory(folder):
    os.mkdir(os.path.join(folder, "other"))
    written(os.path.join(folder, "other", "notes.txt"), b"hello")
    return os.path.join(folder, "other")


def below_a_file(folder):
    return os.path.join(written(os.path.join(folder, "file"), b"hello"), "ckpt-1")


def pipe(folder):
    os.mkfifo(os.path.join(folder, "pipe"))
    return os.path.join(folder, "pipe")


def saved_model_without_variables(folder):
    os.mkdir(os.path.join(folder, "model"))
    written(os.path.join(folder, "model", "saved_model.pb"), b"")
    return os.path.join(folder, "model")


def cut_hdf5(folder):
    path = hdf5(os.path.join(folder, "w.h5"))
    cut(path, 0.5)
    return path


def cut_archive(folder):
    path = archive(os.path.join(folder, "m.keras"))
    cut(path, 0.5)
    return path


CASES = {
    "a prefix that is not there": (lambda folder: os.path.join(folder, "ckpt-7"), "ckpt-1"),
    "no index": (without_index, "index"),
    "no data": (without_shard, "damaged|truncated or missing|No such file"),
    "a missing shard": (of_two_shards, "damaged|No such file|not found|Unable to open|shard"),
    "half of the data": (with_cut_data, "damaged|Read less bytes"),
    "half of the index": (with_cut_index, "damaged|cannot be read"),
    "the index of another checkpoint": (with_index_of_another, "damaged|checksum"),
    "a directory whose latest is missing": (named_latest_is_missing, "does not exist"),
    "an empty directory": (empty_directory, "neither"),
    "a directory without a checkpoint": (other_directory, "neither"),
    "a path below a file": (below_a_file, "no checkpoint"),
    "a pipe": (pipe, "no checkpoint"),
    "a SavedModel without variables": (saved_model_without_variables, "no variables"),
    "an empty file": (lambda folder: written(os.path.join(folder, "e"), b""), "empty"),
    "a text": (lambda folder: written(os.path.join(folder, "t"), b"hello " * 100), "t: "),
    "a text called .h5": (
        lambda folder: written(os.path.join(folder, "t.h5"), b"hello"),
        "not an HDF5 file",
    ),
    "a text called .keras": (
        lambda folder: written(os.path.join(folder, "t.keras"), b"hello"),
        "not a zip archive",
    ),
    "half of an .h5 file": (cut_hdf5, "truncated|HDF5"),
    "half of a .keras file": (cut_archive, "zip archive is damaged"),
    "a zip that is no .keras file": (
        lambda folder: archive(os.path.join(folder, "z.keras")),
        "not a valid .keras file",
    ),
    "a zip called .h5": (lambda folder: archive(os.path.join(folder, "z.h5")), "not a valid"),
}
# An HDF5 file of another program is no damaged file, so `inspect` finds no loss scale in it.
ONLY_RESTORE = {
    "an .h5 file of another program": (
        lambda folder: hdf5(os.path.join(folder, "o.h5")),
        "is not an .h5 file of weights",
    ),
    "an .h5 file of other layers": (
        lambda folder: hdf5(os.path.join(folder, "l.h5"), layer_names=["a"]),
        "cannot be read",
    ),
}


class Watched:
    """A program whose state can be compared before and after."""

    def __init__(self, model="functional", name="Adam", **options):
        self.model, self.optimizer = fresh(sorted(KINDS)[0], model, name, **options)

    def state(self):
        inner = ProgramOptimizer(self.optimizer)
        names = ("learning_rate", "beta_1", "momentum", "rho", "epsilon")
        attributes = [getattr(inner.inner, name, None) for name in names]
        hyperparameters = [
            value if value is None else recorded.number(value) for value in attributes
        ]
        scale = [float(self.optimizer.loss_scale), int(self.optimizer.dynamic_counter)]
        others = [*hyperparameters, *scale, int(inner.iterations.numpy()), inner.has_slots]
        return [weight.tolist() for weight in weights(self.model)], others


@pytest.fixture(scope="module")
def watched():
    with recorded.eagerly():
        return Watched()


def assert_not_restored(watched, path, words, **options):
    before = watched.state()
    with pytest.raises(tfls.checkpoints.RestoreError, match=words) as caught:
        tfls.checkpoints.restore(path, watched.model, watched.optimizer, **options)
    assert path.partition(".data")[0] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert watched.state() == before


def copied(intact, tmp_path):
    folder = str(tmp_path / "run")
    shutil.copytree(str(intact), folder)
    return folder


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", sorted(CASES))
def test_no_command_takes_it(case, intact, watched, tmp_path, refused):
    make, words = CASES[case]
    path = make(copied(intact, tmp_path))
    assert_not_restored(watched, path, words)
    assert_not_restored(watched, path, words, partial=True)
    stem = path.partition(".data")[0]
    refused(("inspect", stem))
    refused(("convert", stem, tmp_path / "new", "--to", "keras3"))
    assert sorted(os.listdir(str(tmp_path))) == ["run"]


@pytest.mark.parametrize("case", sorted(ONLY_RESTORE))
def test_restore_does_not_take_it(case, intact, watched, tmp_path, checkpoint):
    make, words = ONLY_RESTORE[case]
    path = make(copied(intact, tmp_path))
    assert_not_restored(watched, path, words)
    assert checkpoint("inspect", path)[0] in (1, 2)


PROGRAMS = {
    "another model": (Watched, ["recurrent"], "nothing was restored"),
    "another class of optimizer": (Watched, ["functional", "RMSprop"], "nothing was restored: "),
    "an optimizer with another option": (
        lambda: Watched(amsgrad=True),
        [],
        "no value for vhat of",
    ),
}


@pytest.mark.parametrize("case", sorted(PROGRAMS))
def test_another_program_does_not_take_it(case, intact, tmp_path):
    make, arguments, words = PROGRAMS[case]
    assert_not_restored(make(*arguments), str(intact / "ckpt-1"), words)


@contextlib.contextmanager
def without_privileges():
    """Lets this process read only what everybody may read."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def parents(path):
    """A directory of a test, and those that lead to it."""
    return [str(path), *(str(parent) for parent in path.parents if "pytest-of" in str(parent))]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX only")
@pytest.mark.parametrize("name", ["ckpt-1.index", "ckpt-1.data-00000-of-00001", "m.h5", "m.keras"])
def test_a_file_that_must_not_be_read(name, intact, watched, tmp_path):
    folder = copied(intact, tmp_path)
    hdf5(os.path.join(folder, "m.h5"))
    archive(os.path.join(folder, "m.keras"))
    for path in [folder, *glob.glob(os.path.join(folder, "*")), *parents(tmp_path)]:
        os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)
    os.chmod(os.path.join(folder, name), 0)
    path = os.path.join(folder, "ckpt-1" if name.startswith("ckpt") else name)
    with without_privileges():
        assert_not_restored(watched, path, "(?i)permission denied")
