"""Processes the files of a run, in worker processes, with one decision for each program."""
