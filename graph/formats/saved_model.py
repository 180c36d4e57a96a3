"""SavedModel folders: the graph is read and replaced, everything else in the folder is carried over untouched."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..graph import Graph
from .tensorflow import parse, serialize, write_graph_def
from .tf_meta import GraphMeta

_NAMES = {"saved_model.pb": False, "saved_model.pbtxt": True}
# A hash of the graph as it was; TensorFlow loads models without it.
_LEFT_OUT = {*_NAMES, "fingerprint.pb"}


class Source:
    """Where a graph came from: the folder, its message, and which meta graph of it."""

    def __init__(self, folder: Path, proto: Any, index: int, text: bool) -> None:
        self.folder = folder
        self.proto = proto
        self.index = index
        self.text = text


def read_saved_model(folder: Path, *, outputs: Sequence[str] | None = None, tags: Sequence[str] | None = None) -> Graph:
    """Read the graph of a SavedModel.

    Its outputs are those of the model's signatures, called ``"key"`` or, with several signatures, ``"signature/key"``.
    ``graph.attributes["preserved"]`` names the nodes that the rest of the model refers to: feeds, fetches, the saver's and
    initialisation nodes, variables.

    Args:
        folder: The folder with ``saved_model.pb`` or ``saved_model.pbtxt``.
        outputs: Names of values to use as outputs instead.
        tags: The tags of the meta graph to read; may be left out if there is one.

    Raises:
        FormatError: If the folder is no SavedModel, it is damaged, or the tags do not choose one meta graph.
    """
    proto, text = _read_message(folder)
    return _read_meta_graph(Source(Path(os.path.realpath(folder)), proto, _choose(proto, tags), text), outputs)


def read_saved_models(folder: Path, *, outputs: Sequence[str] | None = None) -> list[Graph]:
    """Read the graphs of all meta graphs of a SavedModel, in the order of the file, as :func:`read_saved_model` reads one.

    Raises:
        FormatError: If the folder is no SavedModel, it is damaged, or it holds no meta graph.
    """
    proto, text = _read_message(folder)
    if not proto.meta_graphs:
        raise FormatError("The SavedModel holds no meta graph.")
    real = Path(os.path.realpath(folder))
    return [_read_meta_graph(Source(real, proto, index, text), outputs) for index in range(len(proto.meta_graphs))]


def _read_meta_graph(source: Source, outputs: Sequence[str] | None) -> Graph:
    from .tf_read import choose_outputs, preserve, read_message

    meta = source.proto.meta_graphs[source.index]
    labels, values = _signature_outputs(meta)
    graph = read_message(meta.graph_def, outputs=outputs if outputs is not None else [] if values else None)
    if outputs is None and values:
        choose_outputs(graph, values, labels)
    names = {node.name for node in graph.nodes}
    preserve(graph, [name for name in map(_node_name, _referred(meta)) if name in names])
    graph.meta = GraphMeta(graph.meta.template, graph.meta.spelling, source)
    return graph


def _read_message(folder: Path) -> tuple[Any, bool]:
    """Return the ``SavedModel`` message of a folder, and whether it was in text form."""
    found = [name for name in _NAMES if (folder / name).is_file()]
    if not found:
        raise FormatError(
            "The folder holds no saved_model.pb, so it is not a SavedModel. Name the folder that directly contains it."
        )
    text = _NAMES[found[0]]
    return parse("SavedModel", (folder / found[0]).read_bytes(), text), text


def _choose(proto: Any, tags: Sequence[str] | None) -> int:
    """Return which meta graph has exactly these tags."""
    all_tags = [set(meta.meta_info_def.tags) for meta in proto.meta_graphs]
    chosen = [i for i, found in enumerate(all_tags) if tags is None or found == set(tags)]
    if len(chosen) == 1:
        return chosen[0]
    there = "; ".join(",".join(sorted(found)) or "(no tags)" for found in all_tags) or "none"
    wanted = "no tags" if tags is None else f"tags {sorted(tags)}"
    raise FormatError(f"Tags must choose one meta graph of the SavedModel, which has: {there}. Received: {wanted}")


def _tensor_names(info: Any) -> list[str]:
    """Return the values that a ``TensorInfo`` is made of."""
    encoding = info.WhichOneof("encoding")
    if encoding == "name":
        return [info.name] if info.name else []
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        return [sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name]
    if encoding == "composite_tensor":
        return [name for component in info.composite_tensor.components for name in _tensor_names(component)]
    return []


def _signature_outputs(meta: Any) -> tuple[list[str], list[str]]:
    """Return labels and value names of all signature outputs, in a fixed order."""
    labels, values = [], []
    signatures = {key: meta.signature_def[key] for key in sorted(meta.signature_def) if not key.startswith("__saved_model_")}
    several = sum(bool(signature.outputs) for signature in signatures.values()) > 1
    for key, signature in signatures.items():
        for output in sorted(signature.outputs):
            names = _tensor_names(signature.outputs[output])
            for i, name in enumerate(names):
                label = f"{key}/{output}" if several else output
                labels.append(f"{label}/{i}" if len(names) > 1 else label)
                values.append(name)
    return labels, values


def _referred(meta: Any) -> Iterator[str]:
    """Iterate over the node and value names that the model outside the graph refers to."""
    for signature in meta.signature_def.values():
        for infos in (signature.inputs, signature.outputs):
            for info in infos.values():
                yield from _tensor_names(info)
    saver = meta.saver_def
    yield from (saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name)
    for asset in meta.asset_file_def:
        yield from _tensor_names(asset.tensor_info)
    for key, collection in meta.collection_def.items():
        yield from collection.node_list.value
        if "variables" in key:
            for data in collection.bytes_list.value:
                try:
                    variable = parse("VariableDef", data, text=False)
                except FormatError:  # somebody else's collection
                    continue
                yield from (variable.variable_name, variable.initializer_name, variable.snapshot_name)


def _node_name(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def write_saved_model(graphs: Sequence[Graph], target: Path, *, overwrite: bool = False) -> None:
    """Write the SavedModel that the graphs were read from, with these graphs replaced, to another folder.

    Variables, assets and everything else are copied, except ``fingerprint.pb``, a hash of the old graph. The folder appears
    complete or not at all.

    Args:
        graphs: Graphs from :func:`read_saved_model` of one folder, or rewritten copies of them; meta graphs that none of
            them came from stay as they are.
        target: Folder to create.
        overwrite: Whether ``target`` may be an existing SavedModel, which is then replaced.

    Raises:
        FormatError: If the graphs did not come from one SavedModel, the target is taken or overlaps the source, the source
            holds links out of its folder, or a file cannot be read or written.
    """
    sources = [graph.meta.saved_model if isinstance(graph.meta, GraphMeta) else None for graph in graphs]
    source = sources[0] if sources else None
    if not isinstance(source, Source):
        raise FormatError(
            "Only a graph that was loaded from a SavedModel can be saved as one, "
            "and a name without suffix means one. Add .pb, for example."
        )
    if not all(isinstance(other, Source) and other.folder == source.folder for other in sources):
        raise FormatError("Graphs that are saved together must have been loaded from the same SavedModel.")
    target = Path(os.path.realpath(target))
    if target == source.folder or source.folder in target.parents or target in source.folder.parents:
        raise FormatError(f"The target overlaps the SavedModel {source.folder} that the graph came from. Name another folder.")
    _check_free(target, overwrite)
    proto = type(source.proto)()
    proto.CopyFrom(source.proto)
    for graph in graphs:
        proto.meta_graphs[graph.meta.saved_model.index].graph_def.CopyFrom(write_graph_def(graph))
    data = serialize(proto, text=source.text)
    temporary = _sibling(target)
    try:
        temporary.mkdir()
        _copy_folder(source.folder, temporary, source.folder)
        with open(temporary / ("saved_model.pbtxt" if source.text else "saved_model.pb"), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _move(temporary, target)
    except OSError as error:
        raise FormatError(f"The SavedModel cannot be written: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_free(target: Path, overwrite: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise FormatError("The target is a file; a SavedModel is a folder. Name another folder.")
    if not any(target.iterdir()):
        return
    if not any((target / name).is_file() for name in _NAMES):
        raise FormatError("The target folder is neither empty nor a SavedModel. Name another folder.")
    if not overwrite:
        raise FormatError(
            "The target folder already holds a SavedModel. Name another folder, or allow overwriting (--overwrite, overwrite=True)."
        )


def _sibling(target: Path) -> Path:
    """Return a free hidden name beside ``target``, on the same file system."""
    return target.with_name(f".{target.name[:200]}.{os.urandom(6).hex()}.tmp")


def _copy_folder(folder: Path, target: Path, root: Path) -> None:
    """Copy files and folders; links only to files inside ``root``."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if folder == root and entry.name in _LEFT_OUT:
            continue
        if entry.is_dir(follow_symlinks=False):
            (target / entry.name).mkdir()
            _copy_folder(folder / entry.name, target / entry.name, root)
            continue
        real = Path(os.path.realpath(entry.path))
        if not real.is_file() or root not in real.parents:
            raise FormatError(f"{entry.path} is no regular file inside the SavedModel (a link out of it?), so it is not copied.")
        shutil.copyfile(real, target / entry.name)


def _move(temporary: Path, target: Path) -> None:
    """Put the finished folder in place; an old one is put back if that fails."""
    if not target.exists():
        temporary.rename(target)
        return
    old = _sibling(target)
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
