"""Edits that several rules share, and the proposals that contain them."""

__all__: "list[str]" = []
