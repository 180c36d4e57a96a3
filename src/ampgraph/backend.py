"""Runs ONNX's own backend tests: ``prepare``, ``run_model`` and ``supports_device`` of ``onnx.backend.base``."""

from ampgraph.kernels.onnx_backend import AmpgraphBackend, prepare, run_model, supports_device

__all__ = ["AmpgraphBackend", "prepare", "run_model", "supports_device"]
