"""Decides, from the facts of all files, what each program gets. Nothing here reads a file."""
