"""How many FLOPs of a run are computed in which dtype, by the shapes that values really have."""

from collections import Counter

from ampgraph.graph import Node
from ampgraph.kernels import flops

#: The ops that are counted.
HEAVY = frozenset(["Conv", "ConvTranspose", "MatMul", "Gemm"])


class FlopCounter(flops.FlopCounter):
    """Counts the FLOPs of Conv, ConvTranspose, MatMul and Gemm, two for a multiply-add; give :meth:`see` to a program."""

    @property
    def by_dtype(self) -> Counter[str]:
        """FLOPs by the widest float dtype among the first two operands; nodes as often as they ran."""
        found: Counter[str] = Counter()
        for node, count in self.by_node.items():
            if node.domain or node.op_type not in HEAVY:
                continue
            found[_widest(node)] += count
        return found


def _widest(node: Node) -> str:
    dtypes = [operand.dtype for operand in node.inputs[:2] if operand is not None]
    widest = max((dtype for dtype in dtypes if dtype is not None), key=lambda dtype: dtype.bits, default=None)
    return "unknown" if widest is None else widest.name
