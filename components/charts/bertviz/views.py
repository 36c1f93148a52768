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

import html
from collections.abc import Sequence
from typing import Literal

import numpy as np

from components.charts.bertviz import page
from components.charts.bertviz.page import View
from components.charts.quantise import quantise_vectors, quantise_weights
from components.errors import InputError

Filter = Literal["all", "aa", "ab", "ba", "bb"]

MAX_BYTES = 8 * 2**20
FILTERS: dict[Filter, str] = {
    "all": "All",
    "aa": "Sentence A → Sentence A",
    "ab": "Sentence A → Sentence B",
    "ba": "Sentence B → Sentence A",
    "bb": "Sentence B → Sentence B",
}
_BYTES_PER_TOKEN = 24  # in the document: a quoted piece, once as data and once as text


def head_view(
    attentions: np.ndarray,
    tokens: Sequence[str],
    *,
    second_start: int | None = None,
    blocks: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    dark: bool = False,
    block: int | None = None,
    head: int | None = None,
    filter: Filter = "all",
) -> str:
    """The heads of one block as lines between the tokens, one colour per head; the block is chosen in the page.

    `attentions` is float [block, head, query, key] of one sentence or pair, every row summing to 1; `tokens` are
    the pieces along query and key. `second_start` is the position of the first token of sentence B:
    with it the page offers bertviz's filters, and `filter` is the first one shown.
    `blocks` and `heads` (numbers along the first two axes) restrict the data sent; the page keeps their numbers.
    `block` is shown first (None: the first one sent), with only `head` or all of its heads.

    Raises ValueError if the arguments do not fit together, and InputError (a ValueError) that says what to leave
    out if the page would be larger than MAX_BYTES.
    """
    data = _PageData("head", attentions, tokens, second_start, blocks, heads, filter)
    data.show_first(block, head)
    return data.document(
        dark, _select("layer", "Block"), "Choose a block; click the squares to switch heads on and off."
    )


def model_view(
    attentions: np.ndarray,
    tokens: Sequence[str],
    *,
    second_start: int | None = None,
    blocks: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    dark: bool = False,
    filter: Filter = "all",
) -> str:
    """All blocks (rows) by all heads (columns) as small drawings; a click opens one with its tokens.

    Arguments and errors as in `head_view`.
    """
    data = _PageData("model", attentions, tokens, second_start, blocks, heads, filter)
    return data.document(dark, "", "One row per block, one column per head; click a cell to open it.")


def neuron_view(
    attentions: np.ndarray,
    queries: np.ndarray,
    keys: np.ndarray,
    tokens: Sequence[str],
    *,
    second_start: int | None = None,
    blocks: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    dark: bool = False,
    block: int | None = None,
    head: int | None = None,
    filter: Filter = "all",
) -> str:
    """How one head computes its weights: each token's query times each token's key, element by element.

    `queries` and `keys` are float [block, head, token, head_dim], before the division by the root of head_dim
    (bertviz divides). The product is the whole score, except in models with relative positions (MPNet),
    which add a bias. The other arguments and errors as in `head_view`.
    """
    data = _PageData("neuron", attentions, tokens, second_start, blocks, heads, filter, queries, keys)
    data.show_first(block, head)
    controls = _select("layer", "Block") + _select("att_head", "Head")
    return data.document(dark, controls, "Point at a token on the left; its plus sign shows query and keys.")


def estimate_bytes(n_blocks: int, n_heads: int, n_tokens: int, view: View, head_dim: int = 64) -> int:
    """The estimated size of a page in bytes; only the tokens' lengths are guessed. `head_dim`: for the neuron view."""
    matrices = n_blocks * n_heads
    size = page.frame_bytes(view) + page.base64_bytes(matrices * n_tokens**2)
    if view == "neuron":
        vectors = matrices * n_tokens
        size += 2 * (page.base64_bytes(vectors * head_dim) + page.base64_bytes(4 * vectors))
    return size + _BYTES_PER_TOKEN * n_tokens + 1500


def frame_height(view: View, n_tokens: int, n_blocks: int = 1, n_heads: int = 12) -> int:
    """The height of the drawing and its controls in pixels. `n_heads` counts all heads of the model.

    For `st.iframe(height=...)`; with less the page scrolls.
    """
    if view == "head":
        return 100 + round(22.5 * n_tokens)
    if view == "neuron":
        return 115 + 26 * n_tokens
    return 80 + max(round(n_blocks * (n_tokens * 84 / n_heads + 10)) + 38, 18 * n_tokens + 55)


class _PageData:
    """The data of a page: checked, restricted to the chosen blocks and heads, and quantised."""

    def __init__(
        self,
        view: View,
        attentions: np.ndarray,
        tokens: Sequence[str],
        second_start: int | None,
        blocks: Sequence[int] | None,
        heads: Sequence[int] | None,
        filter: Filter,
        queries: np.ndarray | None = None,
        keys: np.ndarray | None = None,
    ) -> None:
        n = len(tokens)
        if attentions.ndim != 4 or attentions.shape[2:] != (n, n) or 0 in attentions.shape:
            raise ValueError(f"attentions must be [block, head, {n}, {n}] for {n} tokens, got {attentions.shape}")
        if second_start is not None and not 0 < second_start < n:
            raise ValueError(f"sentence B must start within 1..{n - 1}, got {second_start}")
        if filter not in FILTERS or (filter != "all" and second_start is None):
            raise ValueError(f"filter {filter!r} is none of {list(FILTERS)}, or there is no sentence B")
        self.view, self.tokens, self.second_start, self.filter = view, list(tokens), second_start, filter
        self.blocks = _numbers(blocks, attentions.shape[0], "block")
        self.heads = _numbers(heads, attentions.shape[1], "head")
        self.total_heads = attentions.shape[1]
        self.block = self.blocks[0]
        self.head: int | None = None
        self.dim = 0
        if queries is not None and keys is not None:
            if queries.ndim != 4 or queries.shape[:3] != attentions.shape[:3] or keys.shape != queries.shape:
                expected = f"[{', '.join(map(str, attentions.shape[:3]))}, head_dim]"
                raise ValueError(f"queries and keys must both be {expected}, got {queries.shape} and {keys.shape}")
            self.dim = queries.shape[3]
        self._check_size()
        self.arrays = {"weights": quantise_weights(self._part(attentions)).tobytes()}
        if queries is not None and keys is not None:
            for name, vectors in (("queries", queries), ("keys", keys)):
                steps, scales = quantise_vectors(self._part(vectors))
                self.arrays |= {name: steps.tobytes(), f"{name}-scales": scales.tobytes()}

    def show_first(self, block: int | None, head: int | None) -> None:
        """Set the block and head that the page shows first."""
        if block is not None and block not in self.blocks:
            raise ValueError(f"block {block} is not among the blocks sent, {self.blocks}")
        if head is not None and head not in self.heads:
            raise ValueError(f"head {head} is not among the heads sent, {self.heads}")
        self.block = self.blocks[0] if block is None else block
        self.head = head

    def document(self, dark: bool, controls: str, hint: str) -> str:
        """The page. `hint` says how to use it, for people who cannot see it."""
        facts = {
            "view": self.view,
            "tokens": self.tokens,
            "second_start": self.second_start,
            "blocks": self.blocks,
            "heads": self.heads,
            "total_heads": self.total_heads,
            "dim": self.dim,
            "block": self.block,
            "head": self.head,
            "filter": self.filter,
            "dark": dark,
        }
        document = page.document(
            self.view,
            title=self._title(),
            description=f"{self._description()} {hint} Use the arrow keys to move and Enter to select.",
            controls=controls + self._filters(),
            facts=facts,
            arrays=self.arrays,
            dark=dark,
        )
        size = len(document.encode())
        if size > MAX_BYTES:  # the estimate does not know how long the tokens are
            raise self._too_large(size)
        return document

    def _part(self, array: np.ndarray) -> np.ndarray:
        """An array [block, head, ...] restricted to the blocks and heads sent."""
        if len(self.blocks) == array.shape[0] and len(self.heads) == array.shape[1]:
            return array
        return array[np.ix_(self.blocks, self.heads)]

    def _title(self) -> str:
        return f"Attention, {self.view} view: {_counted(self.blocks, 'block')}, {_counted(self.heads, 'head')} each"

    def _description(self) -> str:
        text = " ".join(self.tokens)
        shown = text if len(text) <= 400 else text[:399] + "…"
        return (
            f"Attention between {len(self.tokens)} tokens: {shown}. Lines lead from each token, as query on the left, "
            "to the tokens it attends to, as keys on the right; more solid lines mean more attention."
        )

    def _filters(self) -> str:
        if self.second_start is None:
            return ""
        options = "".join(
            f'<option value="{key}"{" selected" if key == self.filter else ""}>{html.escape(name)}</option>'
            for key, name in FILTERS.items()
        )
        return _select("filter", "Attention", options)

    def _check_size(self) -> None:
        size = self._estimate(len(self.blocks), len(self.heads))
        if size > MAX_BYTES:
            raise self._too_large(size)

    def _estimate(self, n_blocks: int, n_heads: int) -> int:
        return estimate_bytes(n_blocks, n_heads, len(self.tokens), self.view, self.dim)

    def _too_large(self, size: int) -> InputError:
        n_blocks, n_heads = len(self.blocks), len(self.heads)
        fewer_blocks = [b for b in range(1, n_blocks) if self._estimate(b, n_heads) <= MAX_BYTES]
        fewer_heads = [h for h in range(1, n_heads) if self._estimate(n_blocks, h) <= MAX_BYTES]
        ways = [f"choose at most {fewer_blocks[-1]} of the blocks"] if fewer_blocks else []
        ways += [f"choose at most {fewer_heads[-1]} of the heads"] if fewer_heads else []
        fix = ", or ".join([*ways, "shorten the text"])
        return InputError(
            f"{n_blocks} blocks of {n_heads} heads at {len(self.tokens)} tokens make a page of {size / 2**20:.1f} MB.",
            f"A page can have at most {MAX_BYTES // 2**20} MB.",
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


def _select(key: str, label: str, options: str = "") -> str:
    """A labelled select; bertviz itself fills those of blocks and heads, and needs the label's class."""
    return (
        f'<span><label class="dropdown-label" for="{key}">{label}</label> <select id="{key}">{options}</select></span>'
    )
