"""Finds the loss-scale state in checkpoints and model files, and plans their conversion."""
