"""Automatic mixed precision for dataflow graphs."""

__version__ = "0.1.0"
