"""Whether something is let go of, without a look at everything that other tests hold."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Here `gc.collect()` looks at what has come into being since: of a whole test process it takes up to a second."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
