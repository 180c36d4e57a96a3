"""TensorFlow kernels."""
