"""The command `tf-lossscale`."""
