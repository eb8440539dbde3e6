"""`tf-lossscale checkpoint`: what loss-scale state a file holds, and a copy for another class."""
