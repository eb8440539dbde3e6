"""`tf-lossscale checkpoint`: inspects and converts the loss-scale state in checkpoints."""
