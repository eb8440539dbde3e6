"""Maps `codemods/` to the package `tf_lossscale_codemods`, and makes source archives reproducible.

The rest is in setup.cfg. The mapping is code because package discovery cannot rename.
"""

import gzip
import io
import os
import tarfile

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

CODEMODS = "tf_lossscale_codemods"


class ReproducibleArchive(sdist):
    """Writes equal archives of equal files if SOURCE_DATE_EPOCH is set, as wheels do by themselves.

    Setuptools leaves the times of the files and of the build in the archive, and their owner.
    """

    def make_archive(self, *args, **kwargs):
        """Returns the path of the archive."""
        path = super().make_archive(*args, **kwargs)
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch and path.endswith(".tar.gz"):
            _rewrite(path, int(epoch))
        return path


def _rewrite(path, epoch):
    with tarfile.open(path) as archive:
        members = sorted(archive.getmembers(), key=lambda member: member.name)
        contents = [archive.extractfile(one).read() if one.isfile() else b"" for one in members]
    unpacked = io.BytesIO()
    with tarfile.open(fileobj=unpacked, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in zip(members, contents):
            member.mtime, member.pax_headers = epoch, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            archive.addfile(member, io.BytesIO(content))
    with open(path, "wb") as out, gzip.GzipFile("", "wb", fileobj=out, mtime=epoch) as packed:
        packed.write(unpacked.getvalue())


setup(
    cmdclass={"sdist": ReproducibleArchive},
    packages=find_packages(include=["tf_lossscale", "tf_lossscale.*"])
    + [CODEMODS]
    + [CODEMODS + "." + name for name in find_packages("codemods")],
    package_dir={CODEMODS: "codemods"},
    package_data={
        "tf_lossscale": ["py.typed"],
        CODEMODS: ["py.typed", "*.html", "*.json", "**/*.html"],
    },
)
