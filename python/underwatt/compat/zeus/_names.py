"""Names of modules: reports missing ones, and redirects `zeus` to this package if requested."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

MODULES = ("callback", "device", "exception", "metric", "monitor", "optimizer", "profile", "show_env", "utils")

_SCOPE = {
    "_legacy": "the older experiments are",
    "device.cpu.emi": "processors of Windows are",
    **dict.fromkeys(
        ("device.gpu.amd", "device.gpu.AMDGPUs", "device.gpu.amdsmi_is_available"), "AMD's boards by amdsmi are"
    ),
    **dict.fromkeys(
        (f"device.soc.{x}" for x in ("apple", "AppleSilicon", "ZeusAppleInitError", "apple_silicon_is_available")),
        "Apple's processors are",
    ),
    **dict.fromkeys(
        (f"device.soc.{x}" for x in ("jetson", "Jetson", "ZeusJetsonInitError", "jetson_is_available")),
        "Jetson boards are",
    ),
    "monitor.power_streaming": "clients of several zeusds are",
    "optimizer.batch_size": "the batch size optimizer is",
    "optimizer.pipeline_frequency": "the pipeline frequency optimizer is",
    "utils.async_utils": "helpers of the batch size and pipeline servers are",
    "utils.logging": "helpers of the older experiments are",
    "utils.lr_scaler": "helpers of the batch size optimizer are",
    "utils.multiprocessing": "warnings of processes that monitors spawn (none is spawned here) are",
    "utils.pydantic_v1": "helpers of the batch size and pipeline servers are",
    "utils.zeusd": "clients of zeusd are",
}

_Spec = importlib.machinery.ModuleSpec


def missing(name: str) -> ModuleNotFoundError:
    """The error for a module that this package does not have; name: without "zeus.".  _SCOPE lists what Zeus has in
    addition."""
    parts = name.split(".")
    text = f"there is no zeus.{name}, neither in underwatt.compat.zeus nor in Zeus 0.16 (docs/zeus.md)"
    for n in range(len(parts), 0, -1):
        scope = _SCOPE.get(".".join(parts[:n]))
        if scope:
            text = f"zeus.{name} is missing in underwatt.compat.zeus: {scope} out of scope (docs/zeus.md)"
            break
    return ModuleNotFoundError(text, name=f"zeus.{name}")


class _Alias(importlib.abc.InspectLoader):
    """Loads zeus.X as the module underwatt.compat.zeus.X: one module under two names."""

    def __init__(self, real: str, spec: _Spec) -> None:
        self._real = real
        self._spec = spec
        self._own: _Spec | None = None

    def create_module(self, spec: _Spec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # the import system has set that of the alias

    # For python -m zeus.X.

    def is_package(self, fullname: str) -> bool:
        return self._spec.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        loader = self._spec.loader
        return loader.get_code(self._real) if isinstance(loader, importlib.abc.InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        loader = self._spec.loader
        return loader.get_source(self._real) if isinstance(loader, importlib.abc.InspectLoader) else None


class _Missing(importlib.abc.MetaPathFinder):
    """The last finder: called for modules that no other finder has found."""

    def __init__(self, package: str) -> None:
        self._own = f"{package}."

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> _Spec | None:
        if fullname.startswith(self._own):
            raise missing(fullname[len(self._own) :])
        return None


class _Names(importlib.abc.MetaPathFinder):
    """The first finder: PathFinder would load the files a second time, as separate modules."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> _Spec | None:
        if not fullname.startswith("zeus.") or sys.modules.get("zeus") is not sys.modules[self._package]:
            return None
        real = f"{self._package}.{fullname[len('zeus.') :]}"
        spec = importlib.util.find_spec(real)
        if spec is None:
            raise missing(fullname[len("zeus.") :])
        return importlib.util.spec_from_loader(
            fullname, _Alias(real, spec), origin=spec.origin, is_package=spec.submodule_search_locations is not None
        )


def install(package: str) -> None:
    """Called once per process."""
    if not any(isinstance(finder, _Missing) for finder in sys.meta_path):
        sys.meta_path.append(_Missing(package))


def own_the_name() -> None:
    """From now on `zeus` is this package."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    if not any(isinstance(finder, _Names) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Names(package.__name__))
    sys.modules["zeus"] = package
