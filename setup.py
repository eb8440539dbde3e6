"""The parts of the metadata that setup.cfg cannot express, and a reproducible source archive.

The top-level folder `codemods/` becomes the package `tf_lossscale_codemods`: package discovery
cannot rename. The README, whose links are relative, becomes the package page: there, they lead to
the address in `tf_lossscale/_about.py`, or become plain text while that is empty.
"""

import gzip
import io
import os
import re
import runpy
import tarfile

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

CODEMODS = "tf_lossscale_codemods"
HERE = os.path.dirname(os.path.abspath(__file__))
HOME = runpy.run_path(os.path.join(HERE, "tf_lossscale", "_about.py"))["HOME"]


def package_page(text, home):
    """Returns the README with links that work outside of the repository."""
    link = rf"[\1]({home}/blob/main/\2)" if home else r"\1"
    return re.sub(r"\[([^\]]*)\]\((?!https?:)([^)]*)\)", link, text)


def addresses(home):
    """Returns the addresses that an index shows beside the page."""
    if not home:
        return {}
    return {
        "url": home,
        "project_urls": {
            "Documentation": home + "/blob/main/docs/index.md",
            "Changelog": home + "/blob/main/CHANGELOG.md",
            "Issues": home + "/issues",
        },
    }


with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
    PAGE = package_page(readme.read(), HOME)


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
        contents = [
            archive.extractfile(member).read() if member.isfile() else b"" for member in members
        ]
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
    long_description=PAGE,
    cmdclass={"sdist": ReproducibleArchive},
    packages=find_packages(include=["tf_lossscale", "tf_lossscale.*"])
    + [CODEMODS]
    + [CODEMODS + "." + name for name in find_packages("codemods")],
    package_dir={CODEMODS: "codemods"},
    package_data={
        "tf_lossscale": ["py.typed", "_records/page.html"],
        CODEMODS: ["py.typed", "*.html", "*.json", "**/*.html"],
    },
    **addresses(HOME),
)
