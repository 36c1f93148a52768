"""Heatmaps of tokens: what blocks do to them, and how similar pairs of them are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import block_change
from components.analysis.attention import weights
from components.analysis.similarity import cosines
from components.arrays import cosine
from components.charts import curves, matrices, theme
from components.charts.inside_blocks import added, before_after
from components.charts.why import end_labels
from components.model.inside import InsideBlocks
from components.numbers import apart
from components.shown_code import cosines as shown_cosines
from components.shown_code.inside import Inside
from components.shown_code.vectors import unrelated
from dashboard import caching, state
from dashboard.ui import browser, controls, figures, messages, pair_choice, wording
from dashboard.views.heatmaps import findings, pair_findings

if TYPE_CHECKING:
    from components.analysis.similarity.baseline import Baseline
    from components.model.backend import Backend
    from components.model.trace import Token, TokenizedSentence, Trace
    from components.shown_code.arrays import Input

NOT_SHOWN = (
    "Why two vectors are similar, or whether this matters for what the model does. Cosines of unrelated tokens are not "
    "0: compare with the average of two unrelated tokens."
)

NUMBERED = 16  # tokens of a picture whose cells have numbers
NUMBERS_FROM = (0.75, 0.96)  # of the cells, on a laptop and on a phone
HIGHEST_NUMBERED = "The highest quarter of the cells has numbers (on a phone, the highest 4 %)."
MOST_CELLS = 360_000  # in all pictures together: a cell is sent as 7 to 8 bytes, and the limit is 3 MB
ON_PHONE = 64  # tokens: a phone has a figure of its own, which every screen is sent; of more tokens it swipes
STRONGEST = 3  # cells of other tokens that are framed and named
RANKS = 2_001  # of a block's cosines, from which the ends of the colours are read
NAMED_LINES = 12  # tokens whose lines have their names at their ends
NARROWEST, AROUND_CELLS = (
    0.6,
    0.25,
)  # of the cells of the wider of two pictures: the other's cells, and what stands beside cells
COARSE = 424  # rows and columns of a picture of more tokens than that, so that two fit


def input_and_output(backend: Backend) -> None:
    """A block's input tokens against its output tokens, for two blocks; then the diagonals of all blocks."""
    last = backend.facts.layers - 1
    with controls.row():
        pair_choice.choose_first()
        first = controls.stepped("first_block", "Left: block", 0, last, 0, caching.glossary()["block"])
        second = controls.stepped("second_block", "Right: block", 0, last, last, caching.glossary()["block"])
        options = controls.options()
        with options:
            pair_choice.choose_second()
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
            own_scale = controls.switch(
                "own_scale", "Separate colour scales", "Each picture uses its own range instead of a shared one."
            )
    pair = pair_choice.chosen()
    trace = pair.trace(backend)
    sentence = trace.sentences[0]
    pair.tell_truncation(sentence)
    positions = block_change.positions_of(trace, 0, special)
    if not positions:
        no_tokens()
        return
    factor = tokens_a_cell(len(positions))
    baseline = caching.token_baseline(backend)
    diagonal = block_change.diagonal(trace, 0, include_special=special).values  # [block, token]
    changes = {
        block: block_change.block_change(trace, 0, block, include_special=special)
        for block in dict.fromkeys((first, second))
    }
    means = [block_change.means_of(change, block) for block, change in changes.items()]
    framed = {block: block_change.strongest_others(change, STRONGEST) for block, change in changes.items()}
    cells = {block: matrices.mean_cells(change.matrix, factor) for block, change in changes.items()}
    with options:
        drawn = _pictures_that_fit(list(cells.values()))
    pieces = [sentence.tokens[position].piece for position in positions]
    tell_cells(factor, len(positions))
    pictures = [
        before_after.BlockPicture(
            item.block, cells[item.block], _heads(item, last, baseline), framed[item.block] if factor == 1 else ()
        )
        for item in (means[index] for index in drawn)
    ]
    scales = _scales(trace, special, diagonal, pictures, own_scale)
    own = [not sentence.tokens[position].special for position in positions]
    least = block_change.least_like_itself(changes[second], own)  # in words of the text
    said_of_least = findings.changed_most(least, means[-1], pieces)
    names = f"block{'s' * (len(pictures) > 1)} " + " and ".join(str(item.block) for item in pictures)
    draw = partial(
        before_after.before_and_after,
        labels=coarse_labels(sentence, positions, factor),
        itself=_mean_rows(diagonal.T, factor),
        title=f"Before and after {names}",
        names=pieces if factor == 1 else None,
        second_text=second_text(sentence, positions) if factor == 1 else None,
        dark=controls.is_dark(),
        scale=controls.scale(),
    )
    on_phone = None
    if len(positions) <= ON_PHONE:  # the block of which the finding speaks first
        stacked = draw(pictures[::-1], scales=scales[::-1], is_stacked=True)
        on_phone = stacked, partial(_take_block, last, "phone_block_change")
    figures.figure(
        draw(pictures, scales=scales),
        key="block_change",
        code=shown_cosines.blocks_change(pair.input(backend), list(changes), positions),
        alt=f"Cosines of {len(positions)} tokens before and after {names}: "
        + "; ".join(", ".join(picture.heads) for picture in pictures),
        message=findings.before_and_after(means, diagonal.mean(axis=1).tolist(), baseline.across.tolist())
        + said_of_least,
        read="Rows are the tokens that go into a block, columns the tokens that come out. A strong diagonal means that the "
        "block changes the tokens little. An orange column means that the block's output for this token is similar to the "
        f"input of every token. {_colours(pictures, scales)} The last picture is each token's cosine with itself by block: a "
        "click on a column shows that block. “By chance” is measured on tokens of different words in different sentences, one "
        "before the block and one after it: only what is above that is mixing.",
        not_shown=NOT_SHOWN,
        table=lambda: _table(changes, pieces, positions),
        on_select=partial(_take_block, last),
        select_many=False,
        on_phone=on_phone,
    )
    if len(positions) > before_after.NUMBERED:  # the cells have no numbers
        _name_strongest([picture for picture in pictures if picture.framed], pieces)
    if not said_of_least and not findings.is_alike(means[-1]):
        _name_least(least, pieces, second)
    if not baseline.is_measured:
        st.caption(messages.no_baseline(baseline))
    _diagonal(trace, special, pair.input(backend))


def _heads(item: block_change.BlockMeans, last: int, baseline: Baseline) -> list[str]:
    """The lines above a picture: its name and its means."""
    itself, another = apart(item.itself, item.another)
    lines = [_name(item.block, last), f"itself {itself}"]
    if item.tokens > 1:
        lines.append(f"another {another}")
        if baseline.is_measured:
            lines.append(f"by chance (other sentences) {theme.number(baseline.across[item.block], 2)}")
    return lines


def _scales(
    trace: Trace, special: bool, diagonal: np.ndarray, pictures: Sequence[before_after.BlockPicture], own_scale: bool
) -> list[before_after.Scales]:
    """The colours of each picture: one scale for all blocks of the model, or each its own.

    Another block must not change a colour's meaning. Of a long text all cosines of all blocks would take much memory.
    """
    tokens = diagonal.shape[1]
    if len(pictures[0].matrix) < tokens:  # cells are means of several tokens, itself among them
        limits = [matrices.side_by_side_limits(picture.matrix) for picture in pictures]
        if not own_scale:
            low, high = min(low for low, _ in limits), max(high for _, high in limits)
            limits = [(min(0.0, low), max(before_after.ANOTHER[1], high))] * len(pictures)
        return [before_after.Scales(None, ends) for ends in limits]
    if own_scale:
        return [
            before_after.scales_of(np.diagonal(picture.matrix), _others(picture.matrix), narrow=True)
            for picture in pictures
        ]
    others = [
        _thinned(_others(block_change.block_change(trace, 0, block, include_special=special).matrix))
        for block in range(len(diagonal))
    ]
    return [before_after.scales_of(diagonal, np.concatenate(others))] * len(pictures)


def _others(matrix: np.ndarray) -> np.ndarray:
    """The cosines off the diagonal."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _thinned(values: np.ndarray) -> np.ndarray:
    """At most RANKS of these values, evenly by rank, with the smallest and the largest."""
    if values.size <= RANKS:
        return values
    return np.asarray(np.sort(values)[np.linspace(0, values.size - 1, RANKS).round().astype(int)])


def _colours(pictures: Sequence[before_after.BlockPicture], scales: Sequence[before_after.Scales]) -> str:
    """What the colours mean, for each block if they differ."""
    if len(set(scales)) == 1:
        return scales[0].in_words()
    said = [f"Block {picture.block}: {of.in_words()}" for picture, of in zip(pictures, scales, strict=True)]
    return f"{' '.join(said)} The colour bars are those of the first picture; the last picture has a scale of its own."


def _mean_rows(values: np.ndarray, factor: int) -> np.ndarray:
    """[token, block] with fewer rows, each the mean of `factor` tokens."""
    starts = np.arange(0, len(values), factor)
    counts = np.diff(np.append(starts, len(values)))
    return np.asarray(np.add.reduceat(values, starts, axis=0) / counts[:, None])


def _table(
    changes: Mapping[int, block_change.TokenSimilarity], pieces: Sequence[str], positions: Sequence[int]
) -> pd.DataFrame:
    """One row for each block and token that goes in, one column for each token that comes out."""
    names = [f"{position} {piece}" for position, piece in zip(positions, pieces, strict=True)]
    frames = []
    for block, change in changes.items():
        frame = pd.DataFrame(change.matrix.round(4), columns=names)
        frame.insert(0, "token that goes in", names)
        frame.insert(0, "block", block)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _take_block(last: int, key: str = "block_change") -> None:
    """Show the block whose column of the strip was clicked, beside the first."""
    cell = browser.place_selected(key)
    if len(cell) == 2 and browser.is_index(cell[1], last + 1):
        state.put("second_block", cell[1])


def _name_strongest(pictures: Sequence[before_after.BlockPicture], pieces: Sequence[str]) -> None:
    """The pairs of tokens in the framed cells, by name."""
    parts = []
    for picture in pictures:
        pairs = ", ".join(
            f"{messages.escape(pieces[row])} → {messages.escape(pieces[column])} "
            f"**{theme.number(picture.matrix[row, column], 2)}**"
            for row, column in picture.framed
        )
        parts.append(f"Strongest in block {picture.block}, from in to out: {pairs}.")
    if parts:
        figures.note(" ".join(parts), key="strongest")


def _name_least(least: block_change.LeastLikeItself | None, pieces: Sequence[str], block: int) -> None:
    said = findings.least_like_itself(least, pieces)
    if said and len(pieces) > 1:
        figures.note(f"Of the text's own tokens, least like itself in block {block}: {said}.", key="least_like_itself")


def _pictures_that_fit(pictures: Sequence[np.ndarray]) -> list[int]:
    """The indices of the pictures to draw: all, or the one that a person chooses if two have too many cells."""
    if sum(picture.size for picture in pictures) <= MOST_CELLS:
        return list(range(len(pictures)))
    sides = {"left": "the left", "right": "the right"}
    chosen = controls.choice("one_side", "Too many tokens for two pictures at once: show", sides)
    return [list(sides).index(chosen)]


def tokens_a_cell(tokens: int) -> int:
    """How many tokens a row or column of a picture stands for: 1 up to 600 tokens."""
    return 1 if tokens**2 <= MOST_CELLS else -(-tokens // COARSE)


def coarse_labels(sentence: TokenizedSentence, positions: Sequence[int], factor: int) -> list[str]:
    """The labels of rows or columns that each stand for so many tokens."""
    if factor == 1:
        return token_labels(sentence, positions)
    groups = [positions[first : first + factor] for first in range(0, len(positions), factor)]
    return [wording.first_to_last(group) for group in groups]


def tell_cells(factor: int, tokens: int) -> None:
    if factor > 1:
        st.caption(
            f"{tokens:,} tokens are too many to draw one by one: each cell is the mean of {factor} × {factor}, and its row and "
            "column are named by their positions. The code gives the cosines of single tokens."
        )


def tell_numbered() -> None:
    """Which cells have numbers; the style sheet shows what is so on this screen."""
    st.html(
        '<p class="bi-numbered"><span>The highest quarter of the cells has numbers.</span>'
        "<span>The highest 4 % of the cells have numbers.</span></p>"
    )


def no_tokens() -> None:
    """Say that there is nothing to draw without special tokens."""
    st.info("This text has no tokens of its own. Switch the special tokens on, or type more text.")


def token_labels(sentence: TokenizedSentence, positions: Sequence[int]) -> list[str]:
    """The labels of some of a sentence's tokens on an axis."""
    return matrices.axis_labels([token.piece for token in sentence.tokens], positions)


def second_text(sentence: TokenizedSentence, positions: Sequence[int]) -> int | None:
    """The number of the first of these tokens that belongs to the second text of a pair; None without one."""
    in_second = weights.second_text(sentence)  # [token]
    return next((number for number, position in enumerate(positions) if in_second[position]), None)


def cell_widths(columns: Sequence[int]) -> list[float]:
    """The widths of pictures beside each other with so many columns: of two, cells of one width if not too unlike."""
    if len(columns) != 2:
        return [1.0] * len(columns)
    most = max(columns)
    return [max(count / most, NARROWEST) + AROUND_CELLS for count in columns]


def label_room(tokens: Iterable[Token]) -> int:
    """The letters of the longest label of tokens, for which a picture, and all that stand beside it, leave room."""
    return max((len(f"{token.position} {token.piece}") for token in tokens), default=0)


def cosine_picture(
    cosines: np.ndarray, row_labels: Sequence[str], column_labels: Sequence[str], title: str, **options: Any
) -> None:
    """A figure of tokens against tokens; the `options` are those of `figures.matrix`."""
    figures.matrix(
        cosines,
        row_labels,
        column_labels,
        title,
        alt=f"{title}: similarities of {len(row_labels)} by {len(column_labels)} tokens",
        label_column="token",
        digits=4,
        **{"value": "cosine"} | options,
    )


def _diagonal(trace: Trace, special: bool, read: Input) -> None:
    diagonal = block_change.diagonal(trace, 0, include_special=special)
    labels = token_labels(trace.sentences[0], diagonal.positions)
    values = diagonal.values.T  # [token, block]
    names = [f"block {block}" for block in range(values.shape[1])]
    means = np.nanmean(values, axis=0)
    block = int(np.nanargmin(means))
    chart = curves.block_curves(values, labels, "Similarity of each token before and after a block")
    pieces = [trace.sentences[0].tokens[position].piece for position in diagonal.positions]
    names_of_lines = [  # with its number where there are several
        label if pieces.count(piece) > 1 else piece for label, piece in zip(labels, pieces, strict=True)
    ]
    figures.figure(
        end_labels.label_ends(chart, [*names_of_lines, "mean"]) if len(labels) <= NAMED_LINES else chart,
        key="diagonal",
        code=shown_cosines.before_and_after(read, diagonal.positions),
        alt=f"Cosine of each token before and after every block; block {block} changes tokens most",
        message=f"Block {block} changes the tokens most: their mean cosine before and after it is "
        f"{theme.number(means[block], 2)}.",
        read="The diagonals of all blocks, with one line per token. 1 means that the direction is unchanged. The thick "
        "line is the mean.",
        not_shown="What a token loses or gains: a cosine measures only how far its direction turns. Its length may change "
        "too.",
        table=lambda: pd.DataFrame(values.round(4), columns=names).assign(token=labels),
    )


def inside(backend: Backend) -> None:
    """How much attention and feed-forward add to each token in two blocks, and how far each step turns it."""
    last = backend.facts.layers - 1
    with controls.row():
        pair_choice.choose_first()
        first = controls.stepped("first_block", "Left: block", 0, last, 0, caching.glossary()["block"])
        second = controls.stepped("second_block", "Right: block", 0, last, last, caching.glossary()["block"])
        with controls.options():
            pair_choice.choose_second()
    pair = pair_choice.chosen()
    record = backend.inside(pair.first, pair.second, max_length=controls.length_for(backend), attentions=False)
    pair.tell_truncation(record.sentence)
    tokens = record.sentence.tokens
    pieces, special = [token.piece for token in tokens], [token.special for token in tokens]
    shown, code = list(dict.fromkeys((first, second))), Inside(pair.input(backend))
    lengths = {block: _lengths(record, block) for block in shown}  # of each, [part, token]
    names = f"block{'s' * (len(shown) > 1)} " + " and ".join(map(str, shown))
    turns = {block: _turns(record, block) for block in shown}
    figures.figure(
        added.added_bars(
            [added.BlockBars(f"Block {block}", turns[block], means=_means(turns[block])) for block in shown],
            pieces,
            f"How far {names} turn{'s' * (len(shown) == 1)} tokens",
            "degrees",
            numbers="°",
            dark=controls.is_dark(),
            scale=controls.scale(),
        ),
        key="inside_turns",
        code=code.turns(shown),
        alt=f"Bars: degrees by which attention and feed-forward turn each token in {names}",
        message=findings.parts_turn(turns),
        read="A token's vector is a direction with a length. Each bar is the angle between the vector before and after one "
        "step: attention, which takes from other tokens, or feed-forward, for each token alone. 0° means that the direction is "
        "unchanged, and at 90° the two have nothing in common. The numbers above a picture and in the sentence are means of "
        "all tokens, special ones too. " + _step_in_words(backend, shown[-1]),
        not_shown="Which of the two steps matters more for the model's answer. The figure below shows how long the vectors "
        "are that they add.",
        table=lambda: _turns_table(turns, pieces),
    )
    far = block_change.far_above(np.concatenate(list(lengths.values())))
    figures.figure(
        added.added_bars(
            [added.BlockBars(_name(block, last), lengths[block][1:3], lengths[block][[0, 3]]) for block in shown],
            pieces,
            f"What {names} add{'s' * (len(shown) == 1)} to each token",
            "length",
            mark="length of what it is added to",
            break_above=None if far is None else far.limit,
            dark=controls.is_dark(),
            scale=controls.scale(),
        ),
        key="inside_norms",
        code=code.lengths(shown),
        alt=f"Bars: lengths of the vectors that attention and feed-forward add to each token in {names}",
        message=findings.parts_add(
            {block: values[1:3] for block, values in lengths.items()},
            pieces,
            special,
            far,
            {block: _along(record, block) for block in shown},
        ),
        read="Each bar is the length of the vector that one part of the block adds to a token's vector; the grey mark is the "
        "length of what it is added to. "
        + (
            "Attention reads a normalised copy and adds its vector to the token's; then feed-forward does the same. "
            if backend.structure.normalises_first
            else "Attention adds its vector to it, and the sum goes through a first LayerNorm. The vector of feed-forward is "
            "added to what that LayerNorm gives, and the sum goes through a second one: the longer the addition, the less is "
            "left of what was there. "
        )
        + "A bar that is far longer than all others is broken (//) and has its number. A length is also called a norm.",
        not_shown="Whether the added vector points along the token's vector or across it: see the figure above.",
        table=lambda: _lengths_table(lengths, pieces),
    )


def _name(block: int, last: int) -> str:
    return f"Block {block}" + ({0: " (first)", last: " (last)"}.get(block, "") if last else "")


def _lengths(record: InsideBlocks, block: int) -> np.ndarray:
    """Lengths [4, token]: before the block, added by attention, added by feed-forward, and of what the last is added to."""
    parts = (
        record.hidden_states[block],
        record.attention_output[block],
        record.feed_forward_output[block],
        record.after_attention[block],
    )
    return np.asarray(np.linalg.norm(np.array(parts, np.float64), axis=-1))


def _along(record: InsideBlocks, block: int) -> np.ndarray:
    """Cosines of what attention and feed-forward add to each token with what it is added to, [2, token]."""
    added = (record.attention_output[block], record.feed_forward_output[block])
    before = (record.hidden_states[block], record.after_attention[block])
    return np.array([cosine(own, to) for own, to in zip(added, before, strict=True)])


def _turns(record: InsideBlocks, block: int) -> np.ndarray:
    """By how many degrees attention and feed-forward turn each token, [2, token]."""
    before, between, after = record.hidden_states[block], record.after_attention[block], record.hidden_states[block + 1]
    return np.array([cosines.turn(before, between), cosines.turn(between, after)])


def _lengths_table(lengths: Mapping[int, np.ndarray], pieces: Sequence[str]) -> pd.DataFrame:
    names = ("before the block", "added by attention", "added by feed-forward", "after attention")
    return _by_block(
        {block: dict(zip(names, values.round(4), strict=True)) for block, values in lengths.items()}, pieces
    )


def _means(turns: np.ndarray) -> list[str]:
    """The mean degrees of both steps, as they are shown."""
    return [f"{mean}°" for mean in apart(*(float(turn.mean()) for turn in turns), digits=0, most=1)]


def _turns_table(turns: Mapping[int, np.ndarray], pieces: Sequence[str]) -> pd.DataFrame:
    names = ("attention step", "feed-forward step")
    return _by_block({block: dict(zip(names, values.round(3), strict=True)) for block, values in turns.items()}, pieces)


def _by_block(columns: Mapping[int, Mapping[str, np.ndarray]], pieces: Sequence[str]) -> pd.DataFrame:
    """One row for each block and token."""
    return pd.concat(
        [pd.DataFrame({"block": block, "token": list(pieces), **values}) for block, values in columns.items()],
        ignore_index=True,
    )


def _step_in_words(backend: Backend, block: int) -> str:
    """What a step does to a token's vector."""
    structure = backend.structure
    if not structure.normalises_first:
        return "A step adds a vector to the token's vector and brings the sum to one scale (LayerNorm)."
    text = f"A step adds a vector to the token's vector. In {structure.title} nothing scales the sum"
    if structure.has_final_norm and block == len(structure.windows) - 1:
        return f"{text} but a {structure.norm} after the last block, which belongs to the feed-forward step here."
    return f"{text} inside the block."


def tokens(backend: Backend) -> None:
    """Pairs of tokens at a layer: within a sentence, or of a sentence and one or two others."""
    texts = state.get("sentences")
    default = 3 if len(texts) > 2 else 0
    with controls.row():
        query = controls.sentence_of(texts, "sentence_a", "Sentence", 0)
        first = controls.sentence_of(texts, "against", "Compare with", min(1, len(texts) - 1) + 1, none="itself")
        trace = controls.current_trace(backend)
        last = trace.n_layers
        layer = controls.stepped("layer", "Layer", 0, last, last, caching.glossary()["layer"])
        with controls.options():
            second = controls.sentence_of(texts, "also_against", "Compare also with", default, none="no other")
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
            as_percentiles = controls.percentiles()
    messages.truncation(trace.sentences)
    if not block_change.positions_of(trace, query, special):
        no_tokens()
        return
    others = [query if first == 0 else first - 1] + ([second - 1] if second else [])
    similarities = [
        block_change.token_similarity(trace, layer, query, other, include_special=special) for other in others
    ]
    baseline = caching.token_baseline(backend)
    calibration = baseline.calibration(layer)
    factor = max(tokens_a_cell(max(item.matrix.shape)) for item in similarities)
    shown = [
        matrices.mean_cells(100 * calibration.shares(item.matrix) if as_percentiles else item.matrix, factor)
        for item in similarities
    ]
    limits = (0.0, 100.0) if as_percentiles else matrices.side_by_side_limits(*shown)
    drawn = _pictures_that_fit(shown)
    numbered = max(max(shown[index].shape) for index in drawn) <= NUMBERED
    figures.finding(
        pair_findings.of_pictures(
            [(similarities[index], others[index]) for index in drawn],
            query,
            trace.sentences,
            as_percentiles,
            float(baseline.raw.high[layer]) if baseline.is_measured else None,
        ),
        key="token_pairs",
        read="A row is a token of the first sentence, a column one of the other. The stronger a cell's blue, the more alike "
        "the directions of the two vectors are (cosine): 1 is the same direction, 0 none in common. "
        + "The highest cells have numbers: of all cells together a quarter, on a phone 4 %. " * numbered
        + "Point at a cell for its own. Compare one sentence with two others: which has a blue cell for each of its words?"
        + (" A percentile is the share of unrelated tokens that are less similar at this layer." * as_percentiles),
        not_shown=NOT_SHOWN,
    )
    value = "percentile" if as_percentiles else "cosine"
    # Of the pictures together a quarter of the cells: all numbers would be as small as the longest; on a phone a few.
    cells = np.concatenate([shown[index].ravel() for index in drawn])
    numbers_from, small_from = (float(np.nanquantile(cells, share)) for share in NUMBERS_FROM)
    tell_cells(factor, max(max(item.matrix.shape) for item in similarities))
    room = label_room(
        trace.sentences[others[index]].tokens[position]
        for index in drawn
        for position in similarities[index].column_positions
    )
    with st.container(key="wide_cells"), figures.together(f"tokens_{drawn[0]}"):
        columns = st.columns(cell_widths([shown[index].shape[1] for index in drawn]))
        for index, column in zip(drawn, columns, strict=True):
            item, other = similarities[index], others[index]
            called = f"Sentence {query + 1} with itself" if other == query else f"Sentences {query + 1} and {other + 1}"
            with column:
                cosine_picture(
                    shown[index],
                    coarse_labels(trace.sentences[query], item.positions, factor),
                    coarse_labels(trace.sentences[other], item.column_positions, factor),
                    f"{called}, layer {layer}",
                    rows=f"sentence {query + 1}",
                    columns=f"sentence {other + 1}",
                    limits=limits,
                    pale=True,
                    show_values=numbered,
                    numbers_from=numbers_from,
                    room=room,
                    small_from=small_from if numbered else None,
                    colour_bar=False,
                    key=f"tokens_{index}",
                    code=unrelated(percentiles=True)
                    if as_percentiles
                    else shown_cosines.tokens_with_tokens(
                        controls.current_input(backend),
                        (layer, query, item.positions),
                        (layer, other, item.column_positions),
                    ),
                    value=value,
                    # On a projector a little lower, so that it is whole below the finding.
                    plot_height=25 * len(item.positions)
                    if controls.scale() > 1 and len(item.positions) <= 10
                    else None,
                )
    figures.colour_bar(value, limits, pale=True)
    if numbered:
        tell_numbered()
    st.caption(
        f"Two unrelated tokens have a cosine of {theme.number(baseline.raw.mean[layer], 2)} at layer {layer} on average."
        if baseline.is_measured
        else messages.no_baseline(baseline)
    )
