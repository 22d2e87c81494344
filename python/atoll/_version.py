"""The version of the package: that of the library that it calls."""

__version__ = "0.2.0"
