"""The TensorFlow that is installed beside the command, from its metadata; it is not imported."""

from __future__ import annotations

import os
from importlib import metadata
from typing import Optional

from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES

from .specifiers import PACKAGES, keras_of

__all__ = ["installed_keras", "version_of"]


def version_of(package: str) -> Optional[str]:
    """The version of an installed distribution; None if it is not installed."""
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None


def installed_keras() -> Optional[tuple[int, str]]:
    """The Keras version of the installed TensorFlow and the reason; None without TensorFlow."""
    names = [name for name, family in PACKAGES.items() if family == "tensorflow"]
    versions = {name: version_of(name) for name in names}
    found = [(name, version) for name, version in versions.items() if version]
    for name, version in found:
        keras = keras_of("tensorflow", f"=={version}")
        if keras is None:
            continue
        words = f"{name} {version} is installed"
        value = os.environ.get(LEGACY_KERAS)
        if keras == 3 and value in LEGACY_KERAS_VALUES:
            return 2, f"{words}, and {LEGACY_KERAS}={value} is set in the environment"
        beside = version_of("keras")
        return keras, f"{name} {version} and keras {beside} are installed" if beside else words
    return None
