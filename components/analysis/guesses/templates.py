"""One mask in a sentence with many fillings: what changes in the guesses when one word of the sentence does.

    The [nurse, doctor, pilot] said that [MASK] was tired.

A list in square brackets, its fillings separated by commas, stands in one place of a template; [MASK] is no such list. Each
filling gives a sentence, and the model guesses its mask. Asked words get a table of probabilities, filling by word.

One template is an anecdote: another wording of it often gives another order (Seshadri et al. 2022, "Quantifying Social Biases
Using Templates is Unreliable"). So several templates with the same fillings can be asked at once, whose probabilities are
averaged. And a probability alone says little: a word may be likely at this place whatever the filling is. Control words are
fillings of no interest of their own, such as "person" or "neighbour", that show what the template alone does (as the prior of
Kurita et al. 2019 does). Without them, or with one template only, the record calls itself an anecdote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float64, Int64, arrays_of, read_only
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress
from components.model.guesses.masks import no_mask, typed_masks, with_masks, word_id

if TYPE_CHECKING:
    from components.model.backend import Backend

MOST_FILLINGS = 32  # control words included
MOST_TEMPLATES = 8
MOST_WORDS = 32
_LIST = re.compile(r"\[([^\[\]]*,[^\[\]]*)\]")
EXAMPLE = "The [nurse, doctor, pilot] said that [MASK] was tired."


@dataclass(frozen=True)
class Template:
    """A sentence with one place that is filled."""

    before: str
    after: str
    fillings: tuple[str, ...]  # each once, as typed

    def filled(self, filling: str) -> str:
        """The sentence with this filling."""
        return f"{self.before}{filling}{self.after}"


@dataclass(frozen=True, eq=False)
class TemplateGuesses:
    """The guesses at the mask of each filled sentence. Arrays are read-only; probabilities are 0..1."""

    templates: tuple[Template, ...]
    fillings: tuple[str, ...]  # those of the templates, then the control words
    controls: tuple[str, ...]  # the last of `fillings`
    words: tuple[str, ...]
    ids: Int64  # [template, filling, k]: most probable first
    probabilities: Float64  # [template, filling, k]
    word_ids: (
        Int64  # [template, word]; -1 for a word that is not one piece of the vocabulary, so that no mask can be it
    )
    word_probabilities: Float64  # [template, filling, word]; NaN for -1
    word_ranks: Int64  # [template, filling, word]; 1 is first; a tie counts against it; 0 for -1

    def __post_init__(self) -> None:
        for array in arrays_of(self):
            read_only(array)

    @property
    def mean_probabilities(self) -> Float64:
        """The mean over the templates, [filling, word]; NaN for a word that is not one piece in one of them."""
        return read_only(self.word_probabilities.mean(axis=0))

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """The asked words that are not one piece in some template: they have no probability."""
        return tuple(word for word, ids in zip(self.words, self.word_ids.T, strict=True) if (ids < 0).any())

    @property
    def is_anecdote(self) -> bool:
        """Whether there is one template only, or no control word: nothing in general follows then."""
        return len(self.templates) == 1 or not self.controls


def read_template(text: str) -> Template:
    """A template from its text. Raises InputError unless it has one list of fillings in square brackets."""
    lists = list(_LIST.finditer(text))
    if len(lists) != 1:
        raise InputError(
            f"The template has {len(lists) or 'no'} list{'s' if len(lists) > 1 else ''} of words in square brackets.",
            "It needs one list, separated by commas, in one place.",
            f"Write for example: {EXAMPLE}",
        )
    (found,) = lists
    fillings = _different(found[1].split(","))
    if not fillings:
        raise InputError(
            "The list of words in square brackets is empty.",
            "At least one word is needed.",
            f"Write for example: {EXAMPLE}",
        )
    return Template(text[: found.start()], text[found.end() :], fillings)


def template_guesses(
    backend: Backend,
    templates: Sequence[str],
    words: Sequence[str] = (),
    controls: Sequence[str] = (),
    k: int = 5,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> TemplateGuesses:
    """The `k` first guesses for each filling of each template, and the probabilities of the asked `words`.

    All templates have the same fillings, in any order; `controls` are more fillings. `progress(done, total)` counts sentences.
    Raises InputError for a text that is no template, for templates that differ in their fillings, for one without exactly one
    mask, and for more than MOST_FILLINGS, MOST_TEMPLATES or MOST_WORDS; ModelError for a model without a masked-LM head;
    ValueError for k < 1; Stopped.
    """
    backend.loaded.masked_lm()
    if backend.tokenization.mask_id is None:
        raise no_mask()
    if not templates:
        raise InputError("There is no template.", "At least one is needed.", f"Write for example: {EXAMPLE}")
    _at_most(len(templates), MOST_TEMPLATES, "templates")
    read = [read_template(with_masks(text, backend.tokenization)) for text in templates]
    own = read[0].fillings
    for number, template in enumerate(read[1:], start=2):
        if set(template.fillings) != set(own):
            raise InputError(
                f"Template {number} has other words in its list than the first.",
                "A mean over templates needs the same words in each.",
                f"Write [{', '.join(own)}] into each.",
            )
    others = tuple(word for word in _different(controls) if word not in own)
    fillings, asked_words = (*own, *others), _different(words)
    _at_most(len(fillings), MOST_FILLINGS, "fillings, control words included")
    _at_most(len(asked_words), MOST_WORDS, "asked words")
    total, found, ids_of_words = len(read) * len(fillings), [], []
    for number, template in enumerate(read):
        texts = [template.filled(filling) for filling in fillings]
        _check_masks(backend, texts, number + 1, max_length)
        asked = [_id(word, backend, texts[0]) for word in asked_words]
        counted = partial(_progress_from, progress, number * len(fillings), total)
        found.append(backend.guesses_at_masks(texts, k, asked, max_length, counted, is_stopped))
        ids_of_words.append(asked)
    shape = (len(read), len(fillings))
    return TemplateGuesses(
        tuple(read),
        fillings,
        others,
        asked_words,
        ids=np.array([[one.ids[0, 0] for one in row] for row in found], np.int64),
        probabilities=np.array([[one.probabilities[0, 0] for one in row] for row in found]),
        word_ids=np.array(ids_of_words, np.int64).reshape(len(read), len(asked_words)),
        word_probabilities=np.array([[one.asked_probabilities[0, 0] for one in row] for row in found]).reshape(
            *shape, -1
        ),
        word_ranks=np.array([[one.asked_ranks[0, 0] for one in row] for row in found], np.int64).reshape(*shape, -1),
    )


def _progress_from(progress: ReportProgress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)


def _different(words: Sequence[str]) -> tuple[str, ...]:
    """The words without spaces around them, each once, without empty ones."""
    return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))


def _id(word: str, backend: Backend, text: str) -> int:
    found = word_id(word, backend.tokenization, text)
    return -1 if found is None else found


def _check_masks(backend: Backend, texts: Sequence[str], number: int, max_length: int | None) -> None:
    """Raise InputError unless every filled sentence has one mask that is read."""
    for text in texts:
        (sentence,) = backend.tokenize([text], max_length=max_length)
        count = len(typed_masks(sentence, backend.tokenization))
        if count != 1:
            raise InputError(
                f"Template {number} has {count or 'no'} mask{'s' if count > 1 else ''} among the tokens that are read.",
                "The model guesses one place of it.",
                f"Write [MASK] once, for example: {EXAMPLE}",
            )


def _at_most(count: int, most: int, of_what: str) -> None:
    if count > most:
        raise InputError(
            f"There are {count} {of_what}.", f"At most {most} can be compared at once.", "Remove some of them."
        )
