"""What the figures of a word, a token and sentences over the layers say, in a sentence computed from what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from components.analysis.similarity import calibration, courses
from components.analysis.similarity.sentences import TIED
from components.charts import theme
from components.numbers import enumerated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.similarity.cosines import LayerCurves
    from components.arrays import Float64
    from components.charts.curves import BandData


def of_occurrences(subject: str, labels: Sequence[str], curves: LayerCurves, band: BandData | None) -> str:
    """How the occurrences of a word move: all pairs of them, `labels` being the pairs' names ("river and money").

    `subject` is what moves, with its number: "The 3 “bank”".
    """
    values = _known(curves.values)
    if not len(values):
        return "There is no value to show."
    last = values[:, -1]
    way = _way(values.mean(axis=0), alike=bool(values.min() >= courses.ALIKE))
    if len(values) == 1:
        ends = f"{theme.number(values[0, 0])} at layer 0, {theme.number(last[0])} after the last block"
    else:
        least, most = extremes(curves.values)
        ends = ", ".join(f"{labels[row]} {theme.number(curves.values[row, -1])}" for row in (least, most))
    return f"{subject} {way}: {ends}{_unrelated(float(last.max()), band)}"


def of_one_that_moves_away(word: str, names: Sequence[str], curves: LayerCurves, band: BandData | None) -> str:
    """Of three or more occurrences of a word the one that the others leave behind, or empty where none is.

    That is one which after the last block is less similar to each of the others than they are to each other, by
    courses.FAINT, and was nearer to them at layer 0. `names` are words beside the occurrences ("river"), or what else tells
    them apart ("sentence 2").
    """
    values = curves.values
    if len(names) < 3 or not len(values) or not all(map(_is_known, values)):
        return ""
    for number, name in enumerate(names):
        is_own = np.array([number in pair for pair in curves.pairs])
        own, rest = values[is_own], values[~is_own]
        away = float(own[:, 0].mean() - own[:, -1].mean())
        if away < courses.FAINT or own[:, -1].max() > rest[:, -1].min() - courses.FAINT:
            continue
        where = f"of {name}" if name.startswith("sentence ") else f"beside “{name}”"
        others = f"the other {'two' if len(names) == 3 else len(names) - 1}"
        still = "still " if abs(float((rest[:, -1] - rest[:, 0]).mean())) < courses.FAINT else ""
        return (
            f"The “{word}” {where} moves away from {others}: cosine {_span(own[:, -1])} after the last block, "
            f"{still}{_span(rest[:, -1])} between those{_unrelated(float(values[:, -1].max()), band)}"
        )
    return ""


def _span(values: Float64) -> str:
    """Where some values lie: "0.75 and 0.77" of two, else from one end "to" the other; none of it is a movement."""
    low, high = theme.number(float(values.min()), 2), theme.number(float(values.max()), 2)
    return low if low == high else f"{low} {'and' if len(values) == 2 else 'to'} {high}"


def of_one_occurrence(
    word: str, kind: str, others: Sequence[str], curves: LayerCurves, band: BandData | None, *, are_nearest: bool
) -> str:
    """A word that occurs once, with `others` of its sentence, told from the highest value to the lowest.

    `kind` is what the others are, in the plural ("content words"). `are_nearest`: none of that kind is nearer by the
    values shown.
    """
    values = curves.values[:, -1] if len(curves.pairs) else np.empty(0)
    known = [(other, value) for other, value in zip(others, values.tolist(), strict=True) if not np.isnan(value)]
    if not known:
        return f"{word} has nothing in its sentence to be compared with."
    known.sort(key=lambda item: -item[1])  # they were chosen by the first model's cosines
    ends = enumerated([f"{other} {theme.number(value)}" for other, value in known])
    one, is_one = kind.removesuffix("s"), len(known) == 1
    if are_nearest:
        what = f"the nearest {one} of its sentence is" if is_one else f"the nearest {kind} of its sentence are"
    else:
        what = f"shown with {f'a {one}' if is_one else kind} of its sentence:"
    return f"{word} occurs once; {what} {ends}{_unrelated(known[0][1], band)}"


def of_all_tokens(word: str, names: Sequence[str], values: Float64) -> str:
    """A token with all others of its sentence; `values` [token, layer] are sorted by the last layer, the nearest first."""
    if not len(values) or np.isnan(values[0, -1]):
        return f"There is no other token in the sentence of {word}."
    first, last = theme.number(values[0, 0], 2), theme.number(values[0, -1], 2)
    text = f"After the last block {word} is most like {names[0]} ({last}, from {first} at layer 0)"
    if len(values) > 1:
        text += f", then {names[1]} ({theme.number(values[1, -1], 2)})"
    return f"{text}."


def of_sentences(
    labels: Sequence[str], curves: LayerCurves, band: BandData | None, pooling: str, of_words: bool = False
) -> str:
    """Sentence vectors: which pair ends nearest, and where they come apart or together. `pooling` is its name in the figure.

    `labels` are the names of the pairs: numbers of sentences ("1 and 3") or, with `of_words`, words in them.
    """
    what = "the sentences with" if of_words else "sentences"
    values = _known(curves.values)
    if not len(values):
        return "There is no value to show."
    least, most = extremes(curves.values)
    last, number, is_named = curves.values[:, -1], theme.number, False
    if len(values) == 1:
        way = _way(values[0], alike=bool(values.min() >= courses.ALIKE))
        ends = f"{number(values[0, 0])} at layer 0, {number(last[most])} after the last block"
        text = f"By {pooling}, the two sentences {way}: {ends}"
    elif last[most] - last[least] < courses.FAINT:
        ends = (
            number(last[least])
            if number(last[least]) == number(last[most])
            else f"{number(last[least])} to {number(last[most])}"
        )
        text = f"By {pooling}, no pair stands out after the last block: {ends}"
    else:
        is_named = True
        farthest = f"{labels[least]} farthest ({number(last[least])})"
        text = f"By {pooling}, {what} {labels[most]} end nearest ({number(last[most])}), {farthest}"
    text += (
        _unrelated(float(last[most]), band, "sentences") if len(values) == 1 else _rising(values[:, -1], band, is_named)
    )
    until = equal_until(values)
    if until is None:
        return text
    every = "The two are" if len(values) == 1 else "All are"
    return f"{text} {every} the same up to layer {until}."


def _rising(last: Float64, band: BandData | None, is_named: bool) -> str:
    """How many pairs of sentences end above unrelated ones, where `is_named` the nearest is called so; the sentence's end."""
    if band is None:
        return "."
    above = int((last > band.high[-1]).sum())
    if above == 1 and is_named:
        which = "only the nearest"
    else:
        which = f"all {above} pairs" if above == len(last) else f"{above or 'none'} of the {len(last)} pairs"
    return f"; {which} end{'s' * (above < 2)} above 95 % of unrelated pairs ({theme.number(float(band.high[-1]), 2)})."


def equal_until(values: Float64, least: float | None = None) -> int | None:
    """The last layer up to which all pairs [pair, layer] are equal vectors, up to what is seen or to a cosine of `least`.

    None where they are not at layer 0, or everywhere.
    """
    equal = np.asarray((values >= (EQUAL if least is None else least)).all(axis=0))
    if not equal[0] or equal.all():
        return None
    return int(np.argmin(equal)) - 1


EQUAL = 0.9995  # what is written as 1.000


def _way(values: Float64, alike: bool) -> str:
    """What a curve does, as what two things do."""
    course = courses.course_of(values)
    end = len(values) - 1
    if alike:
        return "hardly differ at any layer"
    if course.kind == "unchanged":
        return f"hardly move from layer 0 to layer {end}"
    if course.turn is None:
        return f"{'move apart' if course.kind == 'apart' else 'come closer'} until layer {end}"
    is_apart = course.turn < course.first
    there, back = ("move apart", "come closer again") if is_apart else ("come closer", "move apart again")
    return f"{there} until layer {course.turn_layer} and {back}"


def _unrelated(highest: float, band: BandData | None, things: str = "tokens") -> str:
    """Where unrelated pairs lie at the last layer, beside the highest of the values; the sentence's end."""
    if band is None:
        return "."
    return f"; {calibration.beside(highest, f'unrelated {things}', float(band.mean[-1]), float(band.high[-1]))}."


def extremes(values: Float64) -> tuple[int, int]:
    """The rows of the curves [curve, layer] that end lowest and highest, of those without gaps; the first of equal ones."""
    rows = [row for row in range(len(values)) if _is_known(values[row])]
    seen = np.round(values[rows, -1], TIED)
    return rows[int(np.argmin(seen))], rows[int(np.argmax(seen))]


def _known(values: Float64) -> Float64:
    return values[[row for row in range(len(values)) if _is_known(values[row])]]


def _is_known(values: Float64) -> bool:
    return bool(len(values)) and not np.isnan(values).any()
