"""`tf-lossscale doctor`: shows the names that TensorFlow has and those that the shim supplies."""

import platform
import sys
from typing import Any, List, Tuple

from tf_lossscale import _paths
from tf_lossscale._about import VERSION

__all__ = ["migration_target", "report"]


def report() -> int:
    """Prints the report; returns the exit status, which is 1 if TensorFlow is missing."""
    print(f"tf-lossscale   {VERSION}")
    print(f"Python         {platform.python_version()}")
    try:
        from tf_lossscale._versions.base import tf
        from tf_lossscale._versions.keras import keras_packages
    except ImportError as error:
        print("TensorFlow     none")
        print(f"migrate        {migration_target()}")
        sys.stdout.flush()  # if that fails, it is the only message
        print(f"\n{error}", file=sys.stderr)
        return 1
    print(f"TensorFlow     {tf.__version__}")
    for name, version in keras_packages():
        print(f"{name:<14} {version}")
    print(f"migrate        {migration_target()}")
    rows = [(namespace, *_split(tf, namespace)) for namespace in _paths.NAMESPACES]
    width = max(len(row[0]) for row in rows) + len("tf.")
    print("\nNames in this TensorFlow, and names that `import tf_lossscale as tfls` supplies:")
    for namespace, present, supplied in rows:
        print(f"\n{'tf.' + namespace:<{width}}")
        if present:
            print(f"  in TensorFlow    {', '.join(present)}")
        if supplied:
            print(f"  from the shim    {', '.join(supplied)}")
    print(
        "\n`tf-lossscale run SCRIPT` runs a script with the missing names supplied;"
        "\n`tf-lossscale migrate` rewrites code that uses them."
    )
    return 0


def migration_target() -> str:
    """The Keras version that `migrate` targets in the working directory, and why."""
    if sys.version_info < (3, 9):
        return "not available: it needs Python 3.9 or later"
    try:
        from tf_lossscale_codemods.cli.search import keras_of_directory
        from tf_lossscale_codemods.cli.settings import SettingsError
    except ImportError as error:  # in the source folder, where the codemods have another name
        return f"not available: {error}"
    try:
        return keras_of_directory()
    except (SettingsError, OSError) as error:
        return f"cannot run here: {error}"


def _split(tensorflow: Any, namespace: str) -> Tuple[List[str], List[str]]:
    """The names of a namespace that TensorFlow has, and those that it lacks."""
    owner = tensorflow
    for part in namespace.split("."):
        owner = getattr(owner, part, None)
    present: List[str] = []
    supplied: List[str] = []
    for name in sorted(_paths.NAMESPACES[namespace]):
        (present if hasattr(owner, name) else supplied).append(name)
    return present, supplied
