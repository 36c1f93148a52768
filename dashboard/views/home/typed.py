"""A typed sentence on Start: its pieces, one word chosen, and three small figures of that word.

The browser gets the figures of all words at once, so that a click on another word costs no run of the page. It reports the
word when a person rests on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from components.analysis.first_look.course import courses
from components.analysis.first_look.decisive import most_decisive
from components.analysis.first_look.nearest import NEAREST
from components.analysis.first_look.words import interest, twins_of, words_of
from components.analysis.matched_words import word_vectors
from components.analysis.tokens import position_at
from components.charts.stand_alone.page import PagePart
from components.model.guesses.masks import carried, holes, mask_of, with_masks
from components.model.guesses.names import name_of
from components.numbers import apart, counted, number, percent, share_text
from components.words.quotes import with_isolated_quotes
from dashboard import navigation, ready_made, state
from dashboard.declared import table
from dashboard.jobs.requests import NotReady
from dashboard.jobs.stored.included_words import included_words, kept_habits, read_words
from dashboard.sharing import report
from dashboard.ui import browser, controls, languages, messages, model_gate
from dashboard.ui.waiting import frame
from dashboard.views.home import findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from components.analysis.first_look.course import WordCourse
    from components.analysis.first_look.decisive import Look
    from components.analysis.first_look.nearest import Neighbour
    from components.analysis.first_look.words import Word
    from components.model.backend import Backend
    from components.model.tokenization import Tokenization
    from components.model.trace import TokenizedSentence, Trace
    from dashboard.jobs.stored.included_words import Included

_KEY = "start_sentence"
SHOWN = 6  # sentences
MOST_TOKENS = 96  # of a sentence
LOOKS_VIEW, CHANGES_VIEW, NEAREST_VIEW = "one-word-attention", "one-word", "two-layers"
GUESS_VIEW, GUESS = "mask-token", 3  # what the button below the words opens, and the number that it sends
GUESS_LINK = "Guess the word"
READING = "Reading the included sentences …"
_FIGURE = (
    '<article class="card fig"><div class="kicker"></div><h2></h2><div class="draw"></div>'
    '<div class="foot"><button type="button" class="link"></button></div></article>'
)
_HTML = (
    f'<div class="start drawing typed"><div class="rows"></div><div class="below"><button type="button" class="ask" hidden>'
    f'</button><p class="note"></p></div><div class="three">{_FIGURE * 3}</div>'
    '<p class="live" aria-live="polite"></p></div>'
)


def draw() -> None:
    """Draw the session's sentences; the rest of the page is not drawn again when a word is chosen."""

    @st.fragment
    def body() -> None:
        with st.container(key="start_gate"):  # what follows has its place whether or not a bar stood here
            backend = model_gate.main_model()  # here: Streamlit keeps the fragment, which must not keep a model alive
        texts = state.get("sentences")[:SHOWN]
        languages.say_of_sentences([backend], texts)
        languages.say_pieces_are_words(texts)
        if navigation.is_offered(backend, "tokens", "home"):
            with st.container(key="start_view"):
                messages.guarded(lambda: frame.view(lambda: _sentences(backend)), "looking into the sentence")
        state.write_address("home")

    body()


def _sentences(backend: Backend) -> None:
    """Draw the sentences. Raises NotReady while the included sentences are read: until then the figures of them are missing."""
    messages.cross_encoder_note([backend])
    if reason := backend.structure.why_not("blocks"):
        st.info(f"**{messages.escape(backend.spec.title)} {reason}.** So neither attention nor layers are shown here.")
    texts = state.get("sentences")[:SHOWN]
    has_blocks = not backend.structure.why_not("blocks")
    written = [with_masks(text, backend.tokenization) for text in texts]
    length = _length(backend, written)
    trace = backend.trace(written, attentions=has_blocks, max_length=length)
    typed = backend.tokenize(texts, max_length=length)
    words = words_of(trace.sentences)
    if not words:
        st.info("**No word yet.** There is no letter and no digit in what you typed.", icon=":material/edit:")
        return
    vectors = word_vectors(trace, [(word.sentence, word.positions) for word in words])
    offered = interest(trace.sentences, ready_made.focus_of(tuple(texts)), lambda _: vectors[-1])
    seen = Seen(backend, trace, words, courses(vectors, words) if has_blocks else None, offered.positions, typed)
    chosen = seen.chosen(state.get("sentence"), state.get("tokens"))
    if chosen is None:
        chosen = next((number for number, word in enumerate(words) if seen.is_hole(word)), None)
    if chosen is None:
        chosen = _chosen(words, offered.row, offered.positions) or 0
    # The figures of a hole need none of the included sentences: nobody waits for them before another word is chosen.
    is_known = seen.is_guessed(words[chosen]) and kept_habits(backend) is not None
    try:
        included = read_words(backend) if is_known else included_words(backend)
    except NotReady:
        _component(seen, chosen, [seen.of_word(number, None, None) for number in range(len(words))])
        raise
    if included is None:
        _component(seen, chosen, [seen.of_word(number, None, None) for number in range(len(words))])
        return
    own = [trace.sentences[word.sentence].text for word in words]
    after = included.words.nearest(vectors[-1], own)
    before = included.words.nearest(vectors[0], own, layer=0) if has_blocks else [None] * len(words)
    near = list(zip(after, before, strict=True))
    _component(seen, chosen, [seen.of_word(number, included, near[number]) for number in range(len(words))])


def _length(backend: Backend, texts: Sequence[str]) -> int | None:
    """The maximum length in tokens: the session's, but no more than MOST_TOKENS where a sentence is longer."""
    length = controls.length_for(backend)
    longest = max(map(len, backend.tokenize(texts, max_length=length)))
    return MOST_TOKENS if longest > MOST_TOKENS else length


def _chosen(words: Sequence[Word], row: int | None, positions: Sequence[int]) -> int | None:
    """The number of the word that is chosen in a sentence; None without one. `positions`: one for each sentence."""
    if row is None or row >= len(positions):
        return None
    of_row = (number for number, word in enumerate(words) if word.sentence == row and positions[row] in word.positions)
    return next(of_row, None)


def _in_place_of(
    sentence: TokenizedSentence, position: int, other: TokenizedSentence, tokenization: Tokenization
) -> int | None:
    """The position in another spelling of a sentence's holes of what stands at a position; None where that is cut off."""
    if sentence.text == other.text or sentence.tokens[position].special:
        return position if position < len(other) else None
    start = carried(
        sentence.tokens[position].start, holes(sentence.text, tokenization), holes(other.text, tokenization)
    )
    return position_at(other, start, start + 1)


class Seen:
    """What is seen of the sentences, as the browser takes it. Their holes are masks in `trace`, as typed in `typed`."""

    def __init__(
        self,
        backend: Backend,
        trace: Trace,
        words: Sequence[Word],
        all_courses: Sequence[WordCourse] | None,
        offered: tuple[int, ...],
        typed: Sequence[TokenizedSentence],
    ) -> None:
        """`offered`: the position of the token of interest in each sentence, before a person chooses."""
        self.backend, self.trace, self.words, self._courses = backend, trace, words, all_courses
        self.offered, self.typed = offered, typed
        self.twins = twins_of(words)

    def is_hole(self, word: Word) -> bool:
        """Whether a word is a mask."""
        tokens = self.trace.sentences[word.sentence].tokens
        return any(tokens[position].id == self.backend.tokenization.mask_id for position in word.positions)

    def is_guessed(self, word: Word) -> bool:
        """Whether a word is a hole for which the model has guesses."""
        return self.is_hole(word) and self._courses is not None and self.backend.spec.can_guess

    def as_typed(self, row: int, position: int) -> int | None:
        """The position in a typed sentence of what stands at a position where holes are masks; None where that is cut off."""
        return _in_place_of(self.trace.sentences[row], position, self.typed[row], self.backend.tokenization)

    def chosen(self, row: int | None, positions: Sequence[int]) -> int | None:
        """The number of the word chosen in a sentence, by its position as typed, one for each sentence; None without one."""
        if row is None or row >= min(len(positions), len(self.typed)) or not 0 <= positions[row] < len(self.typed[row]):
            return None
        found = _in_place_of(self.typed[row], positions[row], self.trace.sentences[row], self.backend.tokenization)
        return None if found is None else _chosen(self.words, row, [*positions[:row], found])

    def of_word(
        self,
        number: int,
        included: Included | None,
        near: tuple[Sequence[Neighbour], Sequence[Neighbour] | None] | None,
    ) -> dict[str, Any]:
        """The figures of a word; those that need the included sentences are not ready without them."""
        word = self.words[number]
        return {
            "text": word.text,
            "ask": self._ask(word),
            "twins": self.twins[number],
            "looks": self._looks(word, included),
            "changes": self._changes(number),
            "nearest": self._guesses(word) or _nearest(word, near, included, is_hole=self.is_hole(word)),
        }

    def _guesses(self, word: Word) -> dict[str, Any] | None:
        """What the model guesses for a hole, in the place of its nearest words; None for a word, and without a head."""
        if not self.is_guessed(word):
            return None
        sentence = self.trace.sentences[word.sentence]
        guesses = self.backend.guesses(sentence.text, max_length=len(sentence), k=NEAREST, positions=word.positions)
        tokenization = self.backend.tokenization
        pieces = [name_of(tokenization, piece) for piece in guesses.ids[-1, 0].tolist()]
        shares = guesses.probabilities[-1, 0].tolist()
        last = max(token.position for token in sentence.tokens if token.end > token.start)
        said = findings.of_guesses(pieces, shares, is_last=last in word.positions and not sentence.dropped)
        return {
            "says": with_isolated_quotes(said),
            "kicker": "What the model guesses",
            "link": GUESS_LINK,
            "opens": GUESS,
            "columns": ("guess", "probability"),
            "guesses": [
                {"name": piece, "share": round(share, 4), "shown": share_text(share)}
                for piece, share in zip(pieces, shares, strict=True)
            ],
        }

    def _ask(self, word: Word) -> str:
        """What the button below the words says; nothing for a model without blocks, whose guesses are not shown."""
        if self._courses is None or self.is_guessed(word):  # a hole's guesses are shown
            return ""
        return (
            f"What does the model guess for {word.text}?"
            if self.is_hole(word)
            else with_isolated_quotes(f"Hide “{word.text}” and let the model guess")
        )

    def _looks(self, word: Word, included: Included | None) -> dict[str, Any] | None:
        if self._courses is None or self.trace.attentions is None:
            return None
        habits = kept_habits(self.backend) or (None if included is None else included.habits)
        if habits is None:
            return {"says": READING}
        sentence = self.trace.sentences[word.sentence]
        length = len(sentence)
        weights = self.trace.attentions[:, word.sentence, :, :length, :length]
        look = most_decisive(weights, word, self.words, habits)
        if look is None:
            return {"says": findings.of_look(None, "")}
        piece, names = sentence.tokens[look.target].piece, _names(look, word, sentence)
        place = "" if names[look.target] == piece else f" (position {look.target})"
        return {"says": with_isolated_quotes(findings.of_look(look, piece, place)), **_fan(look, names)}

    def _changes(self, place: int) -> dict[str, Any] | None:
        """How the word changes; `place` is its number."""
        if self._courses is None:
            return None
        course, word = self._courses[place], self.words[place]
        named = [(self._twin(twin, word), cosines) for twin, cosines in course.to_twins]
        if not named:
            named = [("its start", course.to_start)]
            named += [] if course.to_others is None else [("the others", course.to_others)]
        ends = apart(*(float(cosines[-1]) for _, cosines in named))
        return {
            "says": with_isolated_quotes(findings.of_course(course, word, self.words)),
            "axis": "cosine by layer (0 = before the first block)",
            "lines": [
                {
                    "name": name,
                    "values": [round(float(value), 4) for value in cosines],
                    "read": [number(float(value)) for value in cosines],
                    "shown": end,
                }
                for (name, cosines), end in zip(named, ends, strict=True)
            ],
        }

    def _twin(self, twin: int, word: Word) -> str:
        """What another occurrence of a word is called: "the other", "the 3rd", "in 2", "the 2nd in 2"."""
        rank, row = findings.rank_of(twin, word, self.words), self.words[twin].sentence
        where = "" if row == word.sentence else f"in {row + 1}"
        return f"the {rank} {where}".strip() if rank else where or "the other"


def _names(look: Look, word: Word, sentence: TokenizedSentence) -> dict[int, str]:
    """What the tokens that a word looks at are called, by position, which stands behind the pieces that are equal."""
    shown = [key for key, _ in look.strongest]
    own = [key for key in shown if key in word.positions]
    names = {key: sentence.tokens[key].piece for key in shown}
    names |= {key: f"itself: {names[key]}" if len(own) > 1 else "itself" for key in own}
    plain = list(names.values())
    return {key: f"{name} ({key})" if plain.count(name) > 1 else name for key, name in names.items()}


def _fan(look: Look, names: Mapping[int, str]) -> dict[str, Any]:
    """The tokens that a word looks at with their names and weights, and all others together."""
    return {
        "block": look.block,
        "head": look.head,
        "columns": ("token", "share of its attention"),
        "rows": [
            {"name": names[key], "weight": round(weight, 4), "shown": percent(weight), "strong": key == look.target}
            for key, weight in look.strongest
        ],
        "rest": {"name": "all others", "shown": percent(look.rest)},
    }


def _nearest(
    word: Word,
    near: tuple[Sequence[Neighbour], Sequence[Neighbour] | None] | None,
    included: Included | None,
    *,
    is_hole: bool,
) -> dict[str, Any]:
    if near is None or included is None:
        return {"says": READING}
    found, before = near
    cosines = apart(*(item.cosine for item in found[:NEAREST]))
    unrelated = float(included.words.unrelated[-1])
    said = findings.of_nearest(word.text, found, before, unrelated=unrelated, is_hole=is_hole)
    return {
        "says": with_isolated_quotes(said),
        "words": [
            {
                "text": item.sentence,
                "start": item.place.start,
                "end": item.place.end,
                "shown": cosine,
            }
            for item, cosine in zip(found[:NEAREST], cosines, strict=True)
        ],
    }


def _component(seen: Seen, chosen: int, drawn: Sequence[dict[str, Any]]) -> None:
    """Draw the browser's part; afterwards the view is opened that a person pressed."""
    words = seen.words

    def picked() -> None:
        sent = browser.sent_by(_KEY, "word")
        if browser.is_index(sent, len(words)):
            _choose(seen, sent)

    for name in ("looks", "changes", "nearest"):
        if (figure := drawn[chosen][name]) is not None:
            report.add(f"start_{name}", PagePart(message=messages.escape(f"{words[chosen].text}: {figure['says']}")))
    browser.web_component("start_sentence", _HTML, "drawing")(
        key=_KEY,
        data={
            "rows": [_row(seen, row) for row in range(len(seen.trace.sentences))],
            "words": list(drawn),
            "chosen": chosen,
            "note": _note(seen),
            "figures": _figures(seen),
        },
        on_word_change=picked,
        on_open_change=lambda: None,
    )
    opened = browser.two_numbers(browser.sent_by(_KEY, "open"))  # not by a callback, which cannot go to another page
    if opened is not None and browser.is_index(opened[0], GUESS + 1) and browser.is_index(opened[1], len(words)):
        _open(seen, opened[0], opened[1], drawn[opened[1]])


def _figures(seen: Seen) -> list[dict[str, str]]:
    """The line above each figure and its link."""
    blocks, heads = seen.backend.facts.layers, seen.backend.facts.heads
    last = "after the last block" if seen.trace.n_layers else "by its own vector"
    return [
        {
            "name": "looks",
            "kicker": "Where it looks",
            "link": f"{table.VIEWS[LOOKS_VIEW].label} ({counted(blocks * heads, 'head')})",
        },
        {
            "name": "changes",
            "kicker": "How it changes through the layers",
            "link": table.VIEWS[CHANGES_VIEW].label,
        },
        {
            "name": "nearest",
            "kicker": f"Its nearest words, {last}",
            "link": table.VIEWS[NEAREST_VIEW].label,
        },
    ]


def _row(seen: Seen, row: int) -> dict[str, Any]:
    """The pieces of a sentence, each with the number of its word, -1 without one."""
    sentence = seen.trace.sentences[row]
    of = {
        position: number
        for number, word in enumerate(seen.words)
        if word.sentence == row
        for position in word.positions
    }
    return {
        "number": row + 1,
        "label": f"Sentence {row + 1}",
        "direction": browser.direction(sentence.text),
        "pieces": [{"text": token.piece, "word": of.get(token.position, -1)} for token in sentence.tokens],
    }


def _note(seen: Seen) -> str:
    """What of the sentences is not shown here."""
    said = []
    count = len(state.get("sentences"))
    if count > SHOWN:
        said.append(f"The first {SHOWN} of {count} sentences.")
    cut = [str(row + 1) for row, sentence in enumerate(seen.trace.sentences) if sentence.dropped]
    if cut:
        which = "Sentence" if len(cut) == 1 else "Sentences"
        said.append(f"{which} {', '.join(cut)}: only the beginning, which fits into {_most(seen)} tokens.")
    return " ".join(said)


def _most(seen: Seen) -> int:
    return max(len(sentence) for sentence in seen.trace.sentences if sentence.dropped)


def _choose(seen: Seen, number: int) -> None:
    """Make a word the session's token of interest; in the other sentences its other occurrence, where there is one."""
    word, position = seen.words[number], seen.words[number].positions[0]
    if (place := seen.as_typed(word.sentence, position)) is not None:
        offered = [seen.as_typed(row, offered) or 0 for row, offered in enumerate(seen.offered)]
        controls.choose_word(seen.typed, offered, word.sentence, place)


def _open(seen: Seen, figure: int, number: int, drawn: dict[str, Any]) -> None:
    """Open the view of a figure with the word. Holes become masks first, as here: it shows the sentences as typed."""
    tokenization, texts = seen.backend.tokenization, state.get("sentences")
    written = tuple(with_masks(text, tokenization) for text in texts)
    if figure != GUESS and written != texts:
        mask = messages.escape(mask_of(tokenization) or "")
        state.put("sentences", written)
        state.notice_while(
            "sentences", written, f"Each hole of your sentence is now written as {mask}, as the model reads it."
        )
        seen.typed = seen.trace.sentences
    _choose(seen, number)
    if figure == 0:
        looks = drawn["looks"] or {}
        head = {name: looks.get(name) for name in ("block", "head")}
        navigation.go_to(LOOKS_VIEW, **head)
    elif figure == 1:
        navigation.go_to(CHANGES_VIEW)
    elif figure == GUESS:
        word = seen.words[number]
        hidden = None if seen.is_hole(word) else word.positions[0]
        several = len(word.positions) > 1 or None
        navigation.go_to(GUESS_VIEW, sentence_a=word.sentence, masked=hidden, mask_word=several, only_left=False)
    else:
        navigation.go_to(NEAREST_VIEW, map_source="sentences", reading="alone", map_find=seen.words[number].text)
