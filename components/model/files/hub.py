"""The Hugging Face hub: whether it can be reached, what is cached, and downloads of models and data sets with progress.

Only safetensors weights are downloaded or read: pickled weights can run code when they are opened.
Whether the hub can be reached is checked first and quickly, because a load without a network retries for half a minute.
"""

from __future__ import annotations

import errno
import http.client
import io
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Literal

from components.errors import ModelError, UserError, first_line
from components.folders import write_text
from components.jobs import IsStopped, ReportProgress
from components.model.files import allowed
from components.model.files.decisions import MODULES
from components.model.files.published import (
    TOKENIZER_FILES,
    WEIGHT_INDEX,
    check_file,
    check_size,
    is_within,
    read_json,
    read_modules,
)
from components.model.files.slow_hub import TooSlow, limited
from components.model.files.static_files import is_complete, static_folder

PROBE_SECONDS = 2.5
PROBE_KEPT_SECONDS = 30.0
LIST_SECONDS = 60.0  # in total, to list a repository's files
# The files of an encoder: configuration, tokenizer, weights. None of them can be code, but for the template of chats, which is
# never run here.
TEMPLATE = "chat_template.jinja"
PATTERNS = ("*.json", "vocab.txt", "merges.txt", "*.model", TEMPLATE)  # and WEIGHT_FILE
WEIGHT_FILE = re.compile(r"[\w.-]+\.safetensors", re.ASCII)
# The files of a sentence encoder's further modules: 1_Pooling/config.json, 2_Dense/model.safetensors, ...
MODULE_FILE = re.compile(
    r"[1-9][0-9]?_[A-Za-z]\w*/(config\.json|model\.safetensors)|0_StaticEmbedding/(model\.safetensors|tokenizer\.json)",
    re.ASCII,
)
_CONFIGURED = ("Pooling", "Dense", "LayerNorm", "WeightedLayerPooling")  # modules that are saved with a config.json
STATIC_WEIGHTS = (
    "0_StaticEmbedding/model.safetensors"  # of a static model that has no weights beside its list of modules
)


@dataclass(frozen=True, kw_only=True)
class RepoKind:
    """A kind of repository, and what error messages say about it."""

    repo_type: Literal["model", "dataset"]  # the hub's word
    noun: str
    title: str  # before its name
    option: str  # of the command that downloads it
    again: str  # how to try again
    instead: str  # with what to continue
    example: str
    path: str  # before its name in an address
    error: type[ModelError]


MODEL = RepoKind(
    repo_type="model",
    noun="model",
    title="",
    option="",
    again="pick it again",
    instead="the included model",
    example="google-bert/bert-base-uncased",
    path="",
    error=ModelError,
)
_probes: dict[str, tuple[float, bool]] = {}  # by address: when it was checked, and whether it answered
_probe_lock = threading.Lock()


def endpoint() -> str:
    """The hub's address: HF_ENDPOINT if it is set. Read in every call, so that a change needs no restart."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def cache_dir() -> str:
    """The folder of the hub's cache: HF_HUB_CACHE if it is set. Read in every call, like the address."""
    from huggingface_hub import constants

    return os.environ.get("HF_HUB_CACHE", constants.HF_HUB_CACHE)


def told_offline() -> bool:
    """Whether HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids connections."""
    return any(
        os.environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def is_reachable(fresh: bool = False) -> bool:
    """Whether the hub answers within 2.5 seconds; the answer is reused for half a minute unless `fresh`."""
    if told_offline():
        return False
    address = endpoint()
    with _probe_lock:  # one probe at a time, shared by all sessions
        known = _probes.get(address)
        if known is not None and not fresh and time.monotonic() - known[0] < PROBE_KEPT_SECONDS:
            return known[1]
        answer = _answers(address)
        _probes[address] = (time.monotonic(), answer)
        return answer


def _answers(address: str) -> bool:
    """Whether an address answers within PROBE_SECONDS in total, name look-up included.

    A timeout of the connection would not do: it begins again with each byte.
    """
    connections: list[http.client.HTTPConnection] = []
    answers: Queue[bool] = Queue()

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(_kept_in(connections, http.client.HTTPConnection), request)

    class Encrypted(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(_kept_in(connections, http.client.HTTPSConnection), request)

    def ask() -> None:
        try:
            request = urllib.request.Request(address, method="HEAD", headers={"User-Agent": "bert-internals"})
            urllib.request.build_opener(Plain, Encrypted).open(request, timeout=PROBE_SECONDS).close()
            answers.put(True)
        except urllib.error.HTTPError:
            answers.put(True)  # it answered, though with an error status
        except (OSError, ValueError, http.client.HTTPException):  # the last: what it answered is not HTTP
            answers.put(False)

    threading.Thread(target=ask, name="hub probe", daemon=True).start()
    try:
        return answers.get(timeout=PROBE_SECONDS)
    except Empty:
        for connection in connections:  # else its thread would read on
            with suppress(OSError):
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)
        return False


def _kept_in(connections: list[Any], kind: type[http.client.HTTPConnection]) -> Any:
    """A function that creates connections of a kind and puts them into a list."""

    def connect(host: str, **options: Any) -> http.client.HTTPConnection:
        connection = kind(host, **options)
        connections.append(connection)
        return connection

    return connect


def repositories_here() -> frozenset[str]:
    """The names of the repositories of which the hub's cache holds at least a part: one look at one folder.

    For whoever asks of many: `cached_folder` tells of one of these whether it is complete.
    """
    start = "models--"
    try:
        names = os.listdir(cache_dir())
    except OSError:  # there is no cache yet
        return frozenset()
    # The hub allows no "--" within a name.
    return frozenset(name.removeprefix(start).replace("--", "/") for name in names if name.startswith(start))


def cached_folder(repo_id: str) -> Path | None:
    """The folder of a repository if it is completely on this machine, else None. Uses no network."""
    from huggingface_hub import errors, try_to_load_from_cache

    try:
        config = try_to_load_from_cache(repo_id, "config.json", cache_dir=cache_dir())
        if not isinstance(config, str):  # a static model may have none
            config = try_to_load_from_cache(repo_id, "modules.json", cache_dir=cache_dir())
    except errors.HFValidationError:  # no repository can have this name; a download explains this
        return None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    static = static_folder(folder)
    if static is not None:
        return folder if is_complete(static) else None
    with suppress(ModelError):  # weights that are not read: a download explains this too
        if (folder / "config.json").is_file() and has_weights(folder) and has_tokenizer(folder):
            return folder
    return None


def has_tokenizer(folder: Path) -> bool:
    return any((folder / name).exists() for name in TOKENIZER_FILES)


def has_weights(folder: Path) -> bool:
    """Whether model.safetensors, or every part named in its index, exists. Raises ModelError as `weight_parts` does."""
    if (folder / "model.safetensors").is_file():
        return True
    parts = weight_parts(folder)
    return bool(parts) and all((folder / part).exists() for part in parts)


def weight_parts(folder: Path) -> tuple[str, ...]:
    """The names of the parts in model.safetensors.index.json; none without a usable index.

    transformers reads each named file whatever its format, and pickles can run code: raises ModelError where a name is not
    that of a .safetensors file of this folder, or leads out of it. In the hub's cache such files are links to its blobs,
    which belong to the model's folder too.
    """
    content = read_json(folder / WEIGHT_INDEX)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict):
        return ()
    parts = tuple(dict.fromkeys(map(str, weight_map.values())))
    is_snapshot = folder.parent.name == "snapshots"
    for part in parts:
        if WEIGHT_FILE.fullmatch(part) is None or not is_within(folder / part, folder):
            raise ModelError(
                "no_safetensors",
                f"{WEIGHT_INDEX} of {folder if not is_snapshot else folder.parent.parent.name} names {part[:80]!r}.",
                "It may name only .safetensors files in the same folder; other files can run code when they are read.",
                "Pick another model, or convert this one on a trusted machine (save_pretrained) and open its folder.",
            )
    return parts


def lacks_modules(folder: Path) -> bool:
    """Whether the modules of a cached model include one with a configuration that was never downloaded.

    Dense modules published without safetensors weights have their configuration here, and count as downloaded.
    """
    return any(
        module.kind in _CONFIGURED and module.config is None and MODULE_FILE.fullmatch(f"{module.path}/config.json")
        for module in read_modules(folder)
    )


def may_lack_list(repo_id: str, folder: Path) -> bool:
    """Whether a cached model, such as one that AutoModel loaded, may have been published with a modules.json that is not here.

    The hub's cache keeps which files a commit does not have, once somebody asked for them.
    """
    return _may_lack(repo_id, folder, MODULES)


def may_lack_template(repo_id: str, folder: Path) -> bool:
    """Whether a cached model without modules.json, where it would count, may have a template of chats that is not here."""
    return not (folder / MODULES).exists() and _may_lack(repo_id, folder, TEMPLATE)


def _may_lack(repo_id: str, folder: Path, file: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    if (folder / file).exists():
        return False
    known = try_to_load_from_cache(repo_id, file, cache_dir=cache_dir(), revision=folder.name)
    return known is None  # neither here nor known to be missing


def _remember_missing(folder: Path, file: str) -> None:
    """Note in the hub's cache, as its client does, that this commit does not have a file."""
    place = folder.parent.parent / ".no_exist" / folder.name
    place.mkdir(parents=True, exist_ok=True)
    (place / file).touch()


def no_safetensors(name: str, folder: Path | None = None) -> ModelError:
    """The error of a model without weights that are read; of a `folder`, it says what is there instead."""
    found = ""
    if folder is not None:
        kinds = {path.suffix for part in (folder, folder / "onnx") if part.is_dir() for path in part.iterdir()}
        found = " It has a pickle (.bin) instead." if kinds & {".bin", ".pt", ".pth", ".pkl"} else ""
        found = " It has only ONNX files (.onnx)." if ".onnx" in kinds and not found else found
    return ModelError(
        "no_safetensors",
        f"{name} has no model.safetensors.{found}",
        "Only weights in the safetensors format are read; other formats can run code when they are read.",
        "Pick another model, or convert this one on a trusted machine (save_pretrained) and open its folder.",
    )


def no_static_files(name: str) -> ModelError:
    return ModelError(
        "no_safetensors",
        f"{name} lacks the table or the tokenizer of a static model.",
        "A static model has model.safetensors and tokenizer.json; other formats can run code when they are read.",
        "Download or save the model again, or pick another one.",
    )


def download(
    repo_id: str,
    revision: str | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Path:
    """Download a model's files into the hub's cache and return their folder.

    `progress(done, total)` counts bytes. Raises ModelError: offline, not_found, gated, no_safetensors,
    damaged, disk, stopped. Files already cached are not downloaded again; a broken download is
    resumed, but a file interrupted by a stop starts again the next time.
    """
    if not is_reachable(fresh=True):
        raise offline(repo_id)

    listed: set[str] = set()

    def files_of_encoder(sizes: Mapping[str, int]) -> list[str]:
        # Other sub-folders (onnx/, openvino/, ...) contain other forms of the model.
        names = [
            name
            for name in sizes
            if MODULE_FILE.fullmatch(name)
            or WEIGHT_FILE.fullmatch(name)
            or ("/" not in name and any(fnmatch(name, pattern) for pattern in PATTERNS))
        ]
        if STATIC_WEIGHTS not in names and not any(map(WEIGHT_FILE.fullmatch, names)):
            raise no_safetensors(repo_id)
        for name in names:
            check_size(name.rpartition("/")[2], sizes[name], f"{name} of {repo_id}")
        listed.update(names)
        # Small files first: a repository without an encoder is recognised before its weights are downloaded.
        return sorted(names, key=lambda name: sizes[name])

    folder: Path | None = None
    with explained(repo_id):
        for name, path in fetched(repo_id, files_of_encoder, MODEL, revision, progress, is_stopped):
            check_file(path, f"{name} of {repo_id}")  # which may be larger than announced
            if name == "config.json":
                folder = path.parent
                _check_config(path, repo_id, "modules.json" in listed)
            elif name == "modules.json" and static_folder(path.parent) is not None:
                folder = path.parent
            elif name == WEIGHT_INDEX:
                weight_parts(path.parent)
    if folder is None:
        raise ModelError(
            "unsupported",
            f"{repo_id} has no config.json.",
            "The repository of a BERT-family encoder for transformers has this file.",
            "Check the name, or pick a model from the list.",
        )
    for file in {MODULES, TEMPLATE} - listed:
        _remember_missing(folder, file)
    return folder


def fetched(
    repo_id: str,
    choose: Callable[[Mapping[str, int]], Iterable[str]],
    kind: RepoKind,
    revision: str | None,
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> Iterator[tuple[str, Path]]:
    """Download files of a repository into the hub's cache one after the other: name and path of each, once it is complete.

    `choose` gets the sizes of all files by name, and returns the names to download. `progress(done, total)` counts bytes.
    Raises the error of the kind of repository ("stopped"), and the client's own exceptions: see `explained`.
    """
    from huggingface_hub import HfApi, constants, hf_hub_download

    # The hub's chunk store (hf_xet) prints an exception of the progress callback and continues, so that a stop would
    # have no effect before the end of the file, and it counts each byte twice: received and written. Plain HTTP is exact.
    constants.HF_HUB_DISABLE_XET = True
    constants.HF_HUB_DISABLE_TELEMETRY = True  # otherwise the first request would be a report on this program
    api = HfApi(endpoint=endpoint())
    with limited(LIST_SECONDS):
        info = api.repo_info(repo_id, repo_type=kind.repo_type, revision=revision, files_metadata=True, timeout=20)
    sizes = {item.rfilename: item.size or 0 for item in info.siblings or []}
    names = list(choose(sizes))
    total, bytes_before = sum(sizes[name] for name in names), 0

    def report(done: int) -> None:
        if is_stopped():
            raise kind.error(
                "stopped",
                f"The download of {repo_id} was stopped.",
                "Files that were downloaded completely are kept.",
                f"To download the rest, {kind.again}.",
            )
        progress(min(bytes_before + done, total), total)

    for name in names:
        report(0)
        with limited():
            path = hf_hub_download(
                repo_id,
                name,
                repo_type=kind.repo_type,
                revision=info.sha,
                endpoint=endpoint(),
                cache_dir=cache_dir(),
                tqdm_class=_progress_bar(report),
            )
        bytes_before += sizes[name]
        report(0)
        yield name, Path(path)
    _remember_branch(repo_id, revision, info.sha, kind)


@contextmanager
def explained(repo_id: str, kind: RepoKind = MODEL) -> Iterator[None]:
    """Within it, exceptions of the hub's client become the error of the kind of repository, for people."""
    try:
        yield
    except UserError:
        raise
    except Exception as problem:
        raise explain(problem, repo_id, kind) from problem


def _check_config(path: Path, repo_id: str, is_for_texts: bool) -> None:
    """Refuse a model of another kind before its weights are downloaded; `is_for_texts`: it may be made for text vectors."""
    from components.model.architecture.support import check_supported_file

    values = read_json(path)
    if isinstance(values, dict):  # anything else is refused when the model is loaded
        check_supported_file(values, repo_id, is_for_texts)
        allowed.checked(values, allowed.CONFIG, path.name, repo_id)


def _progress_bar(report: Callable[[int], None]) -> Any:
    """A progress bar class for the hub's client that draws nothing and calls `report(bytes of the file so far)`.

    An exception of `report` ends the download.
    """
    from tqdm.auto import tqdm

    class DownloadBar(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options["disable"] = False
            options.pop("name", None)
            options["file"] = io.StringIO()  # its own drawing is discarded
            super().__init__(*arguments, **options)

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            report(int(self.n))
            return shown

    return DownloadBar


def _remember_branch(repo_id: str, revision: str | None, sha: str | None, kind: RepoKind) -> None:
    """Record the branch's commit, as the hub client does, so that the cache can be used offline."""
    from huggingface_hub.file_download import repo_folder_name

    if sha is None or revision == sha:
        return
    folder = Path(cache_dir()) / repo_folder_name(repo_id=repo_id, repo_type=kind.repo_type)
    reference = folder / "refs" / (revision or "main")
    reference.parent.mkdir(parents=True, exist_ok=True)
    write_text(reference, sha)


def offline(repo_id: str, kind: RepoKind = MODEL) -> ModelError:
    """The error of a model or data set that would have to be downloaded."""
    reason = "HF_HUB_OFFLINE is set" if told_offline() else f"{endpoint()} did not answer"
    command = f"hf download {repo_id}{kind.option}"
    folder = f" A folder of that name is meant by ./{repo_id}." if kind is MODEL and "/" not in repo_id else ""
    return kind.error(
        "offline",
        f"{kind.title}{repo_id} is not on this machine, and the hub cannot be reached ({reason}).",
        f"A {kind.noun} of the hub is downloaded once, which needs a network connection, and then works offline.{folder}",
        f"Continue with {kind.instead}, or connect and run: {command}",
    )


def explain(problem: Exception, repo_id: str, kind: RepoKind = MODEL) -> ModelError:
    """An exception of the hub's client as a message for people."""
    from huggingface_hub import errors

    text = str(problem)
    title = f"{kind.title}{repo_id}"
    again = kind.again[0].upper() + kind.again[1:]
    if isinstance(problem, errors.GatedRepoError):
        return kind.error(
            "gated",
            f"{title} is shared only with people who have accepted its terms.",
            "It can be downloaded only with the access token of somebody who has accepted the terms.",
            f"Accept the terms at {endpoint()}/{kind.path}{repo_id}, run `hf auth login`, and {kind.again}.",
        )
    if isinstance(problem, errors.RepositoryNotFoundError | errors.RevisionNotFoundError | errors.HFValidationError):
        return kind.error(
            "not_found",
            f"The hub has no public {kind.noun} {repo_id!r}"
            + (", or not in this revision." if isinstance(problem, errors.RevisionNotFoundError) else "."),
            f"Each {kind.noun} is named by its owner and its own name, such as {kind.example}.",
            "Check the spelling: owner, a slash, and the name, with capital letters as on the hub.",
        )
    if isinstance(problem, TooSlow):
        return kind.error(
            "offline",
            f"{title} could not be downloaded, because {endpoint()} is too slow: {problem}.",
            "A download needs at least 1 KB per second.",
            f"Check the network and {kind.again}, or continue with {kind.instead}; complete files are kept.",
        )
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        return kind.error(
            "disk",
            f"The disk is full: {repo_id} could not be stored in {cache_dir()}.",
            "There must be enough room for all of its files.",
            f"Free some space, or set HF_HOME to a folder on a larger disk, and {kind.again}.",
        )
    if "onsistency check" in text or "IncompleteRead" in text or "peer closed" in text.lower():
        return kind.error(
            "damaged",
            f"A file of {repo_id} arrived incomplete.",
            "The file must have the size announced by the hub.",
            f"{again}; files that were downloaded completely are kept.",
        )
    # An exception of the HTTP library itself: the connection failed for some reason.
    is_transport = type(problem).__module__.partition(".")[0].startswith("http")
    if isinstance(problem, errors.HfHubHTTPError | ConnectionError | TimeoutError) or is_transport:
        return kind.error(
            "offline",
            f"{title} could not be downloaded: the hub did not answer correctly.",
            "A download needs a complete answer from the hub.",
            f"Check the network and {kind.again}, or continue with {kind.instead}.",
        )
    return kind.error(
        "failed",
        f"{title} could not be downloaded: {first_line(problem)}.",
        "A download goes into the hub's cache folder.",
        f"Check the network and the cache folder's permissions, then {kind.again}; the server's log has details.",
    )
