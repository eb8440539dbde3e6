"""`install()` and `uninstall()`: the legacy paths back under `tensorflow` itself."""
