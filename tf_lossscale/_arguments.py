"""The argument parser of all commands."""

import argparse
import sys
from typing import Any

__all__ = ["ArgumentParser"]


class ArgumentParser(argparse.ArgumentParser):
    """Raises an error if help cannot be written to stdout; the base class ignores the failure."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)
