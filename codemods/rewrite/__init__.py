"""Edits that several rules share, and the proposals that contain them."""
