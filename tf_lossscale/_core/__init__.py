"""What the families share: the finite check, the update rules, replicas, and one step."""
