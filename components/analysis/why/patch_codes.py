"""The activations that can be replaced, and the short names that addresses have for them. It imports no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.catalog import ModelFacts
    from components.model.interventions.activations import Site

SITES: dict[str, Site] = {"t": "layer", "h": "head", "a": "attention", "f": "feed_forward"}
_NUMBER = "(0|[1-9][0-9]{0,2})"  # no leading zeros, so that an activation has one name
_CODE = re.compile(rf"([th]){_NUMBER}\.{_NUMBER}|([af]){_NUMBER}")


@dataclass(frozen=True)
class Patch:
    """One activation that is replaced: a token at a layer, a head, or what a part of a block adds to all tokens."""

    site: Site
    number: int  # a layer for a token, else a block
    index: int | None = None  # the position of a token in B, or the number of a head

    @property
    def code(self) -> str:
        """A short name: "t4.2" is token 2 at layer 4, "h3.5" head 5 of block 3, "a2" and "f2" the parts of block 2."""
        letter = next(letter for letter, site in SITES.items() if site == self.site)
        return f"{letter}{self.number}" + ("" if self.index is None else f".{self.index}")

    @classmethod
    def parse(cls, code: str) -> Patch:
        """The patch of a code. Raises ValueError."""
        match = _CODE.fullmatch(code)
        if match is None:
            raise ValueError(f"{code[:20]!r} names no activation")
        letter = match[1] or match[4]
        return cls(SITES[letter], int(match[2] or match[5]), None if match[3] is None else int(match[3]))

    def exists(self, facts: ModelFacts, positions: Sequence[int]) -> bool:
        """Whether a model has this activation, and for a token whether it is at one of these positions."""
        if self.site == "layer":
            return self.number <= facts.layers and self.index in positions
        return self.number < facts.layers and (self.index is None or self.index < facts.heads)


def is_code(text: str) -> bool:
    """Whether a text is the code of an activation."""
    return _CODE.fullmatch(text) is not None
