"""At which step two computations of one text's vector first differ: its pieces, the tokens' vectors, the pooling, what follows.

The library's own modules say what each of them hands on; here the same steps are taken again, for one text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from components.arrays import Float32
from components.model.head import MODE_NAMES, MODES

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.files.sentence_config import Role
    from components.model.trace import Pooling

PIECES, TOKENS, TEXT = "input_ids", "token_embeddings", "sentence_embedding"


def first_step(backend: Backend, text: str, role: str, theirs: Mapping[str, Float32], same: float) -> str:
    """Where the computations part, in a sentence or two; "" for a model whose steps are not these.

    `theirs` is what the library's modules hand on (see components.model.verification.process), and vectors that differ by
    less than `same` of their length are equal. Raises UserError for a text or a model of which no pass is kept.
    """
    tokens = next((values for key, values in theirs.items() if key.startswith(TOKENS)), None)
    ids = theirs.get(f"{PIECES} 0")
    if tokens is None or ids is None:
        return ""
    options = backend.embed_options(precision="float32", role=cast("Role | None", role or None))
    trace = backend.trace([text], max_length=options.max_length, prompt=options.prompt)
    own = np.array([token.id for token in trace.sentences[0].tokens])
    expected = ids.astype(np.int64)
    if not np.array_equal(own, expected):
        shared = min(len(own), len(expected))
        unequal = np.flatnonzero(own[:shared] != expected[:shared])
        at = int(unequal[0]) if len(unequal) else shared
        return (
            f"Compared step by step, the pieces differ first: {len(expected):,} there, {len(own):,} here, and number {at:,} is "
            "the first that differs (from 0). Look at the tokenizer's files, the prompt and the length."
        )
    found = np.asarray(trace.hidden_states[-1, 0], np.float32)
    if _apart(tokens, found) > same:
        return (
            f"Compared step by step, the {len(own):,} pieces are equal, and the tokens' vectors differ first (by up to "
            f"{_apart(tokens, found):.0e} of their length). Look at the encoder's weights and its config.json."
        )
    before = f"Compared step by step, the {len(own):,} pieces and the tokens' vectors are equal"
    pooled = next((values for key, values in theirs.items() if key.startswith(TEXT)), None)
    plain = {"mean": found.mean(axis=0), "cls": found[0], "max": found.max(axis=0), "last": found[-1]}
    named = [name for name, values in plain.items() if pooled is not None and _apart(pooled, values) <= same]
    mode = backend.own_pooling
    if (
        not named or mode not in plain
    ):  # a pooling of the model's own, such as one without a prompt's tokens, is not among these
        return f"{before}; the pooling or what follows it differs first. Look at modules.json and its folders."
    if mode not in named:
        there, here = (MODE_NAMES[MODES[cast("Pooling", name)]] for name in (named[0], mode))
        return f"{before}; the pooling differs first: there the {there}, here the {here}."
    return (
        f"{before}, and so is the pooling; what follows it differs first (Dense, scaling to length 1, fewer numbers)."
    )


def _apart(expected: Float32, found: Float32) -> float:
    """How far vectors are apart at most, in lengths of the expected one; infinite for other sizes."""
    if expected.shape != found.shape:
        return float("inf")
    lengths = np.linalg.norm(np.atleast_2d(expected), axis=1)
    return float((np.abs(np.atleast_2d(expected - found)).max(axis=1) / np.where(lengths == 0, 1.0, lengths)).max())
