"""Code for attention: one head or several as a matrix, patterns, flow; what changes around a mask, and guesses in contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from components.snippets import code
from components.snippets.code import Input, Snippet

if TYPE_CHECKING:
    from components.analysis.attention.weights import Combination, TextsFilter
    from components.model.backend import Backend

Special = Literal["shown", "hidden", "renormalised"]
ATTENTIONS = "attentions = of_sentence(trace, 0)  # [block, head, query, key]"


def matrix(
    read: Input,
    blocks: Sequence[int],
    heads: Sequence[int],
    how: Combination | Literal["one"],
    *,
    words: bool,
    special: Special,
    texts: TextsFilter,
    rows: Sequence[int] = (),
) -> Snippet:
    """A head, or several combined, as a matrix; with `rows` what these of its rows add up to."""
    body = [read.trace(attentions=True), ATTENTIONS]
    if how == "one":
        body.append(f"values = attentions[{blocks[0]}, {heads[0]}]")
    else:
        chosen = ", ".join(code.literal(list(numbers)) for numbers in (blocks, heads))
        body.append(f"values = combine(attentions, {chosen}, {code.literal(how)})  # blocks, heads")
    hides = special != "shown"
    second = "second_text(trace.sentences[0])"
    mask = "trace.special_mask[0]"
    if words:
        body += ["merged = merge_words(values, trace.sentences[0])", "values = merged.matrix"]
        second, mask = "merged.second", "merged.special"
    if hides:
        body.append(f"values = without_special(values, {mask})")
        second = f"{second}[~{mask}]"
    if texts != "all":
        body.append(f"values = select_pair(values, {second}, {code.literal(texts)}).matrix")
    if special == "renormalised":
        body.append("values = renormalised(values)")
    body.append("print(values)  # [query, key]")
    if rows:
        body.append(f"received = received_from(values, {code.literal(list(rows))})")
        body.append("print(received)  # [key]: the sum of these rows")
    return read.snippet(*body)


def one_word(read: Input, sentence: int, position: int | Sequence[int]) -> Snippet:
    """Where one token of a sentence looks, in every head; for several positions, what each token gives to them together."""
    if isinstance(position, int):
        taken, axes = f"[:, {sentence}, :, {position}, :length]", "key"
    else:
        taken, axes = f"[:, {sentence}][..., :length, {code.literal(list(position))}].sum(axis=-1)", "query"
    return read.snippet(
        read.trace(attentions=True),
        f"length = len(trace.sentences[{sentence}])",
        f"weights = trace.attentions{taken}",
        f"print(weights)  # [block, head, {axes}]",
    )


def patterns(read: Input, texts: TextsFilter) -> Snippet:
    """The score of every head on every pattern."""
    option = "" if texts == "all" else f"texts={code.literal(texts)}, "
    return read.snippet(
        read.trace(attentions=True),
        "attentions = [of_sentence(trace, row) for row in range(len(texts))]",
        f"scored = score_heads(attentions, trace.sentences, {option}windows=backend.structure.windows)",
        "print(scored.scores)  # pattern to [block, head]",
        "print(scored.entropy, scored.distance)  # [block, head] each",
    )


def kinds(read: Input) -> Snippet:
    """The kind of every head, and the shares that say so."""
    return read.snippet(
        read.trace(attentions=True),
        ATTENTIONS,
        "kinds = head_kinds(attentions, trace.sentences[0], backend.structure.windows)",
        "values = kinds.shares",
        "print(kinds.names, values)  # [block, head, relation]: other words, token before, token after, itself, special",
    )


def rollout(read: Input, block: int, queries: Sequence[int], keys: Sequence[int]) -> Snippet:
    """The share of tokens' vectors after a block that comes from each token of the input, by rollout."""
    return read.snippet(
        read.trace(attentions=True),
        ATTENTIONS,
        f"shares = 100 * rollout(attentions)[{block}]  # per cent, [token after block {block}, token of the input]",
        *_shown("shares", queries, keys),
        *_beside_others(queries, keys),
    )


def norms_through(read: Input, block: int, queries: Sequence[int], keys: Sequence[int]) -> Snippet:
    """The same by norms through all blocks."""
    return read.snippet(
        read.trace(attentions=True),
        ATTENTIONS,
        read.inside(),
        f"shares = 100 * norm_flow(attentions, inside, backend.block_norms())[{block}]"
        f"  # per cent, [token after block {block}, token of the input]",
        *_shown("shares", queries, keys),
        *_beside_others(queries, keys),
    )


def norms(read: Input, block: int, head: int | None, queries: Sequence[int], keys: Sequence[int]) -> Snippet:
    """The length of what each token adds to others in one block, by all heads together or one `head`."""
    if head is None:
        lengths = f"summed_norms(attentions[{block}], inside.value_contributions({block}))"
    else:
        part = f"{block} : {block + 1}, {head} : {head + 1}"
        lengths = f"weighted_norms(attentions[{part}], inside.value_norms[{part}])[0, 0]"
    return read.snippet(
        read.trace(attentions=True),
        ATTENTIONS,
        read.inside(),
        f"lengths = {lengths}  # [token that receives, token that contributes]",
        *_shown("lengths", queries, keys),
    )


def _beside_others(queries: Sequence[int], keys: Sequence[int]) -> tuple[str, ...]:
    """Beside the shares of one token, what the other words take from the same tokens."""
    if len(queries) > 1:
        return ()
    given = f"shares, trace.special_mask[0], {queries[0]}, {code.literal(list(keys))}"
    return f"others = median_of_others({given})", "print(others)  # [token]: the median of the other words"


def _shown(name: str, queries: Sequence[int], keys: Sequence[int]) -> tuple[str, ...]:
    if len(queries) == 1:
        return f"values = {name}[{queries[0]}, {code.literal(list(keys))}]", "print(values)  # [token]"
    return (
        f"values = {name}[np.ix_({code.literal(list(queries))}, {code.literal(list(keys))})]",
        "print(values)  # [row, column]",
    )


def scores(read: Input, block: int, head: int, query: int, window: int | None) -> Snippet:
    """The scores of one query of a head, and the attention that they become."""
    return read.snippet(
        read.inside(score_terms=True),
        _head_scores(block, head, window),
        f"query = {query}",
        "print({name: part[query] for name, part in scored.parts.items()})  # [key] each",
        "values = scored.attention[query]",
        "print(scored.total[query], values)  # [key] each: the sums, and their softmax",
    )


def score_part(read: Input, block: int, head: int, name: str) -> Snippet:
    """One part of the scores of a head, or their "sum"."""
    return read.snippet(
        read.inside(score_terms=True),
        _head_scores(block, head, None),
        "values = scored.total" if name == "sum" else f"values = scored.parts[{code.literal(name)}]",
        "print(values)  # [query, key]",
    )


def _head_scores(block: int, head: int, window: int | None) -> str:
    return "scored = " + code.call("head_scores", "inside", str(block), str(head), window=window)


def rotation_angles(read: Input, block: int, positions: int) -> Snippet:
    """The angles by which positions turn pairs of dimensions."""
    return read.snippet(
        f"turned = angles(backend.rotation_speeds({block}), {positions})  # [position, pair], in radians",
        "values = np.cos(turned)",
        "print(np.degrees(turned))",
    )


def score_by_distance(read: Input, block: int, head: int, query: int, key: int, offsets: Sequence[int]) -> Snippet:
    """The score of a query and a key of a head at other distances."""
    return read.snippet(
        read.inside(),
        f"query, key = inside.queries[{block}, {head}, {query}], inside.keys[{block}, {head}, {key}]",
        f"offsets = np.arange({offsets[0]}, {offsets[-1] + 1})  # of the key, counted from the query",
        "values = score_by_distance("
        f"query, key, {query - key}, backend.rotation_speeds({block}), -offsets, inside.score_scale)",
        "print(values)  # [offset]",
    )


def _vectors(read: Input, block: int, head: int) -> tuple[str, ...]:
    pair = None if read.pairs is None else read.pairs[0]
    options = {"max_length": read.max_length}
    return (
        "vectors = " + code.call("backend.queries_and_keys", "texts[0]", code.literal(pair), str(block), **options),
        f"head = (vectors.queries[{head}], vectors.keys[{head}], vectors.score_scale, vectors.window)",
    )


def overview(read: Input, block: int, head: int, factor: int, how: str) -> Snippet:
    """The attention of one head in cells of several tokens."""
    return read.snippet(
        *_vectors(read, block, head),
        f"cells = attention_overview(*head, {factor}, {code.literal(how)})  # [query cell, key cell]",
        "values = np.sqrt(cells)",
        "print(cells)",
    )


def overview_row(read: Input, block: int, head: int, query: int) -> Snippet:
    """The exact attention of one query of a head."""
    return read.snippet(
        *_vectors(read, block, head),
        f"values = attention_row(*head, {query})",
        "print(values)  # [key]",
    )


def _masked(read: Input, position: int, whole_word: bool) -> tuple[str, ...]:
    hidden = code.call(
        "mask_token", "backend.tokenization", "trace.sentences[0]", str(position), whole_word=whole_word or None
    )
    length = "" if read.max_length is None else f", max_length={read.max_length}"
    return (
        read.trace(attentions=True),
        f"hidden = {hidden}",
        f"masked = backend.trace([hidden.text], [hidden.pair], attentions=True{length})",
    )


def masked_vectors(read: Input, position: int, whole_word: bool) -> Snippet:
    """The angle by which each token's last vector turns when a token is masked."""
    return read.snippet(
        *_masked(read, position, whole_word),
        "kept = kept_similarity(trace, masked)",
        "values = np.degrees(np.arccos(kept.tokens[-1]))",
        "print(values)  # [token], in degrees",
    )


def masked_attention(read: Input, position: int, whole_word: bool, block: int, head: int) -> Snippet:
    """The change of one head's attention when a token is masked."""
    return read.snippet(
        *_masked(read, position, whole_word),
        f"values = masked.attentions[{block}, 0, {head}] - trace.attentions[{block}, 0, {head}]",
        "print(values)  # [query, key]",
    )


def two_contexts(read: Input, hidden: Sequence[Sequence[int]], positions: Sequence[int], k: int) -> Snippet:
    """The `k` first guesses after the last block in each of two texts, at one position of each."""
    places = code.literal(list(zip(map(tuple, hidden), ((position,) for position in positions), strict=True)))
    call = code.call("backend.guesses", "text", "hidden=hidden", "positions=at", max_length=read.max_length, k=k)
    return read.snippet(
        f"places = {places}  # hidden, and read",
        f"guesses = [{call} for text, (hidden, at) in zip(texts, places, strict=True)]",
        "values = [one.probabilities[-1, 0] for one in guesses]",
        "print([one.ids[-1, 0] for one in guesses], values)",
    )


def template(
    backend: Backend, templates: Sequence[str], words: Sequence[str], controls: Sequence[str], max_length: int | None
) -> Snippet:
    """The probabilities of asked words for each filling of some templates."""
    call = code.call(
        "template_guesses",
        "backend",
        "templates",
        words=tuple(words),
        controls=tuple(controls) or None,
        max_length=max_length,
    )
    return Snippet(
        (code.model(backend), code.texts(templates, "templates")),
        (f"found = {call}", "values = found.mean_probabilities", "print(found.fillings, values)  # [filling, word]"),
    )
