"""The picture of the guesses: bars, the first five after each layer, the rank of one piece, and the line of surprise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.model.guesses import included
from components.model.guesses.names import ENDS, name_of
from components.model.guesses.passes import MANY_TOKENS, layer_guesses
from components.numbers import share_text
from components.shown_code.code import Command
from components.shown_code.commands import of_model
from dashboard import state
from dashboard.ui import browser, controls, figures
from dashboard.ui.wording import quoted
from dashboard.views.attention.guess import findings
from dashboard.views.attention.guess.findings import Guessed, ordinal
from dashboard.views.attention.guess.reading import SHOWN, MaskGuesses

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.guesses.record import LayerGuesses, Surprises
    from components.model.tokenization import Tokenization
    from components.model.trace import TokenizedSentence
    from dashboard.views.attention.head_choice import AttentionInput

KEY = "guess"  # of the figure and of the component
HTML = (
    '<section class="drawing guess"><div class="masks" role="group" aria-label="Masks"></div><div class="figure"></div>'
    '<div class="surprise"></div><div class="tables"></div></section>'
)
FIRST = 5  # guesses after each layer
HEIGHT, ON_PROJECTOR = 415, 520  # pixels of bars and curve: with the line of text below them whole on a laptop
ALL_COLOUR = 15.0  # bits from which on the colour of a word is full: those of each of 30,000 pieces, if all are equal
SCALE = (1, 4, 8, 12)  # bits whose colours are shown
READ = (
    "Left, the pieces that the masked-language-model head guesses for the hidden word, with their probabilities over the whole "
    "vocabulary, on a scale from 0 to 100 %; “…” begins a piece that goes on with a word. "
    "Right, the same head on the vector of each layer (the logit lens), from layer 0, where no block has looked at "
    "the other words yet: its first five guesses, and below them the rank of the marked piece, on a scale of tens; dashed is "
    "its rank when the model looks the other way. Blue is the word that was hidden; green the first guess, where nobody knows "
    "the word. The line of text: each token is hidden in turn, and the less of the probability a word then "
    "gets, the more colour it has (1 bit for a half, 2 for a quarter, 10 for a thousandth); a word of several pieces has the "
    "sum of their bits. The number at the end is the pseudo-perplexity, 2 to the power of the mean bits of all pieces: a "
    "choice among so many equally likely pieces at each place would surprise the model as much "
    "([Salazar et al. 2020](https://aclanthology.org/2020.acl-main.240/))."
)
NOT_SHOWN = (
    "How often people write a word: a probability is this model's own. What the layers in the middle know: the head was "
    "trained on the last one alone ([Belrose et al. 2023](https://arxiv.org/abs/2303.08112)). Several masks are guessed one "
    "by one, so that their first guesses need not fit together. Looking only left is not what the model was trained for: a "
    "model that was, such as GPT, would guess better so."
)


def draw_guesses(model_input: AttentionInput, reading: MaskGuesses, hide: Callable[[int], None]) -> None:
    """The finding and the picture of a reading; `hide` gets the position of a word that is clicked."""
    backend, sentence = model_input.backend, model_input.sentence
    word = sentence.word_text(reading.shown) if len(reading.guesses.hidden) > 1 and not reading.guesses.masks else ""
    facts = [reading.facts[position] for position in reading.positions]
    said = findings.of_guess(facts[0]) if len(facts) == 1 else findings.of_several(facts, word)
    without_end = next((fact for fact in facts if findings.of_missing_end(fact)), None)
    if without_end is not None:
        said = f"{said} {findings.of_missing_end(without_end)}"
    figures.above(
        said,
        key=KEY,
        table=partial(table_of, reading, backend.tokenization),
        code=_code(model_input, reading),
        title="Guesses for the hidden word",
        place=f".st-key-{KEY}",
        read=READ,
        not_shown=NOT_SHOWN if backend.spec.masked_lm else f"{included.said()} {NOT_SHOWN}",
    )
    if without_end is not None:
        mark = without_end.missing_end
        st.button(
            f"Add {ENDS[mark]}",
            key="add_end",
            icon=":material/add:",
            on_click=_add,
            args=(model_input.pair.rows[0], mark),
        )
    own = reading.facts[reading.shown]
    draw_component(
        {
            "said": f"Guesses for the hidden word: {', '.join(own.pieces[:FIRST])}",
            "height": HEIGHT if controls.scale() == 1 else round(ON_PROJECTOR * controls.screen_factor()),
            "masks": _masks(reading, sentence),
            "panels": [
                panel_of(
                    reading.guesses,
                    reading.shown,
                    reading.marked,
                    own,
                    partial(name_of, backend.tokenization),
                )
            ],
            "lens": _lens(reading, own, backend.tokenization),
            "surprise": _surprise(
                reading.surprises, sentence, reading.guesses.hidden, len(backend.tokenization.vocabulary)
            ),
            "tables": _tables(reading, own, backend.tokenization),
        },
        KEY,
        len(sentence),
        hide,
    )


def _add(row: int, mark: str) -> None:
    """Put a mark at the end of one of the session's sentences."""
    texts = list(state.get("sentences"))
    texts[row] = texts[row].rstrip() + mark
    state.put("sentences", tuple(texts))
    state.forget_texts("masked")  # behind the end no token has another place


def _code(model_input: AttentionInput, reading: MaskGuesses) -> Command:
    """The command that guesses at typed masks, or at each token hidden alone; there is none for other readings."""
    guesses, pair = reading.guesses, model_input.pair
    if pair.second is not None or guesses.only_left or (len(guesses.hidden) > 1 and not guesses.masks):
        return Command(layer_guesses)
    return Command(layer_guesses, predict(model_input.backend, pair.first, controls.length_for(model_input.backend)))


def predict(
    backend: Backend, text: str, max_length: int | None, k: int = SHOWN, layers: str = "all"
) -> tuple[str, ...]:
    """The command that guesses at the masks of a text, or at each of its tokens hidden alone."""
    options = ("--layers", layers, "-k", str(k), *of_model(backend, max_length))
    return ("predict", *options, "--json", "-", "--", text)


def draw_component(data: dict[str, Any], key: str, n_tokens: int, hide: Callable[[int], None]) -> None:
    """Draw the component; `hide` gets the position of a word or mask that is clicked, of `n_tokens`."""

    def clicked() -> None:
        sent = browser.sent_by(key, "hidden")
        if browser.is_index(sent, n_tokens):
            hide(sent)

    browser.web_component("guess", HTML, "focus", "drawing")(key=key, data=data, on_hidden_change=clicked)


def bar_text(share: float) -> str:
    """A probability beside its bar, where there is little room."""
    return share_text(share).replace("less than ", "< ").replace("over ", "> ")


def panel_of(
    guesses: LayerGuesses, position: int, marked: int, own: Guessed, name: Callable[[int], str], title: str = ""
) -> dict[str, Any]:
    """The bars of one mask: its guesses, and below them the true piece if it is not among them."""
    place = guesses.token(position)
    ids, shares = guesses.ids[-1, place].tolist(), guesses.probabilities[-1, place].tolist()
    rows = [
        {"piece": name(piece), "share": share, "said": bar_text(share), "own": piece == marked, "far": False}
        for piece, share in zip(ids, shares, strict=True)
    ]
    if own.true is not None and marked not in ids:
        said = f"{bar_text(own.true_share)} · {ordinal(int(own.true_ranks[-1]))}"
        rows.append({"piece": own.true, "share": own.true_share, "said": said, "own": True, "far": True})
    count = "Ten" if len(ids) == SHOWN else str(len(ids))
    return {
        "known": own.true is not None,
        "mark": "the hidden word" if own.true is not None else "the first guess",
        "title": title or f"{count} guesses",
        "soft": "that see only the left" if guesses.only_left else "",
        "rows": rows,
    }


def _masks(reading: MaskGuesses, sentence: TokenizedSentence) -> list[dict[str, Any]]:
    """The buttons to choose one of several masks by."""
    if len(reading.positions) < 2:
        return []
    return [
        {
            "name": (
                f"hidden {quoted(sentence.surface(position).strip())}:"
                if position in reading.guesses.hidden
                else f"mask {number}:"
            ),
            "guess": reading.facts[position].pieces[0],
            "position": position,
            "pressed": position == reading.shown,
        }
        for number, position in enumerate(reading.positions, 1)
    ]


def _ranks(guesses: LayerGuesses, place: int) -> np.ndarray:
    """The rank of the marked piece at each layer: of the true one, or of the one that was asked for."""
    return guesses.true_ranks[:, place] if int(guesses.true_ids[place]) >= 0 else guesses.asked_ranks[:, place, 0]


def _lens(reading: MaskGuesses, own: Guessed, tokenization: Tokenization) -> dict[str, Any]:
    """The first guesses after each layer, and the rank of the marked piece."""
    guesses, other = reading.guesses, reading.other
    place = guesses.token(reading.shown)
    layers = [
        {
            "name": f"layer {layer}",
            "short": str(layer),
            "guesses": [
                {"piece": name_of(tokenization, piece), "own": piece == reading.marked}
                for piece in guesses.ids[layer, place, :FIRST].tolist()
            ],
        }
        for layer in range(len(guesses.layers))
    ]
    piece = name_of(tokenization, reading.marked)
    rank: dict[str, Any] = {
        "title": f"Rank of “{piece if len(piece) <= 24 else f'{piece[:23]}…'}”",
        "among": f"among {own.n_pieces:,} pieces",
        "narrow": f"of {own.n_pieces:,}",
        "pieces": own.n_pieces,
        "ranks": _ranks(guesses, place).tolist(),
        "other": None,
    }
    if other is not None:
        name = "both sides" if guesses.only_left else "only left"
        rank["other"] = {"ranks": _ranks(other, place).tolist(), "name": name}
    return {
        "title": "The first five",
        "soft": "at each layer",
        "some": "every # layers",
        "notes": ["at layer 0 no block has looked at the other words yet", "layer 0: before any block"],
        "known": own.true is not None,
        "most": min(FIRST, guesses.ids.shape[-1]),
        "layers": layers,
        "rank": rank,
    }


def shade_of(bits: float) -> float:
    """How much colour a word of so many bits has, 0..1."""
    return round(min(1.0, bits / ALL_COLOUR) ** 0.75, 3)


def _surprise(
    surprises: Surprises | None, sentence: TokenizedSentence, hidden: tuple[int, ...], pieces: int
) -> dict[str, Any] | None:
    """The line of text: each word with its bits, and at its end the pseudo-perplexity. A vocabulary of so many `pieces`."""
    words, known = [], {}
    if surprises is not None:
        known = {word.positions: word.bits for word in surprises.words}
    for token in sentence.tokens:
        positions = sentence.word_positions(token.position)
        if token.special or positions[0] != token.position:
            continue
        bits = known.get(positions)
        words.append(
            {
                "text": sentence.word_text(token.position),
                "position": token.position,
                "pressed": bool({*positions} & {*hidden}),
                "bits": "" if bits is None else f"{bits:.1f}",
                "shade": 0.0 if bits is None else shade_of(bits),
            }
        )
    if not words:
        return None
    if any(item.tokens for item in sentence.dropped):
        words.append({"text": "…", "position": None, "pressed": False, "bits": "", "shade": 0.0})
    most = ""
    if surprises is not None:
        most = findings.of_surprise([(word.text, word.bits, len(word.positions)) for word in surprises.words])
    perplexity = float("nan") if surprises is None else surprises.pseudo_perplexity
    return {
        "title": "How surprised is it?",
        "most": most
        if surprises is not None
        else f"not measured: it has {len(sentence)} tokens, and up to {MANY_TOKENS} are hidden one by one",
        "scale": [{"bits": str(bits), "shade": shade_of(bits)} for bits in SCALE] if surprises is not None else [],
        "words": words,
        "total": "" if np.isnan(perplexity) else f"{perplexity:,.{int(perplexity < 100)}f}",
        "total_name": "" if np.isnan(perplexity) else findings.as_many_pieces(perplexity, pieces),
        "total_term": "" if np.isnan(perplexity) else "pseudo-perplexity",
    }


def _tables(reading: MaskGuesses, own: Guessed, tokenization: Tokenization) -> list[dict[str, Any]]:
    """What the picture shows for whoever cannot see it."""
    guesses = reading.guesses
    place = guesses.token(reading.shown)
    ranks = _ranks(guesses, place)
    names = [f"guess {number}" for number in range(1, 1 + min(FIRST, guesses.ids.shape[-1]))]
    layers = [
        [
            f"layer {layer}" if layer else "layer 0, before any block",
            *(name_of(tokenization, piece) for piece in guesses.ids[layer, place, :FIRST].tolist()),
            f"{int(ranks[layer]):,}",
        ]
        for layer in range(len(guesses.layers))
    ]
    guessed = [[piece, share_text(float(share))] for piece, share in zip(own.pieces, own.probabilities, strict=True)]
    marked = name_of(tokenization, reading.marked)
    return [
        {"caption": "Guesses for the hidden word", "names": ["guess", "probability"], "rows": guessed},
        {
            "caption": "The first guesses at each layer",
            "names": ["layer", *names, f"rank of {marked}"],
            "rows": layers,
        },
    ]


def table_of(reading: MaskGuesses, tokenization: Tokenization) -> pd.DataFrame:
    """All guesses for all masks: a row for each mask, layer and guess."""
    guesses, rows = reading.guesses, []
    for position in reading.positions:
        place = guesses.token(position)
        for layer in range(len(guesses.layers)):
            for number, (piece, share) in enumerate(
                zip(guesses.ids[layer, place].tolist(), guesses.probabilities[layer, place].tolist(), strict=True), 1
            ):
                rows.append(
                    {
                        "position": position,
                        "layer": layer,
                        "guess": number,
                        "piece": tokenization.vocabulary[piece] if piece < len(tokenization.vocabulary) else "",
                        "probability": round(share, 6),
                        "rank of the hidden piece": int(guesses.true_ranks[layer, place]) or None,
                    }
                )
    return pd.DataFrame(rows)
