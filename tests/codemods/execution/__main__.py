"""Migrates the programs of the bundles again: `make programs`."""

from .bundle import BUNDLES, read, write
from .migration import migrated_anew

for name in BUNDLES:
    write(name, migrated_anew(name, read(name)))
