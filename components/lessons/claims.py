"""Numbers that a lesson states, and whether they hold for a model.

A claim compares two measures of a step's sentences: `cosine(bank@1, bank@2, 6) < 0.8`. The measures:

- `cosine(A, B, LAYER)`: of two vectors. A and B are a word of a sentence (`bank@2`: "bank" in the second sentence; a word
  of several pieces has the mean of their vectors), a token by its position (`5@2`), or a whole sentence by its pooling
  (`MEAN@2`, `CLS@2`, `MAX@2`).
- `attention(BLOCK, HEAD, A, B)`: the share of its attention that token A gives to token B of the same sentence.
- `tokens(SENTENCE)`: the number of its tokens with [CLS] and [SEP]; `pieces(A)`: the number of pieces of a word.
- a number.

`=` means equal after rounding to the digits that are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from components import numbers

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

Comparison = Literal["<", ">", "="]
MACHINES_DIFFER = 0.00005  # in float32, the same version of everything
NUMBERS_DIFFER = 0.002  # between chips and versions, at most, for the same model
_KINDS = {"cosine": 3, "attention": 4, "tokens": 1, "pieces": 1}  # with the number of their arguments
_POOLINGS = {"MEAN": "mean", "CLS": "cls", "MAX": "max"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_PLACE = re.compile(r"(?P<what>\S.*)@(?P<sentence>[1-9]\d?)")
EXAMPLE = "Write it as in: cosine(bank@1, bank@2, 6) < 0.8"


@dataclass(frozen=True)
class ClaimTerm:
    kind: str  # one of _KINDS, or "number"
    arguments: tuple[str, ...]

    def value(self, trace: Trace) -> float:
        """Its value. Raises ValueError, which says what the sentences do not have."""
        if self.kind == "number":
            return float(self.arguments[0])
        if self.kind == "tokens":
            return float(len(_sentence(trace, self.arguments[0])))
        if self.kind == "pieces":
            return float(len(_positions(trace, self.arguments[0])[1]))
        if self.kind == "cosine":
            first, second = (_vector(trace, place, int(self.arguments[2])) for place in self.arguments[:2])
            return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
        block, head = (int(number) for number in self.arguments[:2])
        (row, queries), (other, keys) = (_positions(trace, place) for place in self.arguments[2:])
        if row != other:
            raise ValueError("attention stays within one sentence")
        if trace.attentions is None or not (block < len(trace.attentions) and head < trace.attentions[block].shape[1]):
            raise ValueError(f"the model has no block {block} with a head {head}")
        return float(trace.attentions[block][row, head][np.ix_(queries, keys)].sum(1).mean())


@dataclass(frozen=True)
class Claim:
    text: str  # as it was written
    first: ClaimTerm
    comparison: Comparison
    second: ClaimTerm
    line: int  # of the file, from 1

    def misrounded(self, backend: Backend, sentences: tuple[str, ...]) -> str:
        """What this machine measures where it rounds to another number than the one written; empty where it is the same.

        A measure so near to half way that machines can differ in it (by MACHINES_DIFFER) may be written either way.
        """
        written = self.second.arguments[0] if self.second.kind == "number" and self.comparison == "=" else ""
        digits = len(written.partition(".")[2])
        if not digits:
            return ""
        measured = self.first.value(backend.trace(sentences, attentions=True))
        rounded = {numbers.number(measured + change, digits) for change in (-MACHINES_DIFFER, 0.0, MACHINES_DIFFER)}
        if written.replace("-", "−") in rounded:
            return ""
        return f"{numbers.number(measured, digits)} ({numbers.number(measured, digits + 3)})"

    def problem(self, backend: Backend, sentences: tuple[str, ...]) -> str:
        """What is wrong with the claim for these sentences; empty if it holds."""
        trace = backend.trace(sentences, attentions=True)
        try:
            first, second = self.first.value(trace), self.second.value(trace)
        except ValueError as problem:
            return f"it cannot be measured: {problem}"
        if self._holds(first, second):
            return ""
        is_number = self.second.kind == "number"
        return f"it measures {numbers.number(first, 4)}" + ("" if is_number else f" and {numbers.number(second, 4)}")

    def _holds(self, first: float, second: float) -> bool:
        if self.comparison == "<":
            return first < second
        if self.comparison == ">":
            return first > second
        digits = len(self.second.arguments[0].partition(".")[2]) if self.second.kind == "number" else 4
        # Counts are exact; for other measures, a machine may differ a little from the one on which it was written.
        tolerance = 0.0 if digits == 0 else 0.5 * 10.0**-digits + NUMBERS_DIFFER
        return abs(first - second) <= tolerance


def parse_claim(text: str, line: int) -> Claim:
    """Read a claim. Raises ValueError, which says what is wrong."""
    parts = re.fullmatch(r"(?P<first>[^<>=]+)(?P<comparison>[<>=])(?P<second>[^<>=]+)", text)
    if parts is None:
        raise ValueError("it does not compare two measures with <, > or =")
    first, second = (_parse_measure(parts[name].strip()) for name in ("first", "second"))
    return Claim(text, first, cast("Comparison", parts["comparison"]), second, line)


def _parse_measure(text: str) -> ClaimTerm:
    if _NUMBER.fullmatch(text):
        return ClaimTerm("number", (text,))
    call = re.fullmatch(r"(?P<kind>[a-z]+)\((?P<arguments>.*)\)", text)
    if call is None or call["kind"] not in _KINDS:
        raise ValueError(f"{text} is neither a number nor one of {', '.join(f'{kind}(…)' for kind in _KINDS)}")
    arguments = tuple(argument.strip() for argument in call["arguments"].split(","))
    if len(arguments) != _KINDS[call["kind"]]:
        raise ValueError(f"{call['kind']}(…) needs {_KINDS[call['kind']]} values, not {len(arguments)}")
    measure = ClaimTerm(call["kind"], arguments)
    numbers, places = _split(measure)
    for number in numbers:
        if not re.fullmatch(r"\d{1,3}", number):
            raise ValueError(f"{number} is not a whole number")
    for place in places:
        if _PLACE.fullmatch(place) is None:
            raise ValueError(f"{place} names no word of a sentence, as bank@1 does")
    return measure


def _split(measure: ClaimTerm) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments that are numbers, and those that are places."""
    if measure.kind == "cosine":
        return measure.arguments[2:], measure.arguments[:2]
    if measure.kind == "attention":
        return measure.arguments[:2], measure.arguments[2:]
    return (measure.arguments, ()) if measure.kind == "tokens" else ((), measure.arguments)


def _sentence(trace: Trace, number: str) -> TokenizedSentence:
    if not 1 <= int(number) <= len(trace.sentences):
        raise ValueError(f"there is no sentence {number}")
    return trace.sentences[int(number) - 1]


def _positions(trace: Trace, place: str) -> tuple[int, list[int]]:
    """The row of the sentence that a place names, and the positions of its word's pieces."""
    what, _, number = place.rpartition("@")
    sentence, row = _sentence(trace, number), int(number) - 1
    if what.isdigit():
        if int(what) >= len(sentence):
            raise ValueError(f"sentence {number} has no token {what}")
        return row, [int(what)]
    for token in sentence.tokens:
        positions = list(sentence.word_positions(token.position))
        word = sentence.text[sentence.tokens[positions[0]].start : sentence.tokens[positions[-1]].end]
        if what == token.piece or (word and word.casefold() == what.casefold()):
            return row, positions
    raise ValueError(f"sentence {number} has no word {what}")


def _vector(trace: Trace, place: str, layer: int) -> np.ndarray:
    """The vector [dim] of a word, a token or a sentence at a layer, in float64."""
    from components.analysis.pooling import pool

    if layer >= len(trace.hidden_states):
        raise ValueError(f"the model has no layer {layer}")
    what, _, number = place.rpartition("@")
    if what in _POOLINGS:
        _sentence(trace, number)
        return np.asarray(pool(trace, _POOLINGS[what])[layer, int(number) - 1], np.float64)  # type: ignore[arg-type]
    row, positions = _positions(trace, place)
    return np.asarray(trace.hidden_states[layer, row, positions], np.float64).mean(0)
