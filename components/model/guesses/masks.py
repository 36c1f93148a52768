"""Masks as people write them, and words as pieces that a model can guess."""

from __future__ import annotations

import re
from collections.abc import Sequence

from components.errors import InputError
from components.model.tokenization import Tokenization
from components.model.trace import TokenizedSentence

# In upper or lower case, whatever the model's own mask looks like; two or more underscores that stand alone; and three or more
# at the end of a word, where a space was forgotten.
WRITTEN = (r"\[mask\]", "<mask>", r"(?<!\w)_{2,}(?!\w)", r"(?<=[^\W_])_{3,}(?!\w)")
# What stands alone where a word would: dots, one underscore, and brackets around either or around nothing.
_ALONE = re.compile(r"(?<!\S)(?:_|\.{3,}|…|[\[(] ?(?:\.{3,}|…|_*) ?[\])])(?=[.,;:!?]?(?!\S))")


def with_masks(text: str, tokenization: Tokenization) -> str:
    """The text with every hole as this model's tokenizer writes its mask (see `holes`).

    A tokenizer without a mask leaves the text as it is.
    """
    own = mask_of(tokenization)
    if own is None:
        return text
    parts, end = [], 0
    for start, stop in holes(text, tokenization):
        parts += [text[end:start], own]
        end = stop
    return "".join([*parts, text[end:]])


def holes(text: str, tokenization: Tokenization) -> tuple[tuple[int, int], ...]:
    """Where a text has a hole that is to be guessed: the beginning and end of each, in characters.

    Besides the model's own mask these are "[mask]" and "<mask>", in any case, "__": two or more underscores that no
    letter or digit touches, and "___": three or more at the end of a word. A tokenizer without a mask has none.
    """
    own = mask_of(tokenization)
    if own is None:
        return ()
    return tuple(found.span() for found in re.finditer("|".join((re.escape(own), *WRITTEN)), text, re.IGNORECASE))


def with_gaps(text: str) -> str:
    """A sentence in which "...", "_", "[ ]" and the like are "___" where they stand alone, as a word would: a hole.

    For what a person types as one sentence; in the texts of a corpus dots are a pause. Dots at the end are its full stop too,
    without which a model guesses that.
    """
    return _ALONE.sub(lambda gap: "___." if gap.end() == len(text) and gap[0][-1] in ".…" else "___", text)


def carried(character: int, here: Sequence[tuple[int, int]], there: Sequence[tuple[int, int]]) -> int:
    """A character's place in a text in which its holes, `here`, are written otherwise, `there`; of a hole its beginning."""
    shift = 0
    for (start, end), (new_start, new_end) in zip(here, there, strict=True):
        if character < start:
            break
        if character < end:
            return new_start
        shift = new_end - end
    return character + shift


def has_hole(text: str) -> bool:
    """Whether a text has a hole in one of the spellings that every model understands."""
    return re.search("|".join(WRITTEN), text, re.IGNORECASE) is not None


def mask_of(tokenization: Tokenization) -> str | None:
    """How the tokenizer writes its mask; None if it has none."""
    if tokenization.mask_id is None:
        return None
    return tokenization.special_tokens["mask"][0]


def typed_masks(sentence: TokenizedSentence, tokenization: Tokenization) -> tuple[int, ...]:
    """The positions at which a text itself has a mask."""
    return tuple(token.position for token in sentence.tokens if token.id == tokenization.mask_id)


def check_hidden(sentence: TokenizedSentence, positions: tuple[int, ...], tokenization: Tokenization) -> None:
    """Raise InputError unless the tokens at these positions can be hidden, IndexError where there is no token."""
    for position in positions:
        if not 0 <= position < len(sentence):
            raise IndexError(f"position {position} is not within 0..{len(sentence) - 1}")
        if sentence.tokens[position].special:
            raise InputError(
                f"{sentence.tokens[position].piece} at position {position} is a special token.",
                "Only tokens of the text itself can be masked.",
                "Pick another token.",
            )
    if positions and tokenization.mask_id is None:
        raise no_mask()


def no_mask() -> InputError:
    """The refusal of a tokenizer without a mask."""
    return InputError(
        "This model's tokenizer has no mask token.",
        "Masking needs a model that was trained to predict masked tokens.",
        "Pick for example BERT base or RoBERTa base.",
    )


def word_id(word: str, tokenization: Tokenization, text: str | None = None) -> int | None:
    """The id of the piece that a word is; None for a word of several pieces, or of characters that the model does not know.

    In a `text` with one mask, of the piece that it is there: byte-level pieces differ behind a space and at a text's beginning.
    """
    word = word.strip()
    own = mask_of(tokenization)
    if not word:
        return None
    if text is not None and own is not None:
        before = tokenization.tokenize(text, max_length=tokenization.max_length)
        after = tokenization.tokenize(text.replace(own, word, 1), max_length=tokenization.max_length)
        masks = typed_masks(before, tokenization)
        if len(before) == len(after) and masks:
            changed = after.tokens[masks[0]]
            if changed.id not in (tokenization.mask_id, tokenization.unknown_id):
                return changed.id
    for written in (f" {word}", word):
        pieces = [token for token in tokenization.tokenize(written).tokens if not token.special]
        if len(pieces) == 1 and pieces[0].id not in (tokenization.mask_id, tokenization.unknown_id):
            return pieces[0].id
    return None
