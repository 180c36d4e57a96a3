"""What turns a NumPy program into a graph: symbolic arrays, and what NumPy's functions do on them."""
