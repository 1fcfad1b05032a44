"""Which rank of a distributed training this process is, and which processes of this node belong together.

The launcher has left it in the environment, or torch.distributed knows; no other process is asked.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

# Rank, size of the world, rank and size on this node; a step of Slurm does not tell the last.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),  # torchrun, and what does as it does
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH and its kin
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""),
)
# What tells two trainings on one node apart: no two listen on one port.
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
    """Where the program has initialised it."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        rank, size = distributed.get_rank(), distributed.get_world_size()
    except (AttributeError, RuntimeError, ValueError):  # it is just being imported, or its group destroyed
        return None
    return Ranks(rank, size, _number(env, "LOCAL_RANK"), _number(env, "LOCAL_WORLD_SIZE"))


def _namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{name}")
    except OSError:
        return ""


def _group(env: Mapping[str, str], ranks: Ranks) -> str:
    """Containers have networks of their own, where the same port is another one."""
    words = [_namespace("net"), _namespace("pid"), str(ranks.world_size), *(env.get(name, "") for name in _PLACES)]
    if not any(env.get(name) for name in _TELLING):
        words.append(f"parent {os.getppid()}")
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:32]


def ranks_of(env: Mapping[str, str]) -> Ranks:
    found = _of_environment(env) or _of_torch(env) or Ranks()
    if found.world_size == 1 or found.local_world_size == 1:
        return found
    return Ranks(found.rank, found.world_size, found.local_rank, found.local_world_size, _group(env, found))
