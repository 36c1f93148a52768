"""The words for poolings, durations, sizes and counts, and for what an encoder is."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from components.model.catalog import GROUPS
from components.model.trace import POOLING_NAMES
from components.numbers import counted, millions
from components.retrieval.search import words
from components.sizes import in_words
from components.words.quotes import isolated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.architecture.structure import Structure
    from components.model.catalog import ModelSpec
    from components.model.trace import TokenizedSentence
    from components.retrieval.evaluation.pair_runs import Pairs

__all__ = [
    "NUMBERS_EXPLAINED",
    "POOLINGS_EXPLAINED",
    "POOLING_NAMES",
    "SIMILARITY_HELP",
    "SIMILARITY_NAMES",
    "among",
    "beginning",
    "cell_labels",
    "counted",
    "duration",
    "escape",
    "first_to_last",
    "how_positions_enter",
    "isolated",
    "millions",
    "missing_parts",
    "model_in_words",
    "named",
    "quoted",
    "rows_of_file",
    "searched_texts",
    "shortened",
    "structure_in_words",
    "window_of",
    "with_shared_words",
]
SHOWN_CHARACTERS, SHOWN_BEFORE = 600, 120  # of a text whose words are marked; those before the first mark
LONGEST_WORD = 40  # characters; a longer one is cut

POOLINGS_EXPLAINED = {
    "mean": "Mean of all tokens",
    "cls": "[CLS], the first token",
    "max": "Maximum in each dimension",
    "own": "The model's own vector",
    "last": "The last token",
}
SIMILARITY_NAMES = {
    "cosine": "Cosine",
    "dot": "Dot product",
    "euclidean": "Euclidean distance",
    "manhattan": "Manhattan distance",
}
PRODUCTS = {name: SIMILARITY_NAMES[name] for name in ("cosine", "dot")}  # by which every engine can search
SIMILARITY_HELP = (
    "Cosine: how nearly two vectors point in the same direction, without their lengths. Dot product: the cosine times both "
    "lengths. Distances are shown with a minus sign: more is more similar."
)
NUMBERS_EXPLAINED = "A number is a sentence's place in the corpus, counted from 0."


def duration(seconds: float) -> str:
    """A time in words: "12 s", "3 min", "1 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def whole_millions(count: int) -> str:
    """A large number rounded to millions, where there is little room: "23 M"."""
    return f"{round(count / 1e6):,} M"


def cell_labels(tokens: int, factor: int) -> list[str]:
    """The labels of rows or columns that each stand for so many tokens of a text: "0–3", "4–7", ..."""
    return [first_to_last(range(first, min(first + factor, tokens))) for first in range(0, tokens, factor)]


def first_to_last(positions: Sequence[int]) -> str:
    """The positions of a cell's tokens in words: "4–7", or "4" for one token."""
    return f"{positions[0]}–{positions[-1]}" if len(positions) > 1 else str(positions[0])


def shortened(text: str, most: int) -> str:
    """The beginning of a text in one line, at most `most` characters and an ellipsis."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"


def escape(text: str) -> str:
    """Text in which Markdown and HTML characters are escaped and web addresses do not become links.

    Streamlit's Markdown turns bare addresses into links after it has read the escapes; an invisible word joiner
    prevents this.
    """
    plain = "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+!|$~:&" else char for char in text)
    return re.sub(r"(?i)(:(?=//)|www(?=\.)|@)", "\\1\u2060", plain)


def quoted(text: str, most: int = 20) -> str:
    """A token or word in quotation marks for Markdown, as typed; a longer one than `most` characters ends in an ellipsis."""
    return f"“{isolated(escape(text if len(text) <= most else f'{text[: most - 1]}…'))}”"


def named(sentence: TokenizedSentence, position: int) -> str:
    """The word at a position in quotation marks; a piece with the word that it belongs to, since a share is its own alone."""
    word = quoted(sentence.word_text(position))
    if len(sentence.word_positions(position)) == 1:
        return word
    return f"{quoted(sentence.tokens[position].piece)} of {word}"


NBSP = "\u00a0"
NBSP_DOT = f"{NBSP}· "


def model_in_words(spec: ModelSpec, where: str, is_short: bool = False) -> str:
    """What a model of the catalog is: "sentence encoder · 33 M parameters · MIT · 133 MB download".

    `where` says where its files are; a download gets its size. A licence that is not known is left out. `is_short`: for a
    list, without the words that explain the two numbers, and with lines that end after a dot.
    """
    parts = [] if spec.group is None else [GROUPS[spec.group]]
    if spec.facts is not None:
        parameters = f"{round(spec.facts.parameters / 1e6):,}"
        parts.append(f"{parameters}{NBSP}M" if is_short else f"{parameters} M parameters")
    if spec.licence is not None:
        parts.append(spec.licence.partition(";")[0])
    if where == "download" and spec.megabytes is not None:
        megabytes = in_words(1e6 * spec.megabytes, about=True)
        where = megabytes.replace(" ", NBSP) if is_short else f"{megabytes} download"
    return (NBSP_DOT if is_short else " · ").join([*parts, where])


def how_positions_enter(structure: Structure) -> str:
    """One sentence for a model without position vectors at layer 0; empty for others."""
    if structure.has_position_vectors:
        return ""
    if not structure.has_blocks:
        return f"{structure.title} have no position vectors: a piece has the same vector wherever it stands."
    if structure.rotates:
        return f"{structure.title} has no position vectors: positions enter by rotation in each block."
    return (
        f"{structure.title} has no position vectors: in each block, terms for the distance of two tokens are added to their "
        "attention scores."
    )


def missing_parts(structure: Structure) -> str:
    """Why a model has no position or segment vectors at layer 0; empty where it has both."""
    positions = how_positions_enter(structure)
    if not structure.has_blocks:
        return positions
    if "segment" in structure.layer_zero_parts:
        return positions
    told_apart = "the two texts of a pair are told apart by the separator between them alone."
    if not positions:
        return f"{structure.title} has no vectors for token types (segments): {told_apart}"
    return f"{positions} It has none for token types (segments) either: {told_apart}"


def window_of(structure: Structure, block: int, tokens: int) -> str:
    """What a block of local attention sees of a text, and which blocks see all; empty for a model without such blocks."""
    window, windows = structure.windows[block], structure.windows
    if all(item is None for item in windows):
        return ""
    see_all = [number for number, item in enumerate(windows) if item is None]
    others = f"Global blocks: {', '.join(map(str, see_all))}." if see_all else "No block sees all tokens."
    if window is None:
        return f"Block {block} is global: each token sees all others. {others}"
    text = f"Block {block} is local: each token sees {counted(window, 'token')} on either side."
    if tokens - 1 <= window:
        text += f" This text has only {counted(tokens, 'token')}, so that the window hides nothing here."
    return f"{text} {others}"


def structure_in_words(structure: Structure) -> dict[str, str]:
    """What an encoder is, by the name of the property."""
    if not structure.has_blocks:
        return {
            "Positions": "none: the order of the tokens changes nothing",
            "Blocks": "none: a token has the same vector in every text",
        }
    ways = {
        "absolute": "a vector for each position, added at layer 0",
        "relative": "a number for each distance, added to the attention scores",
        "rotary": "rotation of queries and keys in each block (RoPE)",
        "disentangled": "vectors for distances, whose products with queries and keys are added to the attention scores",
    }
    windows = sorted({window for window in structure.windows if window is not None})
    local = [block for block, window in enumerate(structure.windows) if window is not None]
    attention = "each token to itself and to those before it" if structure.is_causal else "each token to all tokens"
    if windows:
        attention = (
            f"in {len(local)} of {len(structure.windows)} blocks only to tokens at most {windows[-1]} positions away"
        )
        if len(local) < len(structure.windows):
            attention += ", in the others to all"
    norms = (
        f"{structure.norm} first: attention and feed-forward read a normalised copy"
        if structure.normalises_first
        else f"{structure.norm} after attention and after feed-forward"
    )
    sets = len(set(structure.block_weights))
    return {
        "Positions": "; ".join(ways[way] for way in structure.positions),
        "Attention": attention
        + ("; one matrix for queries, keys and values" if structure.has_fused_projections else ""),
        "Norms": norms + ("; one more after the last block" if structure.has_final_norm else ""),
        "Feed-forward": "gated: one projection is multiplied by another"
        if structure.has_gated_feed_forward
        else "two dense layers",
        "Weights of the blocks": f"{counted(sets, 'set')} for {counted(len(structure.block_weights), 'block')}"
        if structure.shares_blocks
        else "each block has its own",
    }


def with_shared_words(query: str, text: str) -> str:
    """A text as HTML, in which the words that it shares with a query are marked.

    Of a very long one a part: its beginning, or where no such word stands in it, the part around the first one.
    """
    marked = words.highlighted(query, text)
    first, last = 0, _end_of_word(text, SHOWN_CHARACTERS)
    if marked and marked[0][1] > last:
        first = _end_of_word(text, max(0, marked[0][0] - SHOWN_BEFORE))
        last = _end_of_word(text, first + SHOWN_CHARACTERS)
    parts, done = ["… " if first else ""], first
    for start, end in marked:
        if end <= last:
            parts += [html.escape(text[done:start]), f"<mark>{html.escape(text[start:end])}</mark>"]
            done = end
    return "".join(parts) + html.escape(text[done:last]) + (" …" if last < len(text) else "")


def beginning(text: str, most: int) -> str:
    """The words of a text that stand in its first `most` characters, and an ellipsis where there are more."""
    last = _end_of_word(text, most)
    return text[:last] + (" …" if last < len(text) else "")


def _end_of_word(text: str, place: int) -> int:
    """The place of the last space before `place`; `place` itself where no space is near, or the end of a shorter text."""
    if place >= len(text):
        return len(text)
    near = max(0, place - LONGEST_WORD)
    return next((before for before in range(place, near, -1) if text[before].isspace()), place)


def rows_of_file(pairs: Pairs, unread: int) -> str:
    """What became of the rows of a file of pairs, of which `unread` could not be read, in a line that adds up."""
    return f"{replace(pairs.rows, lost=pairs.rows.lost + unread).said()}."


def searched_texts(pairs: Pairs) -> str:
    """How many queries search how many texts, and where some are right for no query, whether these are searched."""
    said = f"{pairs.asked}, {counted(len(pairs.documents), 'text')} searched"
    if pairs.others:
        said += f", {pairs.others:,} of them right for none of these"
        # Of a part of the queries, others are right for the rest of them, of which no choice of texts is.
        said += " (“Corpus”, above: the right texts alone)" * bool(pairs.asking)
    if pairs.unsearched:
        are = "is" if pairs.unsearched == 1 else "are"
        said += (
            f"; {counted(pairs.unsearched, 'text')} on rows without a query {are} left out (“Corpus”, above: all texts)"
        )
    return said


def among(pairs: Pairs) -> str:
    """Which texts the queries search, in a sentence for a finding, with the rows where several have one query; "" where each
    query has a text of its own, and these are all."""
    count = len(pairs.documents)
    if count == len(pairs) == pairs.asking and not (pairs.others or pairs.unsearched):
        return ""
    which = f"Only {'the right text' if count == 1 else f'the {count:,} right texts'}" if pairs.unsearched else ""
    which = which or f"{'All ' * bool(pairs.others)}{counted(count, 'text')}"
    said = f"{which} {'is' if count == 1 else 'are'} searched"
    said += f", {pairs.others:,} of them right for none of these queries" if pairs.others else ""
    return f"{pairs.asked}: {said[0].lower()}{said[1:]}." if pairs.asking > len(pairs) else f"{said}."
