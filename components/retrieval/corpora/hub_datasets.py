"""A data set of the Hugging Face hub by its name: its files are downloaded into the hub's cache for `read_corpus`.

The repository of a data set is a folder of files with few rules. The format that keeps most information is taken
(parquet, then JSON lines, then tables, then plain text), and of it the files of one subset and one split, which their
names tell: `train-00000-of-00002.parquet`, `en/test.jsonl`. Files that name no split are the training split, as in the
hub's own reader. Code and pickles of a repository are never downloaded.

Of a retrieval collection (corpus.jsonl beside queries.jsonl, as BEIR and mteb have them) only the documents are taken.

What it does not do: read a data set's card, which may assign files to splits in another way, or data sets that are made
by code; most of these have a converted copy in the revision refs/convert/parquet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from components.errors import DatasetError, InputError
from components.jobs import IsStopped, ReportProgress
from components.model.files import hub
from components.retrieval.corpora.readers.limits import Limits
from components.retrieval.corpora.readers.places import documents_alone
from components.sizes import in_words

EXAMPLE = "embedding-data/sentence-compression"
DATASET = hub.RepoKind(
    repo_type="dataset",
    noun="data set",
    title="The data set ",
    option=" --repo-type dataset",
    again="try again",
    instead="the demo corpus or a file",
    example=EXAMPLE,
    path="datasets/",
    error=DatasetError,
)
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
            f"Data sets of the Hugging Face hub have names such as {EXAMPLE}.",
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
            f"These endings can be read: {', '.join(ENDINGS)}.",
            "Try the revision refs/convert/parquet, where many data sets have a converted copy, or another data set.",
        )
    documents = set(documents_alone([PurePosixPath(file.path) for file in files])[0])
    if len(documents) < len(files) and not _names_another_part(split):
        files = [
            replace(file, subset=_without_part(file.subset)) for file in files if PurePosixPath(file.path) in documents
        ]
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
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
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
            "A revision is a branch, a tag or a commit.",
            "Correct the revision, or leave it out to use main.",
        )
    if not hub.is_reachable(fresh=True):
        paths = _cached(repo_id, split, revision)
        if paths is None:
            raise hub.offline(repo_id, DATASET)
        return paths

    def files_of_split(sizes: Mapping[str, int]) -> tuple[str, ...]:
        names = choose_files(list(sizes), repo_id, split)
        total = sum(sizes[name] for name in names)
        if limits is not None and total > limits.bytes:
            raise limits.exceeded(repo_id, f"{in_words(total, binary=True)} of files")
        return names

    with hub.explained(repo_id, DATASET):
        files = hub.fetched(repo_id, files_of_split, DATASET, revision, progress, is_stopped)
        return tuple(path for _, path in files)


def _cached(repo_id: str, split: str | None, revision: str | None) -> tuple[Path, ...] | None:
    """The files of an earlier download of this split; None where there was none or it is incomplete."""
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(hub.cache_dir()) / repo_folder_name(repo_id=repo_id, repo_type=DATASET.repo_type)
    reference = folder / "refs" / (revision or "main")
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision or ""
    snapshot = folder / "snapshots" / commit
    if not commit or not snapshot.is_dir():
        return None
    cached_names = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
    try:
        names = choose_files(
            cached_names,
            repo_id,
            # A test split alone is not the training split that None stands for, but documents lie in any.
            split or (None if documents_alone([PurePosixPath(name) for name in cached_names])[1] else "train"),
        )
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


def _names_another_part(split: str | None) -> bool:
    """Whether a person asked for the queries or judgements of a retrieval collection."""
    return split is not None and split.strip("/ ").partition("/")[0].lower() in {"queries", "qrels"}


def _without_part(subset: str) -> str:
    return "/".join(part for part in subset.split("/") if part.lower() != "corpus")


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
        f"It has: {', '.join(choices)[:500]}.",
        "Enter one of these as the split.",
    )
