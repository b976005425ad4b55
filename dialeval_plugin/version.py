"""The package's version, in the one place that needs no import."""

__version__ = "0.3.0.dev0"
