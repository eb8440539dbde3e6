"""Restores files of either Keras into the model and the optimizer of a program."""
