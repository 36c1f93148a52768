"""How poolings, durations, sizes and counts are written for people."""

from __future__ import annotations

from components.model.trace import POOLING_NAMES

__all__ = [
    "NUMBERS_EXPLAINED",
    "POOLINGS_EXPLAINED",
    "POOLING_NAMES",
    "SIMILARITY_HELP",
    "SIMILARITY_NAMES",
    "counted",
    "duration",
    "shortened",
    "size",
]

POOLINGS_EXPLAINED = {
    "mean": "Mean of all tokens",
    "cls": "[CLS], the first token",
    "max": "Maximum in each dimension",
    "own": "The model's own vector",
}
SIMILARITY_NAMES = {"cosine": "Cosine", "dot": "Dot product"}
SIMILARITY_HELP = (
    "Cosine: how nearly two vectors point in the same direction, without their lengths. Dot product: the cosine times both "
    "lengths."
)
NUMBERS_EXPLAINED = "A number is a sentence's place in the corpus, counted from 0."


def duration(seconds: float) -> str:
    """A time in words: "12 s", "3 min", "1 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def size(count: float) -> str:
    """Bytes in words: "3 MB", "1.20 GB"."""
    return f"{max(1, round(count / 1e6)):,} MB" if count < 0.5e9 else f"{count / 1e9:.2f} GB"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 query", "1,200 queries"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def shortened(text: str, most: int) -> str:
    """The beginning of a text in one line, at most `most` characters and an ellipsis."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"


INCLUDED_CROSS_ENCODER = (
    "**The included cross-encoder ranks worse than the included model:** over all headlines of the demo corpus, it lowers "
    "Recall@1 from 97 to 90 %."
)
