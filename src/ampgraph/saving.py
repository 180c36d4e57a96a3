"""Saving graphs, training steps included."""

import os
from collections.abc import Sequence

from ampgraph.graph.formats import files
from ampgraph.graph.graph import Graph


def save(
    graph: Graph | Sequence[Graph],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool | None = None,
    external_data: bool | None = None,
) -> None:
    """Save a graph. The file (or folder) appears complete or not at all; an older one survives errors.

    Args:
        graph: The graph; or, for a SavedModel with several meta graphs, all that shall replace the old ones. For TensorFlow, its
            training steps are written in TensorFlow's ops: see :func:`~ampgraph.train.lowering.lower_apply_gradients`.
        path: As for :func:`load`. A path that ends in ``/`` or has no suffix means a SavedModel; one with an unknown suffix
            too, if the graph came from one.
        format: What :func:`load` takes as format, whatever the suffix says.
        overwrite: Whether something may be replaced; None replaces files but no folders.
        external_data: For ONNX, whether constants go to a data file beside the model; None does so for those over 2 GB,
            and for those over 64 MiB that had a data file when they were loaded.

    Raises:
        FormatError: If the format cannot hold the graph, the suffix is unknown or the target cannot be written.
        GraphError: If it is no graph.
    """
    files.save(graph, path, format=format, overwrite=overwrite, external_data=external_data, prepare=_for_tensorflow)


def _for_tensorflow(graph: Graph) -> Graph:
    if all(node.domain != "ampgraph" for part in graph.all_graphs() for node in part.nodes):
        return graph  # most do not train, and need not wait for what follows
    from ampgraph.train.lowering import lower_apply_gradients

    return lower_apply_gradients(graph)
