"""Runs a program after an installation: `installed.py keep|replace PROGRAM`."""

import runpy
import sys

import tf_lossscale

tf_lossscale.install(replace=sys.argv[1] == "replace")
runpy.run_path(sys.argv[2], run_name="__main__")
