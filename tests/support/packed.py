"""What the server packs for the parts of the page that we draw ourselves, decoded as assets/web/arrays.js does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and arrays."""
    length = int.from_bytes(data[:4], "little")
    facts: dict[str, Any] = json.loads(data[4 : 4 + length])
    numbers = np.frombuffer(data[4 + length :], "<f4")
    return facts, {
        name: numbers[place["at"] : place["at"] + int(np.prod(place["shape"]))].reshape(place["shape"])
        for name, place in facts["arrays"].items()
    }
