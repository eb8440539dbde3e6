"""Counts the skipped steps of loss-scale optimizers, and names the variables to blame."""
