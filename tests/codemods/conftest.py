"""The fixtures of all tests of the codemods."""

import from_source  # noqa: F401 - imported for its effect: it makes the package importable
import pytest

pytest.register_assert_rewrite("command_line", "file_system", "verbs")

# Fixtures, which pytest finds here; after the line above, since an import ends the rewriting.
from command_line import command_line, legacy, warm  # noqa: E402, F401 - see above
from file_system import calls, committed, home, repository  # noqa: E402, F401 - see above
