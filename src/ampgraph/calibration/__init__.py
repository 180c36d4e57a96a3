"""Calibration: measure a graph on data, rewrite it, run the result, and keep more in float32 until its outputs are right.

The only part besides the command line that drives both the rewrite and the executor; :func:`ampgraph.calibrate` is its function.
"""
