"""Copy the outputs of earlier pipeline steps to the host that runs a worker."""

import os
from pathlib import Path

from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.system.files import durable_files
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.remove_folder import remove_folder


def bring_inputs(place: HostFolder, remote: str, ref: str) -> None:
    """Write the files of a ref next to the worker's clone, unless they already exist.

    Without a ref, the folder stays empty, but the sandbox needs it.
    """
    mark = place.path / "inputs-ref"
    if durable_files.read_bytes(mark) == ref.encode() and place.inputs.is_dir():
        return
    if place.inputs.is_dir():
        remove_folder(place.inputs)
    durable_files.make_folder(place.inputs)
    if ref:
        copy = WorkingCopy(place.work)
        commit = RemoteRepository(remote, ref).look().work
        if not copy.has(commit):
            RemoteRepository(remote, ref).fetch(copy, ref)
        write_tree(copy, commit, place.inputs)
    durable_files.replace_file(mark, ref.encode())


def write_tree(copy: WorkingCopy, commit: str, folder: Path) -> None:
    """Write a commit's files to a folder, except files that already exist."""
    for entry in copy.call("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        about, _, name = entry.partition(b"\t")
        if not about.startswith(b"100"):
            continue  # a link, or the empty string at the end
        path = folder / os.fsdecode(name)
        if not path.exists():
            blob = os.fsdecode(about.split()[2])
            make_folders(path.parent)
            durable_files.replace_file(path, copy.call("cat-file", "blob", blob), root=folder)


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            durable_files.make_folder(folder)
