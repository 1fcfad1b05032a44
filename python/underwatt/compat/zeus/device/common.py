"""Old names of methods, and the rights of this process."""

from __future__ import annotations

import abc
import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_CAP_SYS_ADMIN = 21  # linux/capability.h

Function = TypeVar("Function", bound=Callable[..., Any])


@functools.lru_cache(maxsize=1)
def has_sys_admin() -> bool:
    """Whether this process has CAP_SYS_ADMIN, which drivers require to set a limit."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            masks = [line.split()[1] for line in status if line.startswith("CapEff:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) >> _CAP_SYS_ADMIN & 1)


def deprecated_alias(old_name: str) -> Callable[[Function], Function]:
    """Gives the method this older name, too: for classes whose metaclass is DeprecatedAliasABCMeta."""

    def mark(function: Function) -> Function:
        function._deprecated_alias = old_name  # type: ignore[attr-defined]
        return function

    return mark


def _alias(function: Callable[..., Any], old_name: str, new_name: str) -> Callable[..., Any]:
    warned: list[bool] = []

    @functools.wraps(function, updated=())
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not warned:
            warned.append(True)
            warnings.warn(f"{old_name}() is an old name of {new_name}()", DeprecationWarning, stacklevel=2)
        return getattr(self, new_name)(*args, **kwargs)

    return call


class DeprecatedAliasABCMeta(abc.ABCMeta):
    """ABCMeta that also creates the old names; each warns once."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> DeprecatedAliasABCMeta:
        cls = super().__new__(mcs, name, bases, namespace)
        for new_name, function in namespace.items():
            old_name = getattr(function, "_deprecated_alias", None)
            if isinstance(old_name, str):
                setattr(cls, old_name, _alias(function, old_name, new_name))
        return cls
