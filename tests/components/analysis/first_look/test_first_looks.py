"""At what the heads look first, by a loop over plain transformers."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.decisive import REACH, Habits, decisive_heads, most_decisive
from components.analysis.first_look.first_looks import first_looks
from components.analysis.first_look.words import words_of
from components.model.backend import Backend
from tests.support import plain_encoder as plain

TEXTS = (
    "The trophy does not fit in the suitcase because it is too big.",
    "She, he and they: unbelievably, all of them!",
    "It rains.",
)


@pytest.mark.parametrize("text", TEXTS)
def test_first_looks_by_a_loop(embedded: Backend, text: str) -> None:
    trace = embedded.trace([text], attentions=True)
    assert trace.attentions is not None
    words, attention = words_of(trace.sentences), plain.run(text).attention
    for word in words:
        found = first_looks(trace.attentions[:, 0], word, words, trace.sentences[0])
        expected: dict[str | int, int] = {"itself": 0, "special": 0, "rest": 0}
        for block in attention:
            for head in block:
                key = int(head[word.last].argmax())
                of = next((other.positions[0] for other in words if key in other.positions), None)
                name: str | int | None = "itself" if key in word.positions else of
                if name is None:
                    name = "special" if trace.sentences[0].tokens[key].special else "rest"
                expected[name] = expected.get(name, 0) + 1
        assert (found.itself, found.special, found.rest) == tuple(
            expected.pop(key) for key in ("itself", "special", "rest")
        )
        assert {other.positions[0]: count for other, count in found.at_words} == expected
        counts = [count for _, count in found.at_words]
        assert counts == sorted(counts, reverse=True)
        assert found.heads == 72 == sum(counts) + found.itself + found.special + found.rest


def test_the_most_decisive_heads_are_in_order_and_the_first_is_the_most_decisive(embedded: Backend) -> None:
    trace = embedded.trace(TEXTS[:1], attentions=True)
    assert trace.attentions is not None
    words = words_of(trace.sentences)
    word = next(each for each in words if each.text == "it")
    usual = np.random.default_rng(3).random((6, 12, 2 * REACH + 1), np.float32) / np.float32(5)
    found = decisive_heads(trace.attentions[:, 0], word, words, Habits(usual), 72)
    above = [look.weight - look.usual for look in found]
    assert above == sorted(above, reverse=True)
    assert len({(look.block, look.head) for look in found}) == 72
    assert found[0] == most_decisive(trace.attentions[:, 0], word, words, Habits(usual))
    for look in found:
        margins = {
            other.positions[0]: trace.attentions[look.block, 0, look.head, word.last, other.positions[0]]
            - usual[look.block, look.head, other.positions[0] - word.last + REACH]
            for other in words
            if other.is_content and other is not word
        }
        assert look.target == max(margins, key=lambda key: margins[key])


def test_a_word_that_stands_alone_has_no_decisive_head(embedded: Backend) -> None:
    trace = embedded.trace(["Hello"], attentions=True)
    assert trace.attentions is not None
    (word,) = words_of(trace.sentences)
    nothing = Habits(np.zeros((6, 12, 2 * REACH + 1), np.float32))
    assert decisive_heads(trace.attentions[:, 0], word, [word], nothing, 3) == ()
