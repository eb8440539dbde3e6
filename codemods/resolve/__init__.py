"""Resolves the names of a program to legacy symbols. Nothing here edits the code."""
