"""Edits that several rules need, and the proposals that hold them."""

__all__: "list[str]" = []
