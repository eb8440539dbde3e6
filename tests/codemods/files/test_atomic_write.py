"""Files are replaced atomically and keep their mode and owner."""

import errno
import os
import stat

import pytest
from command_line import FINAL, LEGACY
from tf_lossscale_codemods.files import atomic_write


def names(directory) -> list:
    return sorted(os.listdir(directory))


@pytest.fixture
def path(tmp_path):
    """A file whose content is `old`."""
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o4711, 0o664])
def test_keeps_the_mode(path, mode):
    path.chmod(mode)
    atomic_write.replace(str(path), b"old", b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_keeps_the_owner(path):
    os.chown(path, 1234, 2345)
    atomic_write.replace(str(path), b"old", b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_a_file_whose_owner_cannot_be_kept_is_left(path, monkeypatch):
    real = os.fstat

    def fstat(descriptor):
        fields = list(real(descriptor))
        fields[4] += 1
        return os.stat_result(fields)

    def fchown(descriptor, owner, group):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fstat", fstat)
    monkeypatch.setattr(os, "fchown", fchown)
    with pytest.raises(PermissionError):
        atomic_write.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["a.py"]


def test_keeps_extended_attributes(path):
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    atomic_write.replace(str(path), b"old", b"new")
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_other(path, monkeypatch, function):
    def full(*arguments, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, function, full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["a.py"]


def test_the_rename_comes_after_the_bytes_are_on_the_disk(path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda *a, **k: (done.append("rename"), replace(*a, **k))[1])
    atomic_write.replace(str(path), b"old", b"new")
    assert done[:2] == ["sync", "rename"]


def test_reading_a_pipe_is_an_error_and_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        atomic_write.read(str(tmp_path / "pipe"))


def test_the_command_reports_a_file_that_changes_during_the_run(command_line, monkeypatch):
    from tf_lossscale_codemods.engine import transform as engine

    command_line.write(a=LEGACY, b=LEGACY)
    real = engine.FileWork

    def transform(*arguments):
        with open("a.py", "ab") as file:
            file.write(b"# saved by an editor\n")
        return real(*arguments)

    monkeypatch.setattr(engine, "FileWork", transform)
    ran = command_line.run("migrate", "--write", "a.py")
    assert ran.status == 2
    assert ran.err == "a.py: error: not written: the file changed during the run; run again\n"
    assert command_line.bytes_on_disk() == {
        "a.py": LEGACY + b"# saved by an editor\n",
        "b.py": LEGACY,
    }


def test_the_command_reports_a_file_that_cannot_be_read(command_line, monkeypatch):
    command_line.write(a=LEGACY, b=LEGACY)
    real = atomic_write.read

    def read(path):
        if path.endswith("a.py"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(atomic_write, "read", read)
    ran = command_line.run("migrate", "--write")
    assert ran.status == 2
    assert ran.err == (
        "a.py: error: cannot be read: permission denied; change its mode, or --exclude it\n"
    )
    assert command_line.bytes_on_disk() == {"a.py": LEGACY, "b.py": FINAL}
