"""The Keras loss-scale optimizers, for every kind of Keras optimizer."""
