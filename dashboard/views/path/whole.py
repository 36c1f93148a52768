"""The whole path of a sentence: one drawing, in which stops, tokens and heads change without a run of the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.first_look.decisive import DECIDED, REACH, Habits, most_decisive
from components.analysis.first_look.words import chosen_everywhere, words_of
from components.arrays import cosine
from components.charts.stand_alone.page import PagePart
from components.errors import InputError
from components.numbers import number
from dashboard import caching, navigation, state
from dashboard.declared import table
from dashboard.declared.stops import MORE, STOPS, VIEW, WITHOUT_BLOCKS
from dashboard.jobs.stored.included_words import kept_habits
from dashboard.sharing import lecture, report
from dashboard.ui import browser, controls, languages, messages, sentence_bar
from dashboard.ui.whole_path.component import CAVEAT, component
from dashboard.ui.whole_path.packed import Path, arrays_of, facts_of, packed, unrelated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.first_look.decisive import Look
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence
    from dashboard.declared.stops import Stop

_KEY = "whole_path"
_SENT = "_path_sent"  # session key: the id of the path whose arrays the browser has, and its settled place
EXAMPLES = ("The river has flooded its bank.", "The bank gave me a loan.")  # for a session with one sentence
MOST_AT_ONCE = 40  # pieces: what more of them need is said while it is computed
MOST_TOKENS = 256  # of a sentence: of more, the arrays of a block are larger than 4 MB


def draw(backend: Backend) -> None:
    """Draw the path of a sentence of the session, and that of a second one at its last two stops."""
    texts = state.get("sentences")
    with controls.row():
        first = controls.sentence_of(texts, "sentence_a", "Sentence", 0)
        default = next((row + 1 for row in range(len(texts)) if row > first), 1 if first else 0)
        second = controls.sentence_of(texts, "sentence_b", "Compare with", default, none="none")
        beside = st.container(key="line_whole_path", width="content")
    other = second - 1 if second and second - 1 != first else None
    chosen = [texts[first], *([] if other is None else [texts[other]])]
    path = Path(backend, chosen, controls.length_for(backend))
    _refuse_long(path)
    messages.truncation(
        path.trace.sentences, names=[(f"sentence {row + 1}", "") for row in (first, other) if row is not None]
    )
    waiting = st.empty()
    longest = max(map(len, path.trace.sentences))
    if longest > MOST_AT_ONCE:
        waiting.caption(f"Drawing the path of {longest} pieces …")
    sentences = controls.current_tokens(backend)
    tokens = controls.positions(sentences, backend)
    position = tokens[first]
    if not state.get("tokens"):  # nobody has chosen a piece: a word looks at others from its last one
        position = path.sentence.word_positions(position)[-1]
    decisive = _decisive(path, position)
    block, head = _head(path, decisive)
    stop, only_left = _stop(path), state.get("only_left")
    known = caching.baseline_ready(backend)
    facts = facts_of(path)
    only_left = only_left and facts["canLookLeft"]
    facts |= {
        "stops": list(STOPS if path.has_blocks else WITHOUT_BLOCKS),
        "place": [stop, position, block, head, only_left],
        "first": None if decisive is None else _why_first(path, position, decisive),
        "unknownLanguage": any(languages.is_unknown(backend, text) for text in chosen),
        "more": {
            stop: f"Open “{table.VIEWS[view].label}”: {table.VIEWS[view].question}"
            for stop, view in MORE.items()
            if _is_offered(path, view)
        },
        "unrelated": unrelated(caching.baseline(backend), backend.own_pooling) if known else None,
    }
    arrays = arrays_of(path, _wanted(path, "left" if only_left else "all", block))
    with beside:
        _tell(path, position, stop)
    component()(
        key=_KEY,
        data=packed(facts, arrays),
        on_want_change=lambda: None,
        on_place_change=partial(_take_place, first, sentences, tokens, _Sizes.of(path), (position, block, head)),
        on_open_change=lambda: None,
        on_second_change=partial(_add_second, texts, first),
    )
    waiting.empty()
    _open(path, first, other, sentences, tokens)
    if not known:  # the drawing stands while it is measured, and gets the grey band after it
        caching.baseline(backend)
        if caching.baseline_ready(backend):
            st.session_state.pop(_SENT, None)  # what was sent may never be drawn, if this follows too soon
            st.rerun()


def _refuse_long(path: Path) -> None:
    """Raises InputError for a sentence whose arrays are too large to send."""
    longest = max(map(len, path.trace.sentences))
    if longest > MOST_TOKENS:
        is_cut = any(sentence.dropped for sentence in path.trace.sentences)
        raise InputError(
            f"A sentence has {'more than ' * is_cut}{longest:,} tokens.",
            f"The whole path shows at most {MOST_TOKENS}.",
            "Shorten the sentence, or lower the maximum length.",
        )


def _is_offered(path: Path, view: str) -> bool:
    return table.VIEWS[view].needs in path.backend.structure.offered


def _stop(path: Path) -> str:
    stop = state.get("path_stop")
    return stop if path.has_blocks or stop in WITHOUT_BLOCKS else WITHOUT_BLOCKS[0]


def _decisive(path: Path, position: int) -> Look | None:
    """The head that looks most decisively from a token at another word; None if none does."""
    record = path.record("all")
    if record is None or record.attentions is None:
        return None
    words = words_of([path.sentence])
    word = next((word for word in words if position in word.positions), None)
    habits = kept_habits(path.backend) or Habits(np.zeros((*record.attentions.shape[:2], 2 * REACH + 1), np.float32))
    return None if word is None else most_decisive(record.attentions, word, words, habits)


def _why_first(path: Path, position: int, look: Look) -> dict[str, Any] | None:
    """What the rule by which a head opens first compares (see `most_decisive`); None where no head is far above its average."""
    is_known = kept_habits(path.backend) is not None
    if is_known and look.weight - look.usual < DECIDED:
        return None
    words = words_of([path.sentence])
    word, target = (next(word for word in words if place in word.positions) for place in (position, look.target))
    return {
        "place": [word.last, look.block, look.head],
        "target": look.target,
        "usual": look.usual if is_known else None,
        "isContent": target.is_content,
    }


def _head(path: Path, decisive: Look | None) -> tuple[int, int]:
    """The block and head to open: those chosen, or the most decisive ones."""
    if not path.has_blocks:
        return 0, 0
    block, head = (
        default if state.get(name) is None else int(state.get(name))
        for name, default in (("block", decisive.block if decisive else 0), ("head", decisive.head if decisive else 0))
    )
    return min(block, path.backend.facts.layers - 1), min(head, path.backend.facts.heads - 1)


def _wanted(path: Path, mode: str, block: int) -> list[str]:
    """The names of the arrays to send: at first what the place needs, later what the browser asks for."""
    sent = browser.sent_by(_KEY, "want")
    names = [name for name in sent if isinstance(name, str)][:4] if isinstance(sent, list | tuple) else []
    if st.session_state.get(_SENT) != path.id:
        names += [mode, *([f"{mode}.{block}"] if path.has_blocks else [])]
    st.session_state[_SENT] = path.id
    known = {
        f"{mode}{block}"
        for mode in ("all", "left")
        for block in ("", *(f".{number}" for number in range(path.backend.facts.layers)))
    }
    return [name for name in dict.fromkeys(names) if name in known]


@dataclass(frozen=True)
class _Sizes:
    """What a place can be within. Plain numbers: Streamlit keeps the callback that has them, which must keep no model alive."""

    pieces: int
    blocks: int
    heads: int

    @classmethod
    def of(cls, path: Path) -> _Sizes:
        facts = path.backend.facts
        return cls(len(path.sentence), facts.layers * path.has_blocks, facts.heads * path.has_blocks)


def _take_place(
    row: int,
    sentences: Sequence[TokenizedSentence],
    tokens: Sequence[int],
    sizes: _Sizes,
    given: tuple[int, int, int],
) -> None:
    """Keep where a person rests, so that the page's address and the other views have it.

    `tokens` are those chosen until now, one for each sentence; `given`: position, block and head as drawn.
    While a person changes none of them, another sentence may still open with a word and a head of its own.
    """
    sent = browser.sent_by(_KEY, "place")
    if not isinstance(sent, list | tuple) or len(sent) != 5:
        return
    stop, token, block, head, only_left = sent
    if not browser.is_one_of(stop, STOPS) or not browser.is_index(token, sizes.pieces):
        return
    state.put("path_stop", stop)
    state.put("only_left", bool(only_left))
    if (token, block, head) == given:
        return
    if tokens[row] != token or not state.get("tokens"):
        controls.choose_word(sentences, tokens, row, token)
    if browser.is_index(block, sizes.blocks) and browser.is_index(head, sizes.heads):
        state.put("block", block)
        state.put("head", head)


def _add_second(texts: tuple[str, ...], first: int) -> None:
    """Compare with a second sentence: the first other one, or an example below the only one."""
    if browser.sent_by(_KEY, "second") is not True:
        return
    if len(texts) == 1:
        texts = (*texts, next(text for text in EXAMPLES if text != texts[0]))
        sentence_bar.replace(texts)
    state.put("sentence_b", 1 + next(row for row in range(len(texts)) if row != first))


def _open(
    path: Path, row: int, other: int | None, sentences: Sequence[TokenizedSentence], tokens: Sequence[int]
) -> None:
    """Open the view that treats a stop by itself, with the token, block and head that are chosen here."""
    sent = browser.sent_by(_KEY, "open")
    if (
        not isinstance(sent, list | tuple)
        or len(sent) != 4
        or not browser.is_one_of(sent[0], MORE)
        or not _is_offered(path, MORE[sent[0]])
    ):
        return
    stop, token, block, head = sent
    facts = path.backend.facts
    values: dict[str, Any] = {"sentence": row}
    if path.has_blocks and browser.is_index(block, facts.layers) and browser.is_index(head, facts.heads):
        layer = (
            facts.layers if stop in ("pool", "compare") else block + 1
        )  # the sentence's vector is made of the last one
        values |= {"block": block, "head": head, "inner_block": block, "first_block": block, "layer": layer}
    if browser.is_index(token, len(path.sentence)):
        values |= {"score_query": token, "tokens": chosen_everywhere(sentences, tokens, row, token)}
        st.session_state.pop("_anchors", None)  # which belong to the tokens chosen before
    if stop == "compare" and other is None:
        return
    used = set(table.VIEWS[MORE[stop]].settings)
    navigation.go_to(MORE[stop], **{name: value for name, value in values.items() if name in used})


def _tell(path: Path, position: int, stop: str) -> None:
    """Put the token's way through the layers into the report, and draw the star; the table is made where it is needed.

    The picture that the browser sends for a lecture has the question and the finding of the `stop` in it.
    """
    record, token = path.record("all"), path.sentence.tokens[position].piece
    states = path.trace.hidden_states[:, 0] if record is None else record.hidden_states
    layers = states[:, position].astype(np.float64)
    cosines = [float(cosine(layer, layers[0])) for layer in layers]

    def numbers() -> pd.DataFrame:
        took = path.overview("all").took
        takes = [""] + [_largest_take(path, lengths[position], position) for lengths in (() if took is None else took)]
        return pd.DataFrame(
            {
                "layer": range(len(cosines)),
                "cosine to layer 0": np.round(cosines, 4),
                "largest take in the block before it": takes,
            }
        )

    said = f"The path of “{token}”: after {len(cosines) - 1} blocks its cosine to its own layer 0 is {number(cosines[-1], 2)}."
    part = PagePart(message=messages.escape(said), not_shown=CAVEAT)
    report.add("whole_path", part, numbers)
    name = f"The whole path: {STOPS[cast('Stop', stop)][0]}"
    lecture.star(table.place_of(VIEW), _KEY, replace(part, title=name), numbers, f".st-key-{_KEY}")


def _largest_take(path: Path, lengths: np.ndarray, position: int) -> str:
    others = lengths.astype(np.float64).copy()
    others[position] = -1.0
    most = int(np.argmax(others))
    if len(others) < 2 or others[most] <= 0:
        return ""
    return f"{others[most] / lengths.sum(dtype=np.float64):.0%} from {path.sentence.tokens[most].piece}"
