"""Executes programs of several files, as a program for `fork_server.py`: what they replace goes.

The argument is a file with a JSON list of pairs: the sources by their paths, and an empty folder.
"""

import json
import sys

from programs.execution import execute_files

with open(sys.argv[1]) as listed:
    print(json.dumps([execute_files(files, folder) for files, folder in json.load(listed)]))
