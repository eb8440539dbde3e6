"""Keras loss-scale optimizers, up to Keras 3."""
