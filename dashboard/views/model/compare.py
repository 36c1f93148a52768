"""Two to four models compared: one sentence by depth and in pieces, then parts, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis import tokens as token_analysis
from components.analysis.pooling import pool
from components.analysis.similarity import depth
from components.charts import curves
from components.errors import UserError
from components.shown_code import arrays
from components.shown_code.code import Command
from components.words.typed import typed_words
from dashboard import caching, state
from dashboard.ui import browser, controls, figures, messages, wording
from dashboard.views.model import compare_measured, compare_parts, compared

if TYPE_CHECKING:
    from components.arrays import Float64
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

CURVES: dict[str, str] = {
    "tokens": "Tokens of one sentence",
    "words": "Two words",
    "sentences": "Two sentences",
    "steps": "Layer by layer",
}
DepthCurve = Literal["tokens", "words", "sentences", "steps"]
COMPUTED: dict[DepthCurve, Callable[..., Float64]] = {
    "tokens": depth.token_pairs,
    "words": depth.two_words,
    "sentences": depth.two_vectors,
    "steps": depth.layer_steps,
}
QUANTITIES: dict[DepthCurve, str] = {
    "tokens": "mean cosine of two tokens",
    "words": "cosine of the two words",
    "sentences": "cosine of the two sentences",
    "steps": "mean cosine with the layer before",
}
ALIKE: dict[DepthCurve, str] = {  # what a finding speaks of
    "tokens": "Two tokens of the sentence, on average,",
    "words": "The two words",
    "sentences": "The two sentences",
}
READ: dict[DepthCurve, str] = {
    "tokens": "Each line is a model, from its embeddings (depth 0) to its last layer (depth 1). The value is the mean cosine "
    "of all pairs of tokens of the sentence, without special tokens: where a line rises, the tokens become alike, since each "
    "takes in the others.",
    "words": "Each line is a model, from its embeddings (depth 0) to its last layer (depth 1). The value is the cosine of two "
    "words of the sentence; a word of several pieces is their mean. Where a line rises, the words come closer.",
    "sentences": "Each line is a model, from its embeddings (depth 0) to its last layer (depth 1). The value is the cosine of "
    "two sentence vectors, with the pooling that each model was published with, or else the mean. Where a line falls, the "
    "model begins to tell the sentences apart.",
    "steps": "Each line is a model. The value at a layer is how much of its direction a token keeps from the layer before: the "
    "mean cosine over the tokens, without special ones. Where a line is low, a block changes the tokens most.",
}
HEIGHTS = (
    "Which model is better, and what a height means: in one model any two tokens have a cosine of 0.1, in another of 0.8 "
    "([Ethayarajh 2019](https://aclanthology.org/D19-1006/)). So compare the shapes of the lines (where they rise, turn and "
    "end), not their heights. "
)
DEPTHS = "The same depth is not the same amount of work: one block of a model can do what three of another do."


@dataclass(frozen=True)
class OfOneSentence:
    """What a curve over relative depth is of: a sentence, two of its words, or another sentence."""

    kind: DepthCurve
    sentence: int
    words: Sequence[tuple[int, int]] = ()  # the characters of two words
    other: int | None = None


@dataclass(frozen=True)
class _Curve:
    """The chosen curve; words and the other sentence only where it needs them."""

    of: OfOneSentence
    title: str
    percentiles: bool = False

    def values(self, model: Backend, trace: Trace) -> Float64:
        """The curve of a model, [layer]: cosines, or the per cent of unrelated pairs that are less similar."""
        kind, row = self.of.kind, self.of.sentence
        if kind == "tokens":
            return depth.token_pairs(trace, row)
        if kind == "steps":
            return depth.layer_steps(trace, row)
        if kind == "words":
            cosines = depth.two_words(trace, row, self.of.words)
        else:
            cosines = depth.two_vectors(pool(trace, model.own_pooling), row, cast("int", self.of.other))
        if not self.percentiles:
            return cosines
        unrelated = (
            caching.token_baseline(model)
            if kind == "words"
            else caching.sentence_baseline(model, model.own_pooling, True)
        )
        shares = [unrelated.calibration(layer).shares(np.array([value]))[0] for layer, value in enumerate(cosines)]
        return 100 * np.array(shares)


def draw(main: Backend) -> None:
    """The whole comparison."""
    if messages.no_sentences():
        return
    sentences = controls.current_tokens(main)
    with controls.row():
        keys = compared.choose()
        kind = cast("DepthCurve", controls.pick("depth_curve", "Curve", CURVES, width=210))
        curve = _choose(kind, sentences, main)
    models, every_name = compared.available(main, keys), list(compared.names(keys).values())
    traces = _traces(models)
    if not keys:
        st.info("Choose a model to compare with, above.")
    readers = {name: models[name] for name in traces}
    if curve is not None:
        _curves(curve, readers, traces, every_name)
    messages.truncations(list(readers.values()), list(traces.values()))
    if readers:
        _pieces(readers, traces, 0 if curve is None else curve.of.sentence)
    compare_parts.draw(models)
    compare_measured.draw(models, every_name)


def _traces(models: Mapping[str, Backend]) -> dict[str, Trace]:
    """The sentences in each model that gives vectors of tokens; why one does not is drawn.

    Raises what was wrong if no model can read the sentences.
    """
    traces, problems = {}, {}
    for name, model in models.items():
        if reason := model.structure.why_not("tokens"):
            st.caption(f"**{messages.escape(name)}** is left out of the curves and the pieces: it {reason}.")
            continue
        try:
            traces[name] = controls.current_trace(model)
        except UserError as problem:
            problems[name] = problem
    if problems and not traces:
        raise next(iter(problems.values()))
    for name, refused in problems.items():
        st.markdown(f"**{messages.escape(name)}** is left out of the curves and the pieces:")
        messages.explain(refused, "reading the sentences")
    return traces


def _choose(kind: DepthCurve, sentences: Sequence[TokenizedSentence], main: Backend) -> _Curve | None:
    """Draw what the chosen curve needs further; None where the sentences do not have it, which is said."""
    texts = [sentence.text for sentence in sentences]
    if kind == "sentences":
        if len(texts) < 2:
            st.info("One sentence has no other to compare with. Add a second one at the top of the page.")
            return None
        row = controls.sentence_of(texts, "sentence", "First sentence", 0)
        other = controls.sentence_of(texts, "depth_other_sentence", "Second sentence", 0 if row else 1)
        with controls.options():
            percentiles = controls.percentiles()
        title = f"Sentences {row + 1} and {other + 1} at each depth"
        return _Curve(OfOneSentence(kind, row, other=other), title, percentiles)
    if kind == "words":
        chosen = state.get("sentence") or 0  # read before its control is drawn, which stands behind the words
        spans = _two_words(sentences, chosen if chosen < len(texts) else 0, main)
        with controls.options():
            row = controls.sentence(sentences)
            percentiles = controls.percentiles()
        if not spans:
            st.info("This sentence has fewer than two words: choose another curve.")
            return None
        first, second = (texts[row][start:end] for start, end in spans)
        return _Curve(OfOneSentence(kind, row, spans), f"“{first}” and “{second}” at each depth", percentiles)
    row = 0
    if len(texts) > 1:
        with controls.options():
            row = controls.sentence(sentences)
    title = f"Tokens of sentence {row + 1} at each depth" if kind == "tokens" else f"Sentence {row + 1}, layer by layer"
    return _Curve(OfOneSentence(kind, row), title)


def _two_words(sentences: Sequence[TokenizedSentence], row: int, main: Backend) -> tuple[tuple[int, int], ...]:
    """Draw the choice of two words of a sentence, and return their characters; none if it has fewer than two words."""
    text = sentences[row].text
    spans = typed_words(text)
    if len(spans) < 2:
        return ()
    words = [text[start:end] for start, end in spans]
    names = {
        number: word if words.count(word) == 1 else f"{word} (word {number + 1})" for number, word in enumerate(words)
    }
    chosen: list[int] = []
    for setting, label, defaults in zip(
        ("depth_first_word", "depth_second_word"),
        ("First word", "Second word"),
        (default := _default_words(sentences, row, main), default[::-1]),
        strict=True,
    ):
        offered = {
            number: name for number, name in names.items() if number not in chosen
        }  # a word is not compared with itself
        if state.get(setting) in chosen:
            state.put(setting, None)
        number = controls.bind(
            setting,
            st.selectbox,
            label,
            options=offered,
            default=next(number for number in defaults if number in offered),
            describe=lambda number: str(number + 1),
            offers=f"The sentence has {len(spans)} words.",
        )
        chosen.append(int(number))
    return tuple(spans[number] for number in chosen)


def _default_words(sentences: Sequence[TokenizedSentence], row: int, main: Backend) -> tuple[int, int]:
    """The numbers of the words to begin with: the word of interest, and the telling word next to it."""
    spans = typed_words(sentences[row].text)
    positions = controls.default_interest(sentences, main).positions
    token = sentences[row].tokens[positions[row]]
    first = next((number for number, (start, end) in enumerate(spans) if start < token.end and token.start < end), 0)
    near = token_analysis.neighbour_words(sentences, positions)[row].lower()
    others = [number for number in range(len(spans)) if number != first]
    telling = [number for number in others if near and near in sentences[row].text[slice(*spans[number])].lower()]
    return first, min(telling or others, key=lambda number: abs(number - first))


def _curves(
    curve: _Curve, models: Mapping[str, Backend], traces: Mapping[str, Trace], every_name: Sequence[str]
) -> None:
    """The figure of one line for each model over relative depth; `every_name` gives each model its colour."""
    kind = curve.of.kind
    values = {name: curve.values(model, traces[name]) for name, model in models.items()}
    if not values:
        return
    without = [messages.escape(name) for name, line in values.items() if np.isnan(line).all()]
    known = {name: line for name, line in values.items() if not np.isnan(line).all()}
    if without:
        st.markdown(f":orange[:material/info:] **No value in {' and '.join(without)}**: {_why_missing(curve)}")
    if not known:
        return
    message = _message(kind, known, curve.percentiles)
    figures.figure(
        curves.depth_curves(
            list(known.values()),
            list(known),
            curve.title,
            y_title="% of unrelated pairs below" if curve.percentiles else QUANTITIES[kind],
            decimals=1 if curve.percentiles else 3,
            y_range=(-3.0, 103.0) if curve.percentiles else curves.shared_range(*known.values()),
            styles=[every_name.index(name) for name in known],
        ),
        key="compare_depth",
        code=Command(COMPUTED[kind]),
        alt=f"{curve.title}: one line for each of {len(known)} models over relative depth. {message}",
        message=message,
        read=READ[kind]
        + (
            " In per cent of the model's own unrelated pairs, heights can be compared too." if curve.percentiles else ""
        ),
        not_shown=("Which model is better. " if curve.percentiles else HEIGHTS) + DEPTHS,
        table=lambda: _table(known, "per cent" if curve.percentiles else "cosine"),
    )


def _why_missing(curve: _Curve) -> str:
    if curve.percentiles:
        return messages.NO_BASELINE
    if curve.of.kind == "steps":
        return "it has one layer, and no block that could change a vector, or the sentence has too few tokens there."
    if curve.of.kind == "words":
        return "a word was truncated, or its tokenizer drops it."
    return "the sentence has too few tokens there."


def _message(kind: DepthCurve, values: Mapping[str, Float64], percentiles: bool = False) -> str:
    """In which model the vectors end up most alike, and which had them more alike before; of steps the largest changes."""
    names = {name: f"**{messages.escape(name)}**" for name in values}
    if kind == "steps":
        parts = [
            f"block {layer - 1} of {names[name]} (depth {numbers.number(layer / (len(line) - 1), 2)})"
            for name, line in values.items()
            if len(line) > 1  # one point has no lowest
            for layer in (int(np.nanargmin(line)),)
        ]
        return f"The blocks that turn the tokens furthest: {'; '.join(parts)}." if parts else ""
    ends = {name: float(line[~np.isnan(line)][-1]) for name, line in values.items()}
    order = sorted(ends, key=lambda name: -ends[name])
    shown = dict(zip(order, _written([ends[name] for name in order], percentiles), strict=True))
    of = {name: f"{names[name]} ({shown[name]})" for name in order}
    best = [name for name in order if shown[name] == shown[order[0]]]
    rest = order[len(best) :]
    if len(order) == 1:
        said = f"{ALIKE[kind]} end up with {shown[order[0]]} in {names[order[0]]}"
    else:
        how = "more" if rest else "equally"
        said = f"{ALIKE[kind]} end up {how} alike in {numbers.enumerated([of[name] for name in best])}"
        said += f" than in {numbers.enumerated([of[name] for name in rest])}" if rest else ""
    return said + "".join(_highest_before(names[name], line, percentiles) for name, line in values.items()) + "."


def _written(values: Sequence[float], percentiles: bool) -> tuple[str, ...]:
    return tuple(f"{value:.0f} %" for value in values) if percentiles else numbers.apart(*values)


def _highest_before(name: str, line: Float64, percentiles: bool) -> str:
    """Where a line is higher than at its end, as an insertion; empty where it ends at its height."""
    layer = int(np.nanargmax(line))
    highest, end = (
        _written([value], percentiles)[0] for value in (float(line[layer]), float(line[~np.isnan(line)][-1]))
    )
    return "" if highest == end else f"; in {name} they were most alike at layer {layer} of {len(line) - 1} ({highest})"


def _table(values: Mapping[str, Float64], quantity: str) -> pd.DataFrame:
    """A line for each layer of each model."""
    return pd.DataFrame(
        [
            {"model": name, "layer": layer, "depth": round(float(place), 4), quantity: round(float(value), 6)}
            for name, line in values.items()
            for layer, (place, value) in enumerate(zip(depth.relative_depths(len(line) - 1), line, strict=True))
        ]
    )


def _pieces(models: Mapping[str, Backend], traces: Mapping[str, Trace], row: int) -> None:
    """The sentence as each model cuts it, in chips, with counts; folded where all cut it into the same pieces."""
    title = "The same sentence in pieces"
    if (
        len({tuple(token.piece for token in trace.sentences[row].tokens) for trace in traces.values()})
        == 1
        < len(models)
    ):
        with st.expander(f"{title}: no difference"):
            _chips(models, traces, row, title)
    else:
        figures.subheader(title)
        _chips(models, traces, row, title)


def _chips(models: Mapping[str, Backend], traces: Mapping[str, Trace], row: int, title: str) -> None:
    lines = []
    for number, (name, model) in enumerate(models.items()):
        sentence = traces[name].sentences[row]
        counts = token_analysis.statistics([sentence], model.tokenization.unknown_id)
        lines.append(
            {
                "model": name,
                "tokens": counts.tokens,
                "of the text": counts.pieces,
                "words in several pieces": counts.split_words,
                "unknown": counts.unknown,
                "pieces": " ".join(token.piece for token in sentence.tokens),
            }
        )
        split = wording.counted(counts.split_words, "word")
        st.markdown(
            f"**{messages.escape(name)}**: {wording.counted(counts.tokens, 'token')}, of which {counts.pieces:,} "
            f"{'is' if counts.pieces == 1 else 'are'} pieces of the text and {counts.tokens - counts.pieces:,} special; "
            f"{split} in several pieces" + (f"; {counts.unknown:,} unknown" if counts.unknown else "")
        )
        browser.chips(
            [browser.ChipRow(row, sentence, label=f"Sentence {row + 1} by {name}")],
            key=f"chips_compare_{number}",
            unknown_id=model.tokenization.unknown_id,
            scale=controls.scale(),
            fold=True,
        )
    figures.data(
        "compare_pieces",
        lambda: pd.DataFrame(lines),
        arrays.pieces({name: controls.current_input(model) for name, model in models.items()}, row),
        title,
    )
    st.caption(
        "A model reads ids of its own vocabulary: the more pieces a text has, the longer and slower it is to read."
    )
