"""A dataset of the Hugging Face hub as a corpus: its data files, by name, without running any code of theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from components.errors import InputError
from components.model import hub
from components.retrieval.corpus_files import FORMATS

_NAME = re.compile(r"^[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?$", re.ASCII)
_NO_DATA = ("readme", "dataset_infos.json", "config.json", ".gitattributes")


def is_dataset_name(text: str) -> bool:
    """Whether this could be the name of a dataset, such as embedding-data/sentence-compression."""
    return bool(_NAME.match(text)) and ".." not in text and "--" not in text


def fetch_dataset(
    name: str, file: str | None = None, cancelled: Callable[[], bool] = lambda: False
) -> tuple[Path, tuple[str, ...]]:
    """One data file of a dataset on this machine, and the names of all it has.

    `file` names it; left out, the one of the training split is taken, or the first. Fetched files stay in the hub's
    own cache. Raises InputError for a name nobody has, for no data file of a known kind, or without a network.
    """
    if not is_dataset_name(name):
        raise InputError(
            f"{name[:80]!r} is not a dataset's name.",
            "A name was expected such as embedding-data/sentence-compression.",
            "Correct it, or upload a file.",
        )
    if not hub.is_reachable():
        raise InputError(
            f"The dataset {name} cannot be fetched: the hub is out of reach.",
            "A network was expected, for a dataset is fetched when it is asked for.",
            "Connect, or upload the file itself.",
        )
    from huggingface_hub import HfApi, constants, errors, hf_hub_download

    constants.HF_HUB_DISABLE_XET = True  # see components.model.hub
    constants.HF_HUB_DISABLE_TELEMETRY = True
    try:
        info = HfApi(endpoint=hub.endpoint()).dataset_info(name, timeout=20)
        names = tuple(sorted(item.rfilename for item in info.siblings or [] if _is_data(item.rfilename)))
        chosen = file if file is not None else _likeliest(names)
        if chosen is None or chosen not in names:
            raise InputError(
                f"The dataset {name} has {f'no file {file!r}' if file else 'no data file of a kind that can be read'}.",
                f"One of these was expected: {', '.join(names[:10]) or ', '.join(FORMATS)}.",
                "Name another file or dataset, or upload a file.",
            )
        if cancelled():
            raise InputError(f"{name} was not fetched.", "It was stopped.", "Ask for it again.")
        path = hf_hub_download(name, chosen, repo_type="dataset", revision=info.sha, endpoint=hub.endpoint())
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as problem:
        raise InputError(
            f"The hub has no dataset {name!r} that is open to everybody.",
            "The name of a public dataset was expected.",
            "Check the spelling, with upper and lower case as on the hub.",
        ) from problem
    except (errors.HfHubHTTPError, OSError) as problem:
        raise InputError(
            f"The dataset {name} could not be fetched: {(str(problem).splitlines() or [''])[0][:150]}",
            "An answer of the hub was expected.",
            "Try again later, or upload the file itself.",
        ) from problem
    return Path(path), names


def _is_data(name: str) -> bool:
    plain = name.lower().removesuffix(".gz")
    return plain.endswith(FORMATS) and not Path(plain).name.startswith(_NO_DATA)


def _likeliest(names: tuple[str, ...]) -> str | None:
    return next((name for name in names if "train" in name.lower()), names[0] if names else None)
