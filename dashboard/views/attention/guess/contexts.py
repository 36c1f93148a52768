"""One word in two contexts: a mask in each of two sentences side by side, and in a template with several fillings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from components.analysis.guesses.templates import template_guesses
from components.analysis.tokens import position_at
from components.command_line.commands.predict import MOST_GUESSES
from components.model.guesses.masks import carried, holes, mask_of, typed_masks, with_masks
from components.model.guesses.names import marks_words, name_of
from components.model.guesses.passes import layer_guesses
from components.numbers import share_text
from components.shown_code.code import Command
from dashboard import state
from dashboard.ui import browser, controls, figures, messages, pair_choice, sentence_bar
from dashboard.views.attention.guess import findings
from dashboard.views.attention.guess.changes import no_guesses, say_whose
from dashboard.views.attention.guess.findings import Guessed
from dashboard.views.attention.guess.picture import draw_component, panel_of, predict
from dashboard.views.attention.guess.reading import SHOWN, facts_of
from dashboard.views.attention.guess.view import with_hidden

if TYPE_CHECKING:
    from components.analysis.guesses.templates import TemplateGuesses
    from components.model.backend import Backend
    from components.model.guesses.record import LayerGuesses
    from components.model.trace import TokenizedSentence

KEY, TABLE = "guess_two", "guess_template"
TWO_HEIGHT, TWO_ON_PROJECTOR = 330, 480  # pixels of ten bars
CHOICES = {"sentences": "Two sentences", "template": "Several words"}
TEMPLATE_HELP = (
    "Words in [square brackets], with commas between them, stand in the same place one after the other. The mask, [MASK] or "
    "___, is guessed for each. Several templates, with the same fillings, have a | between them."
)
WORDS_HELP = (
    "Words whose probabilities at the mask are compared, with commas between them. Each has to be one piece of the "
    "vocabulary."
)
CONTROLS_HELP = (
    "More fillings, of no interest of their own, such as “person, neighbour”: they show what the template does alone."
)
BETWEEN = "|"
OTHER_HOLE = "___"  # how a hole is written that is not the one to be guessed
EXAMPLE = ("The [MASK] barked at the moon.", "The [MASK] sang a song.")
NOT_SHOWN = (
    "Why the guesses differ, and whether they would in other sentences: a template is one sentence of many, and what counts "
    "of a difference are many templates, with words in the place of the fillings for which no difference is expected."
)

PRINTED = "the probabilities in each filling, whose means over the templates the table has"


@dataclass(frozen=True, eq=False)
class Context:
    """The guesses in one of two sentences."""

    name: str  # A or B
    text: str
    hidden: tuple[int, ...]  # positions; none where a mask that was typed is guessed
    position: int  # of the mask whose guesses are shown
    guesses: LayerGuesses
    facts: Guessed

    @property
    def marked(self) -> int:
        """The id of the word that was hidden; of the first guess where nobody knows it."""
        place = self.guesses.token(self.position)
        true = int(self.guesses.true_ids[place])
        return true if true >= 0 else int(self.guesses.ids[-1, place, 0])


def contexts(backend: Backend) -> None:
    """A hidden word in two sentences, or a template's table; says what a model without a head lacks."""
    row = controls.row()
    with row:
        which = controls.choice("contexts", "Contexts", CHOICES, show_label=False)
    if not backend.spec.can_guess:
        figures.finding("This model has no masked-LM head: it cannot guess.", key=KEY)
        no_guesses(backend)
    elif which == "template":
        _template(backend, row)
    elif not messages.needs_second_sentence(state.get("sentences")):
        _two(backend, row)
    else:
        st.button(
            "Show an example", key="contexts_example", type="primary", on_click=sentence_bar.replace, args=(EXAMPLE,)
        )


def _template(backend: Backend, row: Any) -> None:
    """Templates with fillings: how probable each asked word is at the mask with each filling."""
    with row:
        typed = str(controls.bind("template", st.text_input, "Template", help=TEMPLATE_HELP, max_chars=500))
        width = round(200 * controls.scale())
        asked = controls.bind(
            "asked_words", st.text_input, "Words to compare", help=WORDS_HELP, max_chars=200, width=width
        )
        with controls.options():
            others = controls.bind("control_words", st.text_input, "Control words", help=CONTROLS_HELP, max_chars=200)
    templates = [part.strip() for part in typed.split(BETWEEN) if part.strip()]
    words, compared = (tuple(str(text).split(",")) for text in (asked, others))
    length = controls.length_for(backend)
    found = template_guesses(backend, templates, words, compared, 1, length)
    if not found.words:
        st.info("Type the words to compare, with commas between them: “she, he”.")
        return
    shares, names = found.mean_probabilities, list(found.fillings)
    figures.above(
        findings.of_template(found),
        key=TABLE,
        table=lambda: pd.DataFrame({"filling": names, **dict(zip(found.words, shares.T.round(6), strict=True))}),
        code=Command(template_guesses, *_commands_of(backend, found, length), prints=PRINTED),
        title="Fillings of a template",
        place="[data-testid=stTable]",
        read="A row for each filling of the template, and for each control word; a column for each word that is compared: its "
        "probability at the mask, the mean over the templates where there are several. The last column has the first guess of "
        "all in the first template.",
        not_shown=NOT_SHOWN,
    )
    columns = {
        word: [
            "no single piece" if word in found.unknown_words else share_text(float(share)) for share in shares[:, place]
        ]
        for place, word in enumerate(found.words)
    }
    first = [
        f"{name_of(backend.tokenization, int(piece))} ({share_text(float(share))})"
        for piece, share in zip(found.ids[0, :, 0], found.probabilities[0, :, 0], strict=True)
    ]
    shown = [f"{name} (control)" if name in found.controls else name for name in names]
    figures.plain_table(pd.DataFrame({"filling": shown, **columns, "first guess": first}), key="guess_fillings")
    say_whose(backend)


def _commands_of(backend: Backend, found: TemplateGuesses, length: int | None) -> list[tuple[str, ...]]:
    """The commands that guess at the mask of each filling, as far as the words that are compared; none if that is too far."""
    k = int(found.word_ranks.max())
    texts = [template.filled(filling) for template in found.templates for filling in found.fillings]
    return [predict(backend, text, length, max(1, k), "last") for text in texts] if k <= MOST_GUESSES else []


def _command(backend: Backend, context: Context) -> tuple[str, ...]:
    """The command that guesses at a mask that was typed, or at each token of the text alone; none for several at once."""
    if len(context.hidden) > 1 or (context.hidden and context.guesses.masks):
        return ()
    return predict(backend, context.text, controls.length_for(backend))


def _two(backend: Backend, row: Any) -> None:
    """Sentences A and B, each by itself, with a word hidden in each."""
    with row:
        pair = pair_choice.choose(always=True)
    sentences = controls.current_tokens(backend)
    interest = controls.interest(sentences, backend)
    chosen = interest.positions if state.get("tokens") else _at_holes(backend, sentences, interest.positions)
    contexts = []
    for name, text, place in zip("AB", (pair.first, pair.second), pair.rows, strict=True):
        assert text is not None  # both are chosen
        context = _read(backend, name, text, sentences[place], chosen[place])
        if context is None:
            st.info(f"In sentence {name} a special token is chosen, which cannot be hidden: choose a word of the text.")
        else:
            contexts.append(context)
    choose = partial(_choose, backend, sentences, chosen)
    if len(contexts) < len(pair.rows):
        _chips(backend, contexts, pair.rows, choose)
        return
    figures.above(
        findings.of_two(contexts[0].facts, contexts[1].facts, SHOWN),
        key=KEY,
        table=partial(_two_table, backend, contexts),
        code=Command(layer_guesses, *(_command(backend, one) for one in contexts)),
        title="A hidden word in two sentences",
        place=f".st-key-{KEY}",
        read="The pieces that the model guesses for the hidden word of each sentence, read by itself, with their "
        "probabilities, on one scale in both, whose end is the next round share. Blue is the word that was hidden; green the "
        "first guess, where nobody knows the word.",
        not_shown=NOT_SHOWN,
    )
    readable = partial(name_of, backend.tokenization)
    data = {
        "said": " ".join(f"Sentence {one.name}: {', '.join(one.facts.pieces[:5])}." for one in contexts),
        "height": TWO_HEIGHT if controls.scale() == 1 else round(TWO_ON_PROJECTOR * controls.screen_factor()),
        "masks": [],
        "panels": [
            panel_of(
                one.guesses, one.position, one.marked, one.facts, readable, f"{one.name}  {_sentence(backend, one)}"
            )
            for one in contexts
        ],
        "lens": None,
        "surprise": None,
        "tables": [
            {
                "caption": f"Guesses in sentence {one.name}",
                "names": ["guess", "probability"],
                "rows": [
                    [piece, share_text(float(share))]
                    for piece, share in zip(one.facts.pieces, one.facts.probabilities, strict=True)
                ],
            }
            for one in contexts
        ],
    }
    draw_component(data, KEY, 0, lambda _: None)
    _chips(backend, contexts, pair.rows, choose)
    say_whose(backend)


def _at_holes(backend: Backend, sentences: Sequence[TokenizedSentence], positions: Sequence[int]) -> tuple[int, ...]:
    """The token of each sentence before somebody chooses: its first hole where it has one, else that of `positions`."""
    found = []
    for sentence, position in zip(sentences, positions, strict=True):
        spans = holes(sentence.text, backend.tokenization)
        hole = position_at(sentence, *spans[0]) if spans else None
        found.append(position if hole is None else hole)
    return tuple(found)


def _choose(
    backend: Backend, sentences: Sequence[TokenizedSentence], chosen: Sequence[int], row: int, position: int
) -> None:
    """Choose the token that stands at a position of a sentence in which the holes are masks."""
    text, tokenization = sentences[row].text, backend.tokenization
    written = with_masks(text, tokenization)
    masked = backend.tokenize([written], max_length=controls.length_for(backend))[0]
    if not 0 <= position < len(masked):
        return
    token = masked.tokens[position]
    start = carried(token.start, holes(written, tokenization), holes(text, tokenization))
    found = position_at(sentences[row], start, start + 1)
    if found is not None:
        controls.choose_word(sentences, chosen, row, found)


def _read(backend: Backend, name: str, text: str, typed: TokenizedSentence, position: int) -> Context | None:
    """What is guessed for the word or the hole at a position of a sentence as it was `typed`; None for a special token.

    A word is hidden beside the holes.
    """
    length, tokenization = controls.length_for(backend), backend.tokenization
    written = with_masks(text, tokenization)
    sentence = backend.tokenize([written], max_length=length)[0]
    if typed.tokens[position].word is None:
        return None
    start = carried(typed.tokens[position].start, holes(text, tokenization), holes(written, tokenization))
    at = position_at(sentence, start, start + 1)
    if at is None:
        return None
    hidden = () if at in typed_masks(sentence, tokenization) else sentence.word_positions(at)
    shown = hidden[0] if hidden else at
    guesses = backend.guesses(written, None, hidden, length, k=SHOWN, positions=(shown,))
    marks = marks_words(tokenization)
    return Context(
        name, written, hidden, shown, guesses, facts_of(guesses, None, shown, tokenization.vocabulary, marks)
    )


def _chips(
    backend: Backend, contexts: Sequence[Context], rows: Sequence[int], choose: Callable[[int, int], None]
) -> None:
    """The words of both sentences, of which a click hides one, also in the other sentence if it has it."""
    has_both = any(one.hidden and typed_masks(one.guesses.sentence, backend.tokenization) for one in contexts)
    again = f" Click {mask_of(backend.tokenization)} to have it guessed again." if has_both else ""
    st.caption(f"Click a word to hide it.{messages.escape(again)}")
    shown = []
    for one in contexts:
        sentence = one.guesses.sentence
        own = [token.position for token in sentence.tokens if not token.special]
        hidden = with_hidden(sentence, one.hidden, backend.tokenization)
        row = rows["AB".index(one.name)]
        shown.append(
            browser.ChipRow(
                row, hidden, one.hidden or (one.position,), one.name, f"Sentence {one.name}", range(own[0], own[-1] + 1)
            )
        )
    distinct = list({row.index: row for row in shown}.values())
    browser.chips(
        distinct,
        key="chips_contexts",
        on_click=choose,
        unknown_id=backend.tokenization.unknown_id,
        scale=controls.scale(),
        fold=True,
    )


def _sentence(backend: Backend, context: Context) -> str:
    """The sentence with the mask in the place of what is guessed; other holes are underscores."""
    text, tokens, mask = context.text, context.guesses.sentence.tokens, mask_of(backend.tokenization) or ""
    guessed = context.hidden or (context.position,)
    start, end = tokens[guessed[0]].start, tokens[guessed[-1]].end
    before, after = (part.replace(mask, OTHER_HOLE) if mask else part for part in (text[:start], text[end:]))
    return f"{before}{mask * len(guessed)}{after}"


def _two_table(backend: Backend, contexts: Sequence[Context]) -> pd.DataFrame:
    """The guesses of both sentences: a row for each."""
    return pd.DataFrame(
        [
            {
                "sentence": one.name,
                "text": _sentence(backend, one),
                "guess": number,
                "piece": piece,
                "probability": round(share, 6),
            }
            for one in contexts
            for number, (piece, share) in enumerate(
                zip(one.facts.pieces, one.facts.probabilities.tolist(), strict=True), 1
            )
        ]
    )
