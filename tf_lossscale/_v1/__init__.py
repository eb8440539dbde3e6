"""What wraps optimizers of TensorFlow 1: the loss-scale optimizers, and sums over shards."""
