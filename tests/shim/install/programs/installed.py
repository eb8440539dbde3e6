"""Runs a program after an installation: `installed.py keep|replace PROGRAM [ARGUMENT ...]`."""

import runpy
import sys

import tf_lossscale

MODE, *ARGUMENTS = sys.argv[1:]
tf_lossscale.install(replace=MODE == "replace")
sys.argv = ARGUMENTS
runpy.run_path(ARGUMENTS[0], run_name="__main__")
