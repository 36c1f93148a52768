"""One word's attention: a fan for one head, and beside it where the word looks in every head."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.first_look.decisive import DECIDED, REACH, Habits, decisive_heads
from components.analysis.first_look.first_looks import FirstLooks, first_looks
from components.analysis.first_look.looked_at import decisive_looks_at, looked_at, received
from components.analysis.first_look.words import CANDIDATES, Word, words_of
from components.charts.stand_alone.page import PagePart
from components.errors import InputError
from components.numbers import percent
from components.shown_code import attention as shown_attention
from components.shown_code.arrays import Input
from components.words.opposites import opposite_of
from dashboard import state
from dashboard.jobs.stored.included_words import included_words, kept_habits
from dashboard.sharing import report
from dashboard.ui import browser, controls, figures, messages, wording
from dashboard.ui.waiting import frame
from dashboard.ui.whole_path.packed import packed
from dashboard.views.word_attention import findings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from components.analysis.first_look.decisive import Look
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence

_KEY = "word_looks"
_HTML = (
    '<section class="drawing looks" aria-label="What the word looks at, or what looks at it">'
    '<div class="stage" tabindex="0" role="application" '
    'aria-label="Heads: left and right arrow keys choose a head, up and down a block"></div>'
    '<p class="hint" aria-live="polite"></p><div class="blocks" role="group" aria-label="Blocks"></div>'
    '<div class="pills" role="group"></div></section>'
)
MOST_TOKENS = 256  # of a sentence: the attentions of all heads of more take too long to compute while a person waits
MOST_ROWS, ROWS_OF_MANY = 24, 20  # tokens with a row of their own, and how many where there are more
DECISIVE = 3  # heads that are offered, each for another word
READ = (
    "Left, the word looks at the tokens of its sentence in one head; a curve is as thick as its share. Right, every head "
    "has a column: its cells are the same shares for that head: the larger, the stronger its blue. Of each head the content "
    "word counts whose share is furthest above what the head gives to that distance on average in the included sentences, "
    "because many heads look at the token before in every sentence. Of the heads with the same word the most decisive one "
    "can have a number: its share is the furthest above. Number 1 is the most decisive of all. A word of several pieces "
    "looks from its last one."
)
READ_TO = (
    "Left, the tokens of the sentence look at the word in one head; a curve is as thick as the share of its own attention "
    "that a token gives to the word. Right, every head has a column with these shares: the larger, the stronger its blue. A "
    "column does not add up to 100 %: each token has 100 % of its own to give. Of each head the other word counts whose "
    "share is furthest above what the head gives to that distance on average in the included sentences. Of the heads with "
    "the same word the most decisive one can have a number: its share is the furthest above. Number 1 is the most decisive "
    "of all. What goes to a word of several pieces is added up; a word of several pieces looks from its last one."
)
DIRECTIONS = {"from": "Looks at", "to": "Is looked at by"}
NOT_SHOWN = (
    "Why the model decides as it does: attention is not explanation "
    "([Jain and Wallace 2019](https://arxiv.org/abs/1902.10186), "
    "[Wiegreffe and Pinter 2019](https://arxiv.org/abs/1908.04626)). A head that looks at a noun has not shown that the "
    "pronoun stands for it, and what is taken along also depends on the value vectors (see Flow)."
)


@dataclass(frozen=True, eq=False)
class Looked:
    """Where a token of a sentence looks."""

    sentence: TokenizedSentence
    position: int
    weights: Float32  # [block, head, query, key]
    words: tuple[Word, ...]
    word: Word | None  # None for a special token or a punctuation mark
    decisive: tuple[Look, ...]
    head: tuple[int, int]  # block and head of the fan
    habits: Habits | None  # what the heads do in other sentences, if that is known
    is_chosen: bool  # somebody has chosen the head of the fan
    is_reversed: bool  # who looks at it, instead of where it looks

    @property
    def own(self) -> tuple[int, ...]:
        """The positions of the word's tokens."""
        return self.word.positions if self.word else (self.position,)

    @property
    def row(self) -> Float32:
        """What the token gives to each, [block, head, key]; reversed, what each gives to the word, [block, head, query]."""
        return received(self.weights, self.own) if self.is_reversed else self.weights[:, :, self.position]


def intro() -> str:
    """What the picture shows, in the direction that is chosen."""
    if state.get("look_direction") == "to":
        return "Each share is of the attention of the token that looks: a column does not add up to 100 %."
    return "Left: one head. Right: a column for each head, stronger blue for more attention."


def draw(backend: Backend) -> None:
    """Draw where the chosen word of a sentence looks."""
    sentences = controls.current_tokens(backend)
    interest = controls.interest(sentences, backend)
    row, chosen = interest.row, interest.positions
    with controls.row():
        if len(sentences) > 1:
            with st.container(key="looks_sentence"):
                texts = state.get("sentences")
                row = controls.sentence_of(texts, "sentence", "Sentence", row, label_inside=True)
        tokens = st.container(key="looks_tokens")
        controls.choice("look_direction", "The word", DIRECTIONS, show_label=False)
    sentence = sentences[row]
    if len(sentence) > MOST_TOKENS:
        raise InputError(
            f"Sentence {row + 1} has {len(sentence):,} tokens.",
            f"This view shows at most {MOST_TOKENS}.",
            "Shorten the sentence, or lower the maximum length.",
        )
    pick = partial(_pick, sentences, chosen, row)
    with tokens:
        controls.token_chips(
            sentences,
            chosen,
            "chips_looks",
            rows=[row],
            whole_word=True,
            unknown_id=backend.tokenization.unknown_id,
            on_pick=lambda _, at: pick(at),
        )
    messages.truncation([sentence], names=[(f"sentence {row + 1}", "")])
    weights, habits = _weights(backend, sentence.text), kept_habits(backend)
    above, below = st.container(), st.container()
    if habits is None:
        with below, frame.figure("looks_habits"):
            habits = included_words(backend).habits
    looked = _looked(sentence, chosen[row], weights, habits)
    if habits is None:
        with below:
            st.caption("What its heads do in other sentences is not known yet: until then the largest share counts.")
    with above:
        _picture(backend, looked, row, pick)
        if looked.decisive:
            st.caption(
                "A numbered head gives a word far more than it usually gives at that distance: its cell is not always "
                "the strongest."
                if habits is not None
                else "Each numbered head gives another word most."
            )
    _other_answer(backend, looked)


def _picture(backend: Backend, looked: Looked, row: int, pick: Callable[[int], None]) -> None:
    """The finding and the drawing."""
    figures.above(
        _said(looked),
        key=_KEY,
        place=f".st-key-{_KEY}",
        table=partial(_table, looked),
        code=shown_attention.one_word(
            Input(backend, [looked.sentence.text], controls.length_for(backend)),
            looked.own if looked.is_reversed else looked.position,
        ),
        title=("Who looks at “{}”" if looked.is_reversed else "What “{}” looks at").format(
            looked.sentence.tokens[looked.position].piece
        ),
        read=READ_TO if looked.is_reversed else READ,
        not_shown=NOT_SHOWN,
    )
    browser.web_component("looks", _HTML, "arrays", "drawing")(
        key=_KEY,
        data=_data(looked),
        on_head_change=partial(_take_head, looked.weights.shape[:2]),
        on_word_change=partial(_take_word, len(looked.sentence), pick),
    )


def _weights(backend: Backend, text: str) -> Float32:
    """The attentions of one sentence, [block, head, query, key]."""
    trace = backend.trace((text,), attentions=True, max_length=controls.length_for(backend))
    assert trace.attentions is not None
    return trace.attentions[:, 0]


def _looked(sentence: TokenizedSentence, position: int, weights: Float32, habits: Habits | None) -> Looked:
    words = words_of([sentence])
    word = next((word for word in words if position in word.positions), None)
    known = habits or Habits(np.zeros((*weights.shape[:2], 2 * REACH + 1), np.float32))
    is_reversed = state.get("look_direction") == "to"
    find = decisive_looks_at if is_reversed else decisive_heads
    blocks, heads = weights.shape[:2]
    by_word: dict[Word, Look] = {}  # the best of each word that is looked at, or that looks
    for look in () if word is None else find(weights, word, words, known, blocks * heads):
        by_word.setdefault(next(other for other in words if look.target in other.positions), look)
    best = list(by_word.values())
    decisive = (*best[:1], *(look for look in best[1:DECISIVE] if look.weight - look.usual >= DECIDED))
    block, head = (decisive[0].block, decisive[0].head) if decisive else (0, 0)
    block = block if state.get("block") is None else min(int(state.get("block")), blocks - 1)
    head = head if state.get("head") is None else min(int(state.get("head")), heads - 1)
    at = position if word is None else word.last
    is_chosen = state.get("block") is not None or state.get("head") is not None
    return Looked(sentence, at, weights, words, word, decisive, (block, head), habits, is_chosen, is_reversed)


def _said(looked: Looked) -> str:
    """The finding: of the head that somebody has chosen, or of the most decisive one; and of all heads."""
    if looked.word is None:
        token = wording.quoted(looked.sentence.tokens[looked.position].piece)
        if not looked.words:
            return f"{token} is no word, and the sentence has none: type one with a word to see where it looks."
        return f"{token} is no word. Click a word above to see where it looks."
    first = next(iter(looked.decisive), None)
    is_first = not looked.is_chosen or (first is not None and (first.block, first.head) == looked.head)
    if looked.is_reversed:
        at = looked_at(looked.weights, looked.word, looked.words)
        if is_first:
            return findings.of_looked_at(looked.word, at, first, looked.sentence, looked.habits is not None)
        given = looked.row[looked.head]
        return findings.of_head_looked_at(looked.word, looked.head, given, looked.words, at, looked.sentence)
    looks = first_looks(looked.weights, looked.word, looked.words, looked.sentence)
    if is_first:
        return findings.of_word(looked.word, looks, first, looked.sentence, looked.habits is not None)
    return findings.of_head(looked.word, looked.head, looked.row[looked.head], looks, looked.sentence, looked.habits)


def _data(looked: Looked) -> bytes:
    """What the browser draws: tokens with a row of their own in their order, and one row for all others."""
    pieces, own = looked.sentence.tokens, set(looked.own)
    shown = rows_of(looked.row, looked.position)
    rows = [
        {
            "position": at,
            "name": "itself" if at in own else pieces[at].piece,
            "quiet": pieces[at].special,
            "direction": browser.direction(pieces[at].piece),
        }
        for at in shown
    ]
    weights = looked.row[:, :, shown]
    left_out = len(pieces) - len(shown)
    if left_out:
        name = f"{left_out} others" + (", mean" if looked.is_reversed else "")
        rows.append({"position": -1, "name": name, "quiet": True, "direction": "ltr"})
        rest = looked.row.sum(-1, keepdims=True) - weights.sum(-1, keepdims=True)
        weights = np.concatenate([weights, rest / left_out if looked.is_reversed else rest], axis=-1)
    facts = {
        "word": looked.word.text if looked.word else pieces[looked.position].piece,
        "position": looked.position,
        "rows": rows,
        "blocks": weights.shape[0],
        "heads": weights.shape[1],
        "chosen": looked.head,
        "decisive": [{"block": each.block, "head": each.head, "says": _pill(looked, each)} for each in looked.decisive],
        "heading": heading(looked.decisive, looked.habits is not None),
        "scale": controls.scale(),
        "reversed": looked.is_reversed,
    }
    return packed(facts, {"weights": weights})


def rows_of(row: np.ndarray, position: int) -> list[int]:
    """The positions of the tokens that get a row: all, or of many those that get most in some head, and the token itself.

    `row`: [block, head, key].
    """
    if row.shape[-1] <= MOST_ROWS:
        return list(range(row.shape[-1]))
    most = row.max(axis=(0, 1)).astype(np.float64)
    most[position] = np.inf
    return sorted(np.argsort(-most, kind="stable")[:ROWS_OF_MANY].tolist())


def heading(decisive: Sequence[Look], is_usual_known: bool) -> str:
    """What the numbered heads are: where nothing is clearly unusual, none is called so."""
    if not is_usual_known:
        return "Largest shares"
    return (
        "Most unusual attention"
        if any(look.weight - look.usual >= DECIDED for look in decisive)
        else "Most above usual"
    )


def _pill(looked: Looked, look: Look) -> str:
    # A word that looks is named as a whole; what is looked at can be one piece of a word, as in its row.
    name = looked.sentence.word_text if looked.is_reversed else lambda at: looked.sentence.tokens[at].piece
    return f"block {look.block}, head {look.head}: {name(look.target)} {percent(look.weight)}"


def _pick(sentences: Sequence[TokenizedSentence], chosen: Sequence[int], row: int, position: int) -> None:
    """Choose a word, which opens with a head of its own."""
    controls.choose_word(sentences, chosen, row, position)
    state.put("block", None)
    state.put("head", None)


def _take_head(sizes: tuple[int, int]) -> None:
    sent = browser.two_numbers(browser.sent_by(_KEY, "head"))
    if sent is not None and browser.is_index(sent[0], sizes[0]) and browser.is_index(sent[1], sizes[1]):
        state.put("block", sent[0])
        state.put("head", sent[1])


def _take_word(tokens: int, pick: Callable[[int], None]) -> None:
    sent = browser.sent_by(_KEY, "word")
    if browser.is_index(sent, tokens):
        pick(sent)


def _table(looked: Looked) -> pd.DataFrame:
    blocks, heads = looked.row.shape[:2]
    frame_of = pd.DataFrame(
        looked.row.reshape(blocks * heads, -1).T.round(5),
        columns=[f"block {block} head {head}" for block in range(blocks) for head in range(heads)],
    )
    frame_of.insert(0, "token", [token.piece for token in looked.sentence.tokens])
    return frame_of


def other_answer(sentence: TokenizedSentence, words: Sequence[Word], pronoun: Word) -> tuple[str, str, str] | None:
    """The sentence with a word after a pronoun replaced by its opposite: the text, the word, the new one; None without one."""
    for word in words:
        other = opposite_of(word.text) if word.positions > pronoun.positions else None
        if other is not None:
            return f"{sentence.text[: word.start]}{other}{sentence.text[word.end :]}", word.text, other
    return None


def _other_answer(backend: Backend, looked: Looked) -> None:
    """For a pronoun that can stand for either of two things: the same counts in the sentence with the other answer."""
    pronoun = looked.word
    if looked.is_reversed or pronoun is None or not pronoun.is_pronoun:
        return
    before = [word for word in looked.words if word.is_content and word.positions < pronoun.positions]
    found = other_answer(looked.sentence, looked.words, pronoun) if len(before) >= CANDIDATES else None
    if found is None:
        return
    text, old, new = found
    (sentence,) = backend.tokenize([text], max_length=controls.length_for(backend))
    words = words_of([sentence])
    again = next((word for word in words if word.start == pronoun.start and word.text == pronoun.text), None)
    if again is None:
        return
    first = _counts(first_looks(looked.weights, pronoun, looked.words, looked.sentence))
    second = _counts(first_looks(_weights(backend, text), again, words, sentence))
    most = sorted({word.start: word for word in before}.values(), key=lambda word: -first.get(word.start, 0))[
        :CANDIDATES
    ]
    candidates = [(word.text, first.get(word.start, 0), second.get(word.start, 0)) for word in most]
    if not all(before for _, before, _ in candidates):
        return  # no head looks at a second one first: there is no choice between two
    said = findings.of_other_answer(old, new, candidates, looked.weights.shape[0] * looked.weights.shape[1])
    report.add("looks_other_answer", PagePart(message=said))
    st.markdown(f":material/compare_arrows: {said}")


def _counts(looks: FirstLooks) -> dict[int, int]:
    """By where a word before the pronoun begins, the heads that look first at it."""
    return {word.start: count for word, count in looks.at_words}
