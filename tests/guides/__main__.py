"""Follows the guides from start to end, in new environments, with a wheel of this package.

    python tests/guides FOLDER_OF_THE_WHEEL [GUIDE ...]

Needs the interpreters that the guides name, and downloads several versions of TensorFlow.
"""

import pathlib
import shutil
import sys
import tempfile
import time
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "claims"))

from follow_guide import ROOT, Follower, Step, section_of, steps_of

GUIDES = ("guide-tf1", "guide-keras", "guide-half-trained")


def steps(name: str) -> List[Step]:
    """The steps of a guide; the example of a half-trained run has a section of its own."""
    if name == "guide-half-trained":
        return [section_of("guide-keras", "Your half-trained run")]
    return steps_of(name)


def follow(name: str, wheels: pathlib.Path):
    with tempfile.TemporaryDirectory() as folder:
        example = pathlib.Path(folder, "example")
        shutil.copytree(str(ROOT / "examples" / name), str(example))
        following = Follower(
            example,
            {
                environment: [str(pathlib.Path(folder, environment, "bin"))]
                for environment in ("old", "new")
            },
            {"PIP_FIND_LINKS": str(wheels.resolve()), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            sets_up=True,
        )
        for step in steps(name):
            start = time.monotonic()
            following.follow(step)
            print(f"{name}: step {step.number} ({time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    for guide in sys.argv[2:] or GUIDES:
        follow(guide, pathlib.Path(sys.argv[1]))
