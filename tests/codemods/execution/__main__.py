"""Writes a bundle; see `bundle`. Run with this folder's parent on PYTHONPATH."""

import argparse
import pathlib

from .bundle import BUNDLE, COUNT, write_bundle

parser = argparse.ArgumentParser(prog="python -m execution", description=__doc__)
parser.add_argument("--count", type=int, default=COUNT, help="how many programs")
parser.add_argument("--out", type=pathlib.Path, default=BUNDLE, help="the folder to write to")
arguments = parser.parse_args()
print(write_bundle(arguments.out, arguments.count), "programs")
