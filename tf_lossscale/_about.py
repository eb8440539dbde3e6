"""The version and the address of the distribution, in a module that imports nothing."""

VERSION = "1.0.0"
HOME = ""
"""The address of the repository on GitHub, once it is published. While it is empty, neither the
package page nor a report has links to it."""
