"""The Keras loss-scale optimizers over every kind of Keras optimizer."""
