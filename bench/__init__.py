"""Benchmarks of ampgraph: ``python -m bench`` in the root of a checkout lists them.

Times are of this machine and this minute; what may be quoted are ratios of things measured in the same run.
"""
