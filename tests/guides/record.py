"""Records what the program of a guide writes on the old TensorFlow, from which `new` continues.

    python tests/guides/record.py guide-tf1      (in its environment `old`)

The result is in `tests/data/guides`.
"""

import gzip
import pathlib
import shutil
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "claims"))

from follow_guide import ROOT, Command, Follower, Step, section_of, steps_of

WRITTEN = {
    "guide-tf1": ["1.15*.jsonl", "start", "run"],
    "guide-keras": ["2.8*.jsonl", "start.h5", "trained.h5"],
    "guide-half-trained": ["run"],
}
"""The files that the later steps read, as patterns."""


def record(name: str):
    target = ROOT / "tests" / "data" / "guides" / (name.partition("-")[2] + ".tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        example = pathlib.Path(folder, "example")
        shutil.copytree(str(ROOT / "examples" / name), str(example))
        following = Follower(example, {"old": [str(pathlib.Path(sys.executable).parent)]})
        steps = [_half_trained()] if name == "guide-half-trained" else steps_of(name)
        # A later step commits what `migrate` writes in `new`, and the page need not show it.
        while all(getattr(part, "environment", "new") == "new" for part in steps[-1].parts):
            steps.pop()
        for step in steps:
            following.follow(step)
        with gzip.GzipFile(str(target), "wb", mtime=0) as file, tarfile.open(
            fileobj=file, mode="w"
        ) as archive:
            for pattern in WRITTEN[name]:
                for path in sorted(example.glob(pattern)):
                    archive.add(str(path), path.name, filter=_without_owner)


def _half_trained() -> Step:
    """What the section about a half-trained run does on the old TensorFlow."""
    section = section_of("guide-keras", "Your half-trained run")
    commands = [part for part in section.parts if isinstance(part, Command)]
    return Step(0, [command for command in commands if command.environment != "new"])


def _without_owner(member: tarfile.TarInfo) -> "tarfile.TarInfo | None":
    if member.name.endswith(".meta"):  # the graph, which no step reads
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    record(sys.argv[1])
