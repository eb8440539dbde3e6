"""The fixtures of all tests of the codemods."""

import from_source  # noqa: F401 - makes the package importable
import pytest

pytest.register_assert_rewrite("command_line", "file_system", "verbs")

from command_line import command_line, legacy, warm  # noqa: E402, F401
from file_system import committed, home, repository  # noqa: E402, F401
