"""Records the steps of a program's own training, for `tf-lossscale compare`."""
