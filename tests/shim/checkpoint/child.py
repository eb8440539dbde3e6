"""The child process of the command, as a program for `fork_server.py`."""

import sys

from tf_lossscale._checkpoint_command import isolated

isolated.child(sys.argv[1])
