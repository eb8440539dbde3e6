"""Turns the bytes of a source into new bytes and findings."""
