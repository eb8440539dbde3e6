"""Experimental policies."""

__all__: "list[str]" = []
