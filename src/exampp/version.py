"""The version of exampp."""

__version__ = "0.1.0"
