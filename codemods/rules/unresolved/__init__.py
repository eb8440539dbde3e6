"""What cannot be determined from the source."""
