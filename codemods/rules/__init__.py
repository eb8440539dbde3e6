"""One rule per file; the file's name is the rule's slug. `registry` discovers them."""

__all__: "list[str]" = []
