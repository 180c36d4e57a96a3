"""Training side by side: float32, and mixed precision in float16 and bfloat16. ``python -m examples.mlp`` runs one."""
