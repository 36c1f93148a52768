"""A data set of the Hugging Face hub by its name: its files are downloaded into the hub's cache for `read_corpus`.

The repository of a data set is a folder of files with few rules. The format that keeps most information is taken
(parquet, then JSON lines, then tables, then plain text), and of it the files of one subset and one split, which their
names tell: `train-00000-of-00002.parquet`, `en/test.jsonl`. Files that name no split are the training split, as in the
hub's own reader. Code and pickles of a repository are never downloaded.

What it does not do: read a data set's card, which may assign files to splits in another way, or data sets that are made
by code; most of these have a converted copy in the revision refs/convert/parquet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from components.errors import InputError, ModelErrorKind, UserError
from components.model.files import hub
from components.retrieval.corpora.readers.table import Limits

EXAMPLE = "embedding-data/sentence-compression"
# By preference; .gz may follow each.
ENDINGS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".json", ".txt")
_NO_DATA = {"dataset_infos.json", "dataset_dict.json", "state.json", "config.json", "requirements.txt", "license.txt"}
_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_DEFAULT_SUBSETS = ("", "default", "plain_text", "main")
_PART = re.compile(r"-(\d{5})-of-(\d{5})\b")


class DatasetError(UserError):
    """A data set that is not available; `kind` is the machine-readable reason, as for models."""

    def __init__(self, kind: ModelErrorKind, problem: str, expected: str, fix: str) -> None:
        super().__init__(problem, expected, fix)
        self.kind: ModelErrorKind = kind


@dataclass(frozen=True)
class DataFile:
    """A file of a data set and what its path says."""

    path: str
    ending: str
    subset: str  # the folders that do not name a split; "" without any
    split: str | None


def dataset_name(text: str) -> str:
    """The hub id of a data set, from its name or its address on the hub. Raises InputError for anything else."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    name = text.strip().removeprefix(f"{hub.endpoint()}/").removeprefix("https://huggingface.co/")
    name = name.removeprefix("datasets/").rstrip("/")
    try:
        validate_repo_id(name)
    except HFValidationError as problem:
        raise InputError(
            f"{text[:80]!r} is not the name of a data set.",
            f"The name of a data set of the Hugging Face hub was expected, such as {EXAMPLE}.",
            "Write the owner, a slash and the name, or open a file instead.",
        ) from problem
    return name


def choose_files(paths: Sequence[str], name: str, split: str | None = None) -> tuple[str, ...]:
    """The files of a repository that make up a split, in reading order.

    `split` is a split (train, validation, test), a subset, or both with a slash between; None takes the training
    split of the only or default subset. Raises InputError, which lists the splits, where that is not a single split.
    """
    files = [file for path in sorted(paths) if (file := _data_file(path)) is not None]
    if not files:
        raise InputError(
            f"The data set {name} has no files in a format that can be read.",
            f"Files with one of these endings were expected: {', '.join(ENDINGS)}.",
            "Try the revision refs/convert/parquet, where many data sets have a converted copy, or another data set.",
        )
    best = min(ENDINGS.index(file.ending) for file in files)
    files = [file for file in files if file.ending == ENDINGS[best]]
    subsets = list(dict.fromkeys(file.subset for file in files))
    subset, split_name = _subset_and_split(split, subsets)
    if subset is None:
        defaults = [known for known in _DEFAULT_SUBSETS if known in subsets]
        if len(subsets) > 1 and not defaults:
            raise _no_such(name, split, files)
        subset = defaults[0] if defaults else subsets[0]
    files = [file for file in files if file.subset == subset]
    splits = {file.split for file in files}
    if split_name is None:
        order = ("train", None, "validation", "test")
        chosen = next(known for known in order if known in splits)
    else:
        chosen = _SPLITS.get(split_name.lower(), split_name)
        if chosen == "train" and "train" not in splits and None in splits:
            chosen = None  # files that name no split are the training split
    chosen_files = tuple(file.path for file in files if file.split == chosen)
    if not chosen_files:
        raise _no_such(name, split, files)
    return chosen_files


def fetch_dataset(
    name: str,
    split: str | None = None,
    revision: str | None = None,
    progress: hub.Progress | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
    limits: Limits | None = None,
) -> tuple[Path, ...]:
    """Download the files of a data set's split into the hub's cache and return their paths, for `read_corpus`.

    Without a network the files of an earlier download are used. `progress(done, total)` counts bytes. Raises
    InputError for an invalid name or split and for more than `limits`, DatasetError where the download fails.
    """
    repo_id = dataset_name(name)
    if revision is not None and (not re.fullmatch(r"[\w./-]{1,200}", revision) or ".." in revision):
        raise InputError(
            f"{revision[:80]!r} is not a revision.",
            "A branch, tag or commit was expected.",
            "Correct the revision, or leave it out to use main.",
        )
    if not hub.is_reachable(fresh=True):
        paths = _cached(repo_id, split, revision)
        if paths is None:
            raise _offline(repo_id)
        return paths
    try:
        return _fetch(repo_id, split, revision, progress, is_cancelled, limits)
    except UserError:
        raise
    except Exception as problem:
        raise _explain(problem, repo_id) from problem


def _fetch(
    repo_id: str,
    split: str | None,
    revision: str | None,
    progress: hub.Progress | None,
    is_cancelled: Callable[[], bool],
    limits: Limits | None,
) -> tuple[Path, ...]:
    from huggingface_hub import HfApi, hf_hub_download

    hub.quiet_client()
    api = HfApi(endpoint=hub.endpoint())
    info = api.dataset_info(repo_id, revision=revision, files_metadata=True, timeout=20)
    sizes = {item.rfilename: item.size or 0 for item in info.siblings or []}
    names = choose_files(list(sizes), repo_id, split)
    total, before = sum(sizes[name] for name in names), 0
    if limits is not None and total > limits.bytes:
        raise limits.exceeded(repo_id, f"{total / (1 << 20):,.0f} MB of files")

    def report_progress(done: int) -> None:
        if is_cancelled():
            raise DatasetError(
                "cancelled",
                f"The download of {repo_id} was cancelled.",
                "All of its files were expected; those already complete are kept.",
                "Start the download again to fetch the rest.",
            )
        if progress is not None:
            progress(min(before + done, total), total)

    paths: list[Path] = []
    for name in names:
        report_progress(0)
        path = hf_hub_download(
            repo_id,
            name,
            repo_type="dataset",
            revision=info.sha,
            endpoint=hub.endpoint(),
            cache_dir=hub.cache_dir(),
            tqdm_class=hub.progress_bar(report_progress),
        )
        paths.append(Path(path))
        before += sizes[name]
        report_progress(0)
    hub.remember_branch(repo_id, revision, info.sha, "dataset")
    return tuple(paths)


def _cached(repo_id: str, split: str | None, revision: str | None) -> tuple[Path, ...] | None:
    """The files of an earlier download of this split; None where there was none or it is incomplete."""
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(hub.cache_dir()) / repo_folder_name(repo_id=repo_id, repo_type="dataset")
    reference = folder / "refs" / (revision or "main")
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision or ""
    snapshot = folder / "snapshots" / commit
    if not commit or not snapshot.is_dir():
        return None
    cached_names = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
    try:
        names = choose_files(
            cached_names, repo_id, split or "train"
        )  # a test split alone is not the training split that None stands for
    except InputError:  # only other splits are cached
        return None
    parts = [part for name in names if (part := _PART.search(name)) is not None]
    if parts and len(parts) < int(parts[0][2]):
        return None
    return tuple(snapshot / name for name in names)


def _data_file(path: str) -> DataFile | None:
    """What a path tells about its file; None for a file without data."""
    pure = PurePosixPath(path)
    lower = pure.name.lower()
    ending = PurePosixPath(lower.removesuffix(".gz")).suffix
    if ending not in ENDINGS or lower in _NO_DATA or lower.startswith((".", "readme")) or ".." in pure.parts:
        return None
    folders = [part for part in pure.parent.parts if part != "data"]
    words = [*re.split(r"[^a-z]+", lower), *(part.lower() for part in reversed(folders))]
    split = next((_SPLITS[word] for word in words if word in _SPLITS), None)
    subset = "/".join(part for part in folders if part.lower() not in _SPLITS)
    return DataFile(path, ending, subset, split)


def _subset_and_split(split: str | None, subsets: Sequence[str]) -> tuple[str | None, str | None]:
    """The subset and the split that a person named; None for each that was not named."""
    if split is None or not split.strip("/ "):
        return None, None
    split = split.strip("/ ")
    if split in subsets:
        return split, None
    subset, slash, last = split.rpartition("/")
    return (subset, last) if slash else (None, split)


def _no_such(name: str, split: str | None, files: Sequence[DataFile]) -> InputError:
    choices = dict.fromkeys("/".join(filter(None, (file.subset, file.split or "train"))) for file in files)
    return InputError(
        f"The data set {name} has no single split {split!r}." if split else f"The data set {name} has several subsets.",
        f"One of these was expected: {', '.join(choices)[:500]}.",
        "Enter one of these as the split.",
    )


def _offline(repo_id: str) -> DatasetError:
    reason = "HF_HUB_OFFLINE is set" if hub.told_offline() else f"{hub.endpoint()} did not answer"
    return DatasetError(
        "offline",
        f"The data set {repo_id} is not cached on this machine, and the hub cannot be reached ({reason}).",
        "A network connection was expected for the first download; after that none is needed.",
        "Continue with the demo corpus or a file, or connect to the network and try again.",
    )


def _explain(problem: Exception, repo_id: str) -> DatasetError:
    """The hub client's exception as an error for people. Its kind is found as for models (components.model.files.hub)."""
    kind = hub.explain(problem, repo_id).kind
    words: dict[ModelErrorKind, tuple[str, str, str]] = {
        "gated": (
            f"The data set {repo_id} is shared only with people who have accepted its terms.",
            "A public data set was expected, or the access token of somebody who has accepted them.",
            f"Accept the terms at {hub.endpoint()}/datasets/{repo_id}, run `hf auth login`, and try again.",
        ),
        "not_found": (
            f"The hub has no public data set {repo_id!r}, or not in this revision.",
            f"The name of a public data set was expected, such as {EXAMPLE}.",
            "Check the spelling, upper and lower case included: the owner, a slash and the name.",
        ),
        "disk": (
            f"The disk is full: {repo_id} could not be stored in {hub.cache_dir()}.",
            "Enough free space for the files of the data set was expected.",
            "Free some space, or set HF_HOME to a folder on a larger disk, and try again.",
        ),
        "damaged": (
            f"A file of {repo_id} arrived incomplete.",
            "A file of the size that the hub announces was expected.",
            "Try again; the files that are complete are kept.",
        ),
        "offline": (
            f"The data set {repo_id} could not be downloaded: the connection to the hub failed.",
            "A complete answer of the hub was expected.",
            "Check the network and try again, or continue with the demo corpus or a file.",
        ),
    }
    first_line = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
    other = (
        f"The data set {repo_id} could not be downloaded: {first_line}",
        "A working download into the hub's cache folder was expected.",
        "Check the network and the permissions of the cache folder, and try again.",
    )
    return DatasetError(kind, *words.get(kind, other))
