"""Finds, reads and replaces files, and compares them with git."""
