"""Jupyter notebooks: their cells as sources, with everything else left byte for byte."""

__all__: "list[str]" = []
