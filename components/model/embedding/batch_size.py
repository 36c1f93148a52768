"""How many tokens a batch of bulk work has: a fixed number on a CPU, elsewhere as many as take a tenth of a second.

The model's lock is held for one batch, and pages wait as long. A number that suits a new chip would hold it for seconds on an
older one. So it is measured at a model's first bulk work on a device, and kept with the device's name in the cache folder:
every server of a machine, and every start of it, then makes the same batches.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from components.errors import ModelError
from components.folders import cache_part, private_folder, read_plain, write_json

CPU_TOKENS = 3072  # large enough for the chip's matrix units, small enough for its caches
LEAST_TOKENS, MOST_TOKENS = 1024, 65_536  # of a batch whose size is measured
MOST_SECONDS = 0.1  # that a batch may take
MOST_BYTES = 4096  # of a file with a measurement
log = logging.getLogger(__name__)


def measured_tokens(device: str, model: str, precision: str, seconds_of: Callable[[int], float]) -> int:
    """The tokens of a batch on a device of this name, measured or as they were kept; between LEAST_TOKENS and MOST_TOKENS.

    `seconds_of(tokens)` computes a batch and says how long that took. `model` names the weights.
    """
    path = _file_of(device, model, precision)
    kept = _kept(path)
    if kept is not None:
        return kept
    tokens, is_lasting = _fitting(seconds_of)
    if not is_lasting:
        return tokens
    with suppress(OSError):  # it is measured again at the next start
        private_folder(path.parent)
        write_json(path, {"device": device, "model": model, "precision": precision, "tokens_per_batch": tokens})
    log.info("batches of %d tokens for %s in %s on %s", tokens, model, precision, device)
    return tokens


def _fitting(seconds_of: Callable[[int], float]) -> tuple[int, bool]:
    """The largest number of tokens, doubled from LEAST_TOKENS, that takes at most MOST_SECONDS and fits into memory.

    And whether it holds at other times too: memory may lack because another program has it.
    """
    tokens = LEAST_TOKENS
    try:
        while tokens < MOST_TOKENS and 2 * seconds_of(tokens) <= MOST_SECONDS:
            tokens *= 2
    except ModelError as problem:
        if problem.kind != "memory":
            raise
        return max(LEAST_TOKENS, tokens // 2), False
    return tokens, True


def _file_of(device: str, model: str, precision: str) -> Path:
    name = hashlib.sha256(json.dumps([device, model, precision]).encode()).hexdigest()[:32]
    return cache_part("batches") / f"{name}.json"


def _kept(path: Path) -> int | None:
    """What was measured before; None where nothing valid was kept."""
    try:
        tokens = json.loads(read_plain(path, MOST_BYTES))["tokens_per_batch"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return tokens if isinstance(tokens, int) and LEAST_TOKENS <= tokens <= MOST_TOKENS else None
