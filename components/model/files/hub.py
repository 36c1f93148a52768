"""The Hugging Face hub: is it in reach, what is cached, and downloads with progress.

Only safetensors weights are ever fetched or read: pickled weights can run code when they are opened.
"In reach" is decided first and quickly, because a load without a network retries for half a minute.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.errors import ModelError
from components.model.files.published import read_modules

PROBE_SECONDS = 2.5
PROBE_KEPT_SECONDS = 30.0
# What an encoder needs: configuration, tokenizer, weights. Nothing that could be code.
PATTERNS = ("*.json", "vocab.txt", "merges.txt", "*.model", "*.safetensors")
# Of the modules of a sentence encoder after the encoder itself: 1_Pooling/config.json, 2_Dense/model.safetensors, ...
MODULE_FILE = re.compile(r"[1-9][0-9]?_[A-Za-z]\w*/(config\.json|model\.safetensors)", re.ASCII)
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")

Progress = Callable[[int, int], None]  # bytes so far, bytes in all


@dataclass(frozen=True)
class _Probe:
    at: float
    reachable: bool


_probes: dict[str, _Probe] = {}
_probe_lock = threading.Lock()


def endpoint() -> str:
    """The hub's address: HF_ENDPOINT where it is set. Read at every call, so a change needs no restart."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def cache_dir() -> str:
    """The folder of the hub's cache: HF_HUB_CACHE where it is set. Read at every call, as the address is."""
    from huggingface_hub import constants

    return os.environ.get("HF_HUB_CACHE", constants.HF_HUB_CACHE)


def told_offline() -> bool:
    """True when HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) says not to try."""
    return any(
        os.environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def is_reachable(fresh: bool = False) -> bool:
    """Whether the hub answers within 2.5 seconds; the answer is kept for half a minute unless `fresh`."""
    if told_offline():
        return False
    address = endpoint()
    with _probe_lock:  # one probe at a time, shared by all sessions
        known = _probes.get(address)
        if known is not None and not fresh and time.monotonic() - known.at < PROBE_KEPT_SECONDS:
            return known.reachable
        try:
            request = urllib.request.Request(address, method="HEAD", headers={"User-Agent": "bert-internals"})
            urllib.request.urlopen(request, timeout=PROBE_SECONDS).close()
            answer = True
        except urllib.error.HTTPError:
            answer = True  # it answered, with whatever status
        except (OSError, ValueError):
            answer = False
        _probes[address] = _Probe(time.monotonic(), answer)
        return answer


def cached_folder(repo_id: str, revision: str | None = None) -> Path | None:
    """The folder of a repository that is completely on this machine, else None. Asks no network."""
    from huggingface_hub import errors, try_to_load_from_cache

    try:
        config = try_to_load_from_cache(repo_id, "config.json", cache_dir=cache_dir(), revision=revision)
    except errors.HFValidationError:  # no repository can have this name; a download explains that
        return None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    return folder if has_weights(folder) and has_tokenizer(folder) else None


def has_tokenizer(folder: Path) -> bool:
    return any((folder / name).exists() for name in TOKENIZER_FILES)


def has_weights(folder: Path) -> bool:
    """True when model.safetensors, or every part its index names, is there."""
    if (folder / "model.safetensors").exists():
        return True
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return False
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return bool(parts) and all((folder / part).exists() for part in parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # an index that nothing can be loaded by
        return False


def lacks_modules(folder: Path) -> bool:
    """Whether the list of a cached model's modules names a Dense one whose files were never fetched.

    Dense modules published without safetensors weights have their configuration here, and count as fetched.
    """
    return any(
        module.kind == "Dense" and module.config is None and MODULE_FILE.fullmatch(f"{module.path}/config.json")
        for module in read_modules(folder)
    )


def no_safetensors(name: str) -> ModelError:
    return ModelError(
        "no_safetensors",
        f"{name} has no model.safetensors.",
        "Weights in the safetensors format were expected; other formats can run code when they are read.",
        "Pick another model, or convert this one in a trusted place (save_pretrained) and open its folder.",
    )


def download(
    repo_id: str,
    revision: str | None = None,
    progress: Progress | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """Fetch a model's files into the hub's cache and return their folder.

    `progress(done, total)` counts bytes. Raises ModelError: offline, not_found, gated, no_safetensors,
    damaged, disk, cancelled. Files already cached are not fetched again; a broken connection is taken up
    where it broke, but the file that a cancel interrupts starts again the next time.
    """
    if not is_reachable(fresh=True):
        raise offline(repo_id)
    try:
        return _download(repo_id, revision, progress, is_cancelled)
    except ModelError:
        raise
    except Exception as problem:
        raise explain(problem, repo_id) from problem


def _download(repo_id: str, revision: str | None, progress: Progress | None, is_cancelled: Callable[[], bool]) -> Path:
    from fnmatch import fnmatch

    from huggingface_hub import HfApi, hf_hub_download

    quiet_client()
    info = HfApi(endpoint=endpoint()).model_info(repo_id, revision=revision, files_metadata=True, timeout=20)
    # Files of other sub-folders (onnx/, openvino/, ...) are other forms of the model.
    files = {
        item.rfilename: item.size or 0
        for item in info.siblings or []
        if MODULE_FILE.fullmatch(item.rfilename)
        or ("/" not in item.rfilename and any(fnmatch(item.rfilename, pattern) for pattern in PATTERNS))
    }
    if not any(name.endswith(".safetensors") and "/" not in name for name in files):
        raise no_safetensors(repo_id)
    total, before = sum(files.values()), 0

    def report(done: int) -> None:
        if is_cancelled():
            raise _cancelled(repo_id)
        if progress is not None:
            progress(min(before + done, total), total)

    folder: Path | None = None
    # Small files first: a repository that is no encoder is found out before its weights are fetched.
    for name, size in sorted(files.items(), key=lambda item: item[1]):
        if is_cancelled():
            raise _cancelled(repo_id)
        path = hf_hub_download(
            repo_id,
            name,
            revision=info.sha,
            endpoint=endpoint(),
            cache_dir=cache_dir(),
            tqdm_class=progress_bar(report),
        )
        before += size
        if progress is not None:
            progress(before, total)
        if name == "config.json":
            folder = Path(path).parent
            _check_config(Path(path), repo_id)
    if folder is None:
        raise ModelError(
            "unsupported",
            f"{repo_id} has no config.json.",
            "A repository of a BERT-family encoder for transformers was expected.",
            "Check the name, or pick a model from the list.",
        )
    remember_branch(repo_id, revision, info.sha)
    return folder


def _check_config(path: Path, repo_id: str) -> None:
    """Refuse a model of another kind now, before its weights are fetched."""
    from components.model.architecture import check_supported_file

    check_supported_file(json.loads(path.read_text(encoding="utf-8")), repo_id)


def quiet_client() -> None:
    """Set the hub's client to plain downloads that tell nobody."""
    from huggingface_hub import constants

    # The hub's chunk store (hf_xet) prints an exception of the progress callback and goes on, so a cancel would
    # not be heard before the file's end, and it counts each byte twice: arrived, and written. Plain HTTP is exact.
    constants.HF_HUB_DISABLE_XET = True
    constants.HF_HUB_DISABLE_TELEMETRY = True  # the first request would otherwise be a report on this program


def progress_bar(report: Callable[[int], None]) -> Any:
    """A progress bar class for the hub's client that draws nothing and calls `report(bytes of the file so far)`.

    What `report` raises ends the download.
    """
    from tqdm.auto import tqdm

    class Reporter(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options["disable"] = False
            options.pop("name", None)
            options["file"] = _Nowhere()
            super().__init__(*arguments, **options)

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            report(int(self.n))
            return shown

    return Reporter


def remember_branch(repo_id: str, revision: str | None, sha: str | None, repo_type: str = "model") -> None:
    """Note which commit the branch stood at, as the hub client does, so that the cache answers offline."""
    from huggingface_hub.file_download import repo_folder_name

    if sha is None or revision == sha:
        return
    folder = Path(cache_dir()) / repo_folder_name(repo_id=repo_id, repo_type=repo_type)
    reference = folder / "refs" / (revision or "main")
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text(sha, encoding="utf-8")


class _Nowhere:
    """A stream for the progress bar's own drawing, which nobody sees."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return None


def offline(repo_id: str) -> ModelError:
    reason = "HF_HUB_OFFLINE is set" if told_offline() else f"{endpoint()} did not answer"
    return ModelError(
        "offline",
        f"{repo_id} is not on this machine, and the hub is out of reach ({reason}).",
        "A model of the hub is fetched once, over the network; after that it works without.",
        f"Go on with the embedded model, or connect and run: hf download {repo_id}",
    )


def _cancelled(repo_id: str) -> ModelError:
    return ModelError(
        "cancelled",
        f"The download of {repo_id} was cancelled.",
        "The files that had arrived whole are kept.",
        "Pick the model again to fetch the rest.",
    )


def _is_transport(problem: Exception) -> bool:
    """Whether an exception is the HTTP library's own: the connection failed, whatever the reason."""
    return type(problem).__module__.partition(".")[0].startswith("http")


def explain(problem: Exception, repo_id: str) -> ModelError:
    """The hub client's exceptions in words for people."""
    from huggingface_hub import errors

    if isinstance(problem, errors.GatedRepoError):
        return ModelError(
            "gated",
            f"{repo_id} is shared only with people who have accepted its terms.",
            "A public model was expected, or an access token of somebody who has accepted.",
            f"Accept the terms at {endpoint()}/{repo_id}, run `hf auth login`, and pick it again.",
        )
    if isinstance(problem, errors.RepositoryNotFoundError | errors.RevisionNotFoundError | errors.HFValidationError):
        return ModelError(
            "not_found",
            f"The hub has no model {repo_id!r} that is open to everybody.",
            "The name of a public repository was expected, such as google-bert/bert-base-uncased.",
            "Check the spelling: owner, a slash, and the name, with upper and lower case as on the hub.",
        )
    if isinstance(problem, OSError) and getattr(problem, "errno", None) == 28:
        return ModelError(
            "disk",
            f"The disk is full: {repo_id} could not be stored in {cache_dir()}.",
            "Room for the model's files was expected.",
            "Free some space, or set HF_HOME to a larger disk, and pick the model again.",
        )
    text = str(problem)
    if "onsistency check" in text or "IncompleteRead" in text or "peer closed" in text.lower():
        return ModelError(
            "damaged",
            f"A file of {repo_id} arrived incomplete.",
            "A file of the size the hub announces was expected.",
            "Pick the model again; what arrived whole is kept.",
        )
    if isinstance(problem, errors.HfHubHTTPError | ConnectionError | TimeoutError) or _is_transport(problem):
        return ModelError(
            "offline",
            f"{repo_id} could not be fetched: the hub did not answer as it should.",
            "An answer of the hub was expected.",
            "Check the network and pick the model again, or go on with the embedded model.",
        )
    first_line = (text.splitlines() or [type(problem).__name__])[0][:200]
    return ModelError(
        "failed",
        f"{repo_id} could not be fetched: {first_line}",
        "A download into the hub's cache folder was expected to work.",
        "Check the network and the cache folder's permissions, and pick the model again; the server's log tells more.",
    )
