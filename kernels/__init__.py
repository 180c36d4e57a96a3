"""Running graphs: kernels for every op, written against an array module, and the programs that call them."""
