"""A data set of the Hugging Face hub by its name: its files, fetched into the hub's cache for `read_corpus`.

A repository of a data set is a folder of files with few rules. The kind that keeps most is taken (parquet, then
JSON lines, then tables, then plain text), and of it the files of one subset and one split, which stand in their
names: `train-00000-of-00002.parquet`, `en/test.jsonl`. Files that name no split are the training split, as the
hub's own reader has it. Code of a repository is never fetched, let alone run, and neither are pickles.

What it does not do: read a data set's card, which may assign files to splits in another way, or one that is made by
code; most of these have a converted copy in the revision refs/convert/parquet.
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
# Endings by preference; each may have .gz behind.
ENDINGS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".json", ".txt")
_ABOUT = {"dataset_infos.json", "dataset_dict.json", "state.json", "config.json", "requirements.txt", "license.txt"}
_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_DEFAULT_SUBSETS = ("", "default", "plain_text", "main")
_PART = re.compile(r"-(\d{5})-of-(\d{5})\b")


class DatasetError(UserError):
    """A data set that cannot be had; `problem` is the machine-readable kind, as of models."""

    def __init__(self, problem: ModelErrorKind, given: str, expected: str, mend: str) -> None:
        super().__init__(given, expected, mend)
        self.kind: ModelErrorKind = problem


@dataclass(frozen=True)
class DataFile:
    """A file of a data set and what its path says."""

    path: str
    ending: str
    subset: str  # folders that are no split, "" for none
    split: str | None


def dataset_name(text: str) -> str:
    """The hub's id of a data set that a person typed or pasted as an address. Raises InputError for anything else."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    name = text.strip().removeprefix(f"{hub.endpoint()}/").removeprefix("https://huggingface.co/")
    name = name.removeprefix("datasets/").rstrip("/")
    try:
        validate_repo_id(name)
    except HFValidationError as problem:
        raise InputError(
            f"{text[:80]!r} is not a data set's name.",
            f"The name of a data set of the Hugging Face hub was expected, such as {EXAMPLE}.",
            "Correct the name: owner, a slash, and the name; or open a file instead.",
        ) from problem
    return name


def choose_files(paths: Sequence[str], name: str, split: str | None = None) -> tuple[str, ...]:
    """Which files of a repository make up a split, in reading order.

    `split` is a split (train, validation, test), a subset, or both with a slash between; None takes the training
    split of the only or default subset. Raises InputError, which lists what there is, where that is not one choice.
    """
    files = [file for path in sorted(paths) if (file := _data_file(path)) is not None]
    if not files:
        raise InputError(
            f"The data set {name} has no data in a format that is read here.",
            f"Files with one of these endings were expected: {', '.join(ENDINGS)}.",
            "Many others have a converted copy: try the revision refs/convert/parquet, or another data set.",
        )
    best = min(ENDINGS.index(file.ending) for file in files)
    files = [file for file in files if file.ending == ENDINGS[best]]
    subsets = list(dict.fromkeys(file.subset for file in files))
    subset, wanted = _wanted(split, subsets)
    if subset is None:
        defaults = [known for known in _DEFAULT_SUBSETS if known in subsets]
        if len(subsets) > 1 and not defaults:
            raise _no_such(name, split, files)
        subset = defaults[0] if defaults else subsets[0]
    files = [file for file in files if file.subset == subset]
    splits = {file.split for file in files}
    if wanted is None:
        order = ("train", None, "validation", "test")
        chosen = next(known for known in order if known in splits)
    else:
        chosen = _SPLITS.get(wanted.lower(), wanted)
        if chosen == "train" and "train" not in splits and None in splits:
            chosen = None  # files that name no split are the training split
    taken = tuple(file.path for file in files if file.split == chosen)
    if not taken:
        raise _no_such(name, split, files)
    return taken


def fetch_dataset(
    name: str,
    split: str | None = None,
    revision: str | None = None,
    progress: hub.Progress | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
    limits: Limits | None = None,
) -> tuple[Path, ...]:
    """Fetch the files of a data set's split into the hub's cache and return their paths, for `read_corpus`.

    Without a network the files of an earlier fetch are found again. `progress(done, total)` counts bytes. Raises
    InputError for a bad name or choice and for more than `limits`, DatasetError where the hub does not give it.
    """
    repo_id = dataset_name(name)
    if revision is not None and (not re.fullmatch(r"[\w./-]{1,200}", revision) or ".." in revision):
        raise InputError(
            f"{revision[:80]!r} is not a revision.", "A branch, tag or commit was expected.", "Leave it out for main."
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

    def report(done: int) -> None:
        if is_cancelled():
            raise DatasetError(
                "cancelled",
                f"The download of {repo_id} was cancelled.",
                "The files that had arrived whole are kept.",
                "Ask for it again to fetch the rest.",
            )
        if progress is not None:
            progress(min(before + done, total), total)

    paths: list[Path] = []
    for name in names:
        report(0)
        path = hf_hub_download(
            repo_id,
            name,
            repo_type="dataset",
            revision=info.sha,
            endpoint=hub.endpoint(),
            cache_dir=hub.cache_dir(),
            tqdm_class=hub.progress_bar(report),
        )
        paths.append(Path(path))
        before += sizes[name]
        report(0)
    hub.remember_branch(repo_id, revision, info.sha, "dataset")
    return tuple(paths)


def _cached(repo_id: str, split: str | None, revision: str | None) -> tuple[Path, ...] | None:
    """The files of an earlier fetch of this split, None where there was none or it was broken off."""
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(hub.cache_dir()) / repo_folder_name(repo_id=repo_id, repo_type="dataset")
    reference = folder / "refs" / (revision or "main")
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision or ""
    snapshot = folder / "snapshots" / commit
    if not commit or not snapshot.is_dir():
        return None
    names_there = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
    try:
        names = choose_files(
            names_there, repo_id, split or "train"
        )  # a test split alone must not pass for what None means
    except InputError:  # other splits are here, this one is not
        return None
    parts = [part for name in names if (part := _PART.search(name)) is not None]
    if parts and len(parts) < int(parts[0][2]):
        return None
    return tuple(snapshot / name for name in names)


def _data_file(path: str) -> DataFile | None:
    """What a path says; None for a file that holds no data."""
    pure = PurePosixPath(path)
    lower = pure.name.lower()
    ending = PurePosixPath(lower.removesuffix(".gz")).suffix
    if ending not in ENDINGS or lower in _ABOUT or lower.startswith((".", "readme")) or ".." in pure.parts:
        return None
    folders = [part for part in pure.parent.parts if part != "data"]
    words = [*re.split(r"[^a-z]+", lower), *(part.lower() for part in reversed(folders))]
    split = next((_SPLITS[word] for word in words if word in _SPLITS), None)
    subset = "/".join(part for part in folders if part.lower() not in _SPLITS)
    return DataFile(path, ending, subset, split)


def _wanted(split: str | None, subsets: Sequence[str]) -> tuple[str | None, str | None]:
    """The subset and the split that a person named, None for each that was not."""
    if split is None or not split.strip("/ "):
        return None, None
    asked = split.strip("/ ")
    if asked in subsets:
        return asked, None
    subset, slash, last = asked.rpartition("/")
    return (subset, last) if slash else (None, asked)


def _no_such(name: str, split: str | None, files: Sequence[DataFile]) -> InputError:
    choices = dict.fromkeys("/".join(filter(None, (file.subset, file.split or "train"))) for file in files)
    return InputError(
        f"The data set {name} has no single split for {split!r}." if split else f"{name} has several parts.",
        f"One of these was expected: {', '.join(choices)[:500]}.",
        "Name one of them as the split.",
    )


def _offline(repo_id: str) -> DatasetError:
    reason = "HF_HUB_OFFLINE is set" if hub.told_offline() else f"{hub.endpoint()} did not answer"
    return DatasetError(
        "offline",
        f"The data set {repo_id} is not on this machine, and the hub is out of reach ({reason}).",
        "A data set of the hub is fetched once, over the network; after that it works without.",
        "Go on with the demo corpus or a file, or connect and ask for it again.",
    )


def _explain(problem: Exception, repo_id: str) -> DatasetError:
    """The hub client's exceptions in words for people; which kind each is, is known where models are fetched."""
    kind = hub.explain(problem, repo_id).kind
    words: dict[ModelErrorKind, tuple[str, str, str]] = {
        "gated": (
            f"The data set {repo_id} is shared only with people who have accepted its terms.",
            "A public data set was expected, or an access token of somebody who has accepted.",
            f"Accept the terms at {hub.endpoint()}/datasets/{repo_id}, run `hf auth login`, and ask again.",
        ),
        "not_found": (
            f"The hub has no data set {repo_id!r}, or not in this revision, that is open to everybody.",
            f"The name of a public data set was expected, such as {EXAMPLE}.",
            "Check the spelling: owner, a slash, and the name, with upper and lower case as on the hub.",
        ),
        "disk": (
            f"The disk is full: {repo_id} could not be stored in {hub.cache_dir()}.",
            "Room for the data set's files was expected.",
            "Free some space, or set HF_HOME to a larger disk, and ask again.",
        ),
        "damaged": (
            f"A file of {repo_id} arrived incomplete.",
            "A file of the size the hub announces was expected.",
            "Ask again; what arrived whole is kept.",
        ),
        "offline": (
            f"The data set {repo_id} could not be fetched: the hub did not answer as it should.",
            "An answer of the hub was expected.",
            "Check the network and ask again, or go on with the demo corpus or a file.",
        ),
    }
    first_line = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
    other = (
        f"The data set {repo_id} could not be fetched: {first_line}",
        "A download into the hub's cache folder was expected to work.",
        "Check the network and the cache folder's permissions, and ask again.",
    )
    return DatasetError(kind, *words.get(kind, other))
