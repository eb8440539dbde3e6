"""Executes a program of several files, as a program for `fork_server.py`: what it replaces goes."""

import json
import sys

from programs.execution import execute_files

print(json.dumps(execute_files(json.loads(sys.argv[1]), sys.argv[2])))
