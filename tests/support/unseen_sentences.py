"""Ten sets of sentences that nobody had in view when the rule for the word to look at was written."""

# The sentences, the one whose word it is, and the words that are chosen in each of them in the included model.
UNSEEN: dict[str, tuple[list[str], int, list[str]]] = {
    "one word": (["Avalanche"], 0, ["Avalanche"]),
    "two equal sentences": (
        ["The kettle whistled twice.", "The kettle whistled twice."],
        0,
        ["whistled", "whistled"],
    ),
    "a German sentence": (["Die Frau, die die alte Uhr verkauft, kennt die Uhr nicht."], 0, ["Uhr"]),
    "sixty tokens": (
        [
            "On the last evening of the fair the clockmaker carried his heaviest clock through the rain, past the empty "
            "stalls and the sleeping horses, down to the harbour where the ferry waited, because a sailor had promised him "
            "that across the bay someone would finally buy it and pay enough for the long winter ahead."
        ],
        0,
        ["him"],
    ),
    "twice in one sentence": (["The seal broke the seal on the letter."], 0, ["seal"]),
    "inflected forms": (["She was running late.", "He runs a bakery.", "Tea is cold."], 0, ["running", "runs", "Tea"]),
    "a pronoun": (["The nurse thanked the patient because she had waited."], 0, ["she"]),
    "no content word": (["You and I are not that."], 0, ["not"]),
    "another script": (["Кошка видит кошку и собаку.", "Кошка спит."], 0, ["Кошка", "Кошка"]),
    "marks alone": (["!!! ...", "?"], 0, ["!", "?"]),
}
