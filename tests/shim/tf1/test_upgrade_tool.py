"""What `tf_upgrade_v2` of TensorFlow 1.15 leaves to a person, as docs/guide-tf1.md says."""

import io

import pytest
import support

pytestmark = pytest.mark.skipif(
    support.TF_VERSION >= (2, 0), reason="later versions of the tool write other names"
)

SOURCE = """\
import tensorflow as tf

tf.app.flags.DEFINE_integer("steps", 300, "how many")
hook = tf.train.StopAtStepHook(last_step=300)
"""


def upgraded(source):
    """The source after the tool, and what it says needs attention."""
    from tensorflow.tools.compatibility import ast_edits, tf_upgrade_v2

    tool = ast_edits.ASTCodeUpgrader(tf_upgrade_v2.TFAPIChangeSpec())
    written = io.StringIO()
    _, _, problems = tool.process_opened_file("a.py", io.StringIO(source), "a.py", written)
    return written.getvalue(), problems


def test_flags_and_hooks_are_not_reported():
    after, problems = upgraded(SOURCE)
    assert "tf.app.flags.DEFINE_integer(" in after
    assert "tf.estimator.StopAtStepHook(" in after
    assert not problems


CONTRIB_IMPORTS = """\
import tensorflow.contrib.layers as layers
from tensorflow.contrib import slim
from tensorflow.contrib.framework import nest
"""


def test_imports_from_contrib_are_not_reported():
    after, problems = upgraded(CONTRIB_IMPORTS)
    assert after == CONTRIB_IMPORTS
    assert not problems
    after, problems = upgraded("import tensorflow as tf\n\ntf.contrib.nothing.known()\n")
    assert "ERROR" in "".join(map(str, problems))


def test_flags_without_app_are_an_error():
    after, problems = upgraded(SOURCE.replace("tf.app.flags", "tf.flags"))
    assert "tf.flags.DEFINE_integer(" in after
    assert "ERROR" in "".join(map(str, problems))
