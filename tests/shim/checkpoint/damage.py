"""Damages files: truncates them, or changes a byte."""

import random

__all__ = ["damages"]

CASES = {"small": 8, "long": 100}  # of each, one or two processes


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
