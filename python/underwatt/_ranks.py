"""The rank of this process in a distributed training, and the processes of this node that belong together.

Read from the launcher's environment variables, or from torch.distributed; no other process is queried.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

# Rank, size of the world, rank and size on this node; a Slurm step does not set the last.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),  # torchrun and compatible launchers
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH and its derivatives
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""),
)
# Distinguishes two trainings on one node: they use different ports.
_PLACES = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID")
_TELLING = ("MASTER_PORT", "PMIX_NAMESPACE", "SLURM_STEP_ID")


@dataclass(frozen=True, slots=True)
class Ranks:
    rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    local_world_size: int | None = None
    group: str = ""
    """The same text in all processes of the training on this node; "": this process is alone."""


def _number(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name, "")
    return int(text) if text.isdecimal() else None


def _of_environment(env: Mapping[str, str]) -> Ranks | None:
    for rank_name, size_name, local_rank_name, local_size_name in _LAUNCHERS:
        rank, size = _number(env, rank_name), _number(env, size_name)
        if rank is not None and size is not None and rank < size:
            return Ranks(rank, size, _number(env, local_rank_name), _number(env, local_size_name))
    return None


def _of_torch(env: Mapping[str, str]) -> Ranks | None:
    """The values of torch.distributed, if the program has initialised it."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        rank, size = distributed.get_rank(), distributed.get_world_size()
    except (AttributeError, RuntimeError, ValueError):  # it is being imported, or its group was destroyed
        return None
    return Ranks(rank, size, _number(env, "LOCAL_RANK"), _number(env, "LOCAL_WORLD_SIZE"))


def _namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{name}")
    except OSError:
        return ""


def _group(env: Mapping[str, str], ranks: Ranks) -> str:
    """Includes the network namespace: in another container the same port belongs to another training."""
    words = [_namespace("net"), _namespace("pid"), str(ranks.world_size), *(env.get(name, "") for name in _PLACES)]
    if not any(env.get(name) for name in _TELLING):
        words.append(f"parent {os.getppid()}")
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:32]


def ranks_of(env: Mapping[str, str]) -> Ranks:
    found = _of_environment(env) or _of_torch(env) or Ranks()
    if found.world_size == 1 or found.local_world_size == 1:
        return found
    return Ranks(found.rank, found.world_size, found.local_rank, found.local_world_size, _group(env, found))
