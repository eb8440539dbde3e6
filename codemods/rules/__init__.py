"""One folder for each family, one file for each rule; the file's name is the rule's slug."""
