"""The command `tf-lossscale checkpoint`, and the child process that reads files for it."""
