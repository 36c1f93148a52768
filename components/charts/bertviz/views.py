"""bertviz's head, model and neuron view as whole HTML documents that work without a network.

Idea and drawing: Jesse Vig, "A Multiscale Visualization of Attention in the Transformer Model", ACL 2019 demos
(arXiv 1906.05714). The head view shows which token attends to which in the heads of one block, the model view shows
all heads at once, the neuron view how a head computes its weights from queries and keys. None of them shows the effect
of attention in the model: a weight says how much of a token's value is added, not how much it matters.

bertviz itself sends every weight twice, as text. Here the weights are sent once, as one byte each:
12 x 12 heads at 128 tokens take 3.5 MB instead of 103 MB. Rounding changes a weight by at most 1/510,
and an element of a query or key by at most 1/254 of the largest in its vector.

A browser cannot draw very many lines: weights that round to 0 get no line, beyond about ten thousand lines
the weakest are left out (the page then says so), and the model view's cells are images, drawn when visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from components.charts.bertviz import page
from components.charts.bertviz.page import View
from components.charts.quantise import quantise_vectors, quantise_weights
from components.errors import InputError
from components.sizes import in_words

Filter = Literal["all", "aa", "ab", "ba", "bb"]

MAX_BYTES = 8 * 2**20
# How each view is used, for people who cannot see it.
_HINTS: dict[View, str] = {
    "head": "Click the squares to switch heads on and off.",
    "model": "One row per block, one column per head; click a cell to open it.",
    "neuron": "Point at a token on the left to see its query with all keys; its minus sign shows all tokens' weights.",
}
WIDTHS: dict[View, int] = {"head": 360, "model": 990, "neuron": 1074}  # pixels of the drawings and their margins
LEAST_ZOOM, MOST_ZOOM = 0.7, 2.2
_MARGINS = 40  # pixels above and below the drawing
_BYTES_PER_TOKEN = 24  # in the document: a quoted piece, once as data and once as text


def attention_page(
    view: View,
    attentions: np.ndarray,
    tokens: Sequence[str],
    *,
    queries: np.ndarray | None = None,
    keys: np.ndarray | None = None,
    second_start: int | None = None,
    blocks: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    dark: bool = False,
    block: int | None = None,
    head: int | None = None,
    filter: Filter = "all",
    zoom: float = 1.0,
    least: float = 0.0,
    told: tuple[int, int] | None = None,
    opened: int = 1,
    step: str = "",
    colours: Sequence[Sequence[str]] | None = None,
) -> str:
    """A whole HTML document with one of the views, without bertviz's controls: the dashboard has these.

    "head": the heads of one block as lines between the tokens, one colour per head.
    "model": all blocks (rows) by all heads (columns) as small drawings; a click opens one with its tokens.
    "neuron": how one head computes its weights: each token's query times each token's key, element by element.

    `attentions` is float [block, head, query, key] of one sentence or pair, every row summing to 1; `tokens` are
    the pieces along query and key. The neuron view also needs `queries` and `keys`, float [block, head, token, head_dim],
    before the division by the root of head_dim (bertviz divides). Their product is the whole score, except in models with
    relative positions (MPNet, DeBERTa), which add to it. `second_start` is the position of the first token of sentence B:
    only with it may `filter` show a part of the attention.
    `blocks` and `heads` (numbers along the first two axes) restrict the data sent; the page keeps their numbers.
    `block` is shown (None: the first one sent), with only `head` or all of its heads. `zoom` enlarges the drawing
    (see `fitting_zoom`) where the frame is wide enough. In the head view, lines of less than `least` of a token's attention
    are hidden, but for the token's strongest and while a person points at the token; the page says how many are drawn. The
    line from the query to the key `told`, positions, is drawn at full strength in `head`; `filter` must be "all" then.
    The neuron view opens with the query of the token `opened`, counted among those on the left, and says by which `step` the
    products become attention. The model view draws each head in its own of the `colours` [block][head], by default in one of
    its block.

    Raises ValueError if the arguments do not fit together, and InputError (a ValueError) that says what to leave
    out if the page would be larger than MAX_BYTES.
    """
    n = len(tokens)
    if attentions.ndim != 4 or attentions.shape[2:] != (n, n) or 0 in attentions.shape:
        raise ValueError(f"attentions must be [block, head, {n}, {n}] for {n} tokens, got {attentions.shape}")
    if second_start is not None and not 0 < second_start < n:
        raise ValueError(f"sentence B must start within 1..{n - 1}, got {second_start}")
    if filter not in get_args(Filter) or (filter != "all" and second_start is None):
        raise ValueError(f"filter {filter!r} is none of {get_args(Filter)}, or there is no sentence B")
    sent_blocks = _numbers(blocks, attentions.shape[0], "block")
    sent_heads = _numbers(heads, attentions.shape[1], "head")
    if block is not None and block not in sent_blocks:
        raise ValueError(f"block {block} is not among the blocks sent, {sent_blocks}")
    if head is not None and head not in sent_heads:
        raise ValueError(f"head {head} is not among the heads sent, {sent_heads}")
    vectors = {} if queries is None or keys is None else {"queries": queries, "keys": keys}
    dim = queries.shape[-1] if queries is not None else 0
    if any(array.shape != (*attentions.shape[:3], dim) for array in vectors.values()):
        expected = f"[{', '.join(map(str, attentions.shape[:3]))}, head_dim]"
        raise ValueError(f"queries and keys must both be {expected}, got {[each.shape for each in vectors.values()]}")
    count = (len(sent_blocks), len(sent_heads), n)
    _check_size(estimate_bytes(*count, view, dim), view, count, dim)

    def part(array: np.ndarray) -> np.ndarray:
        """An array [block, head, ...] restricted to the blocks and heads sent."""
        is_whole = (len(sent_blocks), len(sent_heads)) == array.shape[:2]
        return array if is_whole else array[np.ix_(sent_blocks, sent_heads)]

    arrays = {"weights": quantise_weights(part(attentions)).tobytes()}
    if view == "neuron":
        of_head = attentions[sent_blocks[0] if block is None else block, sent_heads[0] if head is None else head]
        arrays["percents"] = np.rint(100 * of_head.astype(np.float64)).astype(np.uint8).tobytes()
        if queries is not None and keys is not None:
            place = (sent_blocks[0] if block is None else block, sent_heads[0] if head is None else head)
            arrays["scores"] = (queries[place] @ keys[place].T).astype(np.float32).tobytes()
    for name, array in vectors.items():
        steps, scales = quantise_vectors(part(array))
        arrays |= {name: steps.tobytes(), f"{name}-scales": scales.tobytes()}
    facts = {
        "view": view,
        "tokens": list(tokens),
        "second_start": second_start,
        "blocks": sent_blocks,
        "heads": sent_heads,
        "total_heads": attentions.shape[1],
        "dim": dim,
        "block": sent_blocks[0] if block is None else block,
        "head": head,
        "filter": filter,
        "dark": dark,
        "zoom": zoom,
        "least": least,
        "told": told,
        "opened": opened,
        "step": step,
        "colours": None
        if colours is None
        else [[colours[row][column] for column in sent_heads] for row in sent_blocks],
    }
    text = " ".join(tokens)
    shown = text if len(text) <= 400 else text[:399] + "…"
    document = page.document(
        view,
        title=f"Attention, {view} view: {_counted(sent_blocks, 'block')}, {_counted(sent_heads, 'head')} each",
        description=f"Attention between {n} tokens: {shown}. Lines lead from each token, as query on the left, to the "
        f"tokens it attends to, as keys on the right; more solid lines mean more attention. {_HINTS[view]} Use the arrow "
        "keys to move and Enter to select.",
        facts=facts,
        arrays=arrays,
        dark=dark,
    )
    _check_size(len(document.encode()), view, count, dim)  # the estimate does not know how long the tokens are
    return document


def estimate_bytes(n_blocks: int, n_heads: int, n_tokens: int, view: View, head_dim: int = 64) -> int:
    """The estimated size of a page in bytes; only the tokens' lengths are guessed. `head_dim`: for the neuron view."""
    matrices = n_blocks * n_heads
    size = page.frame_bytes(view) + page.base64_bytes(matrices * n_tokens**2)
    if view == "neuron":
        vectors = matrices * n_tokens
        size += page.base64_bytes(n_tokens**2) + page.base64_bytes(4 * n_tokens**2)  # the head's per cents, and q · k
        size += 2 * (page.base64_bytes(vectors * head_dim) + page.base64_bytes(4 * vectors))
    return size + _BYTES_PER_TOKEN * n_tokens + 1500


def frame_height(view: View, n_tokens: int, n_blocks: int = 1, n_heads: int = 12, zoom: float = 1.0) -> int:
    """The height of the drawing and its margins in pixels. `n_heads` counts all heads of the model.

    For `st.iframe(height=...)`; with less the page scrolls.
    """
    if view == "head":
        return _MARGINS + round(zoom * (20 + 22.5 * n_tokens))
    if view == "neuron":
        return _MARGINS + round(zoom * (35 + 26 * n_tokens))
    cells = n_blocks * (n_tokens * 84 / n_heads + 10) + 38
    return _MARGINS + round(zoom * max(round(cells), 18 * n_tokens + 55))


def fitting_zoom(view: View, n_tokens: int, n_blocks: int, n_heads: int, width: float, height: float) -> float:
    """The zoom at which a view fills a frame of this width and height in pixels, within what can be read."""
    natural = frame_height(view, n_tokens, n_blocks, n_heads)
    return max(LEAST_ZOOM, min(MOST_ZOOM, width / WIDTHS[view], height / natural))


def _check_size(size: int, view: View, count: tuple[int, int, int], dim: int) -> None:
    """Raise InputError if a page of this size is too large; `count` is its numbers of blocks, heads and tokens."""
    if size <= MAX_BYTES:
        return
    n_blocks, n_heads, n_tokens = count
    fewer_blocks = [b for b in range(1, n_blocks) if estimate_bytes(b, n_heads, n_tokens, view, dim) <= MAX_BYTES]
    fewer_heads = [h for h in range(1, n_heads) if estimate_bytes(n_blocks, h, n_tokens, view, dim) <= MAX_BYTES]
    ways = [f"choose at most {fewer_blocks[-1]} of the blocks"] if fewer_blocks else []
    ways += [f"choose at most {fewer_heads[-1]} of the heads"] if fewer_heads else []
    fix = ", or ".join([*ways, "shorten the text"])
    raise InputError(
        f"{n_blocks} blocks of {n_heads} heads at {n_tokens} tokens make a page of {in_words(size, binary=True)}.",
        f"A page can have at most {in_words(MAX_BYTES, binary=True)}.",
        f"{fix[0].upper()}{fix[1:]}.",
    )


def _numbers(chosen: Sequence[int] | None, total: int, name: str) -> list[int]:
    """The chosen numbers in ascending order; all by default."""
    numbers = list(range(total)) if chosen is None else sorted({int(number) for number in chosen})
    if not numbers or not 0 <= numbers[0] <= numbers[-1] < total:
        raise ValueError(f"{name}s must be one or more of 0..{total - 1}, got {chosen}")
    return numbers


def _counted(numbers: Sequence[int], name: str) -> str:
    return f"{len(numbers)} {name}{'s' if len(numbers) != 1 else ''}"
