"""Tokens, truncation and spans, against transformers' own tokenizers."""

from __future__ import annotations

import random
import threading
import unicodedata

import numpy as np
import pytest
from transformers import AutoTokenizer

from components.errors import InputError, ModelError
from components.model import tokenization as tokenization_module
from components.model.tokenization import Tokenization, check_texts, clean_text, invisible_characters
from components.words.unicode_words import has_pairs
from tests.support import tiny

KINDS = ("embedded", "bert", "multilingual", "roberta", "xlm-roberta", "mpnet")
# Words of the tiny vocabularies, subwords, accents, scripts, signs and spaces that tokenizers treat apart.
FRAGMENTS = [
    *("the", "bank", "cat", "river", "money", "walking", "Walked", "BANK", "élan", "É", "naïve", "Zürich", "e\u0301"),
    *("你好", "שלום", "مرحبا", "हिन्दी", "ﬁne", "½", "3.14", "can't", "co-op", "#tag", "@x", "<b>", "</s>", "_", "..."),
    *("!?", "🏦", "👩🏽‍🚀", "unaffable", "zzzz"),
]
SPACES = (" ", "  ", "\t", "\n", " \u00a0", "", "\u200b", "\u0000", "\u00ad", " \u202e")


def random_text(randomness: random.Random, words: int) -> str:
    pieces = []
    for _ in range(words):
        pieces += [randomness.choice(FRAGMENTS), randomness.choices(SPACES, [30, 2, 1, 1, 1, 4, 1, 1, 1, 1])[0]]
    return "".join(pieces) or "x"


@pytest.fixture(scope="module", params=KINDS)
def tokenizers(request, embedded_folder, tiny_folder):
    """Our tokenization and transformers' tokenizer, of the same files but sharing nothing."""
    folder = embedded_folder if request.param == "embedded" else tiny_folder(request.param)
    has_segments = request.param in {"embedded", "bert", "multilingual"}
    limit = 512 if request.param == "embedded" else 64
    return Tokenization(AutoTokenizer.from_pretrained(folder), limit, has_segments), AutoTokenizer.from_pretrained(
        folder
    )


def reference(tokenizer, text, pair=None, max_length=None):
    return tokenizer(
        text,
        pair,
        truncation=max_length is not None,
        max_length=max_length,
        padding=False,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_token_type_ids=True,
    )


def words_of(theirs, texts):
    """The words as transformers numbers them; in texts with Han each piece with such a letter is one, as ours are.

    Pieces of bytes of one letter stay together, and one of a space with the next.
    """
    if not any(is_han(text) for text in texts):
        return theirs.word_ids()
    found = []
    before = [None, None]
    numbers = [-1, -1]
    for word, side, (start, end) in zip(
        theirs.word_ids(), theirs.sequence_ids(), theirs["offset_mapping"], strict=True
    ):
        if word is None:
            found.append(None)
            continue
        here = word, start, end, is_han(texts[side][start:end])
        last = before[side]
        shares = last is not None and (start < last[2] or not texts[side][last[1] : last[2]].strip())
        if last is None or last[0] != word or ((last[3] or here[3]) and not shares):
            numbers[side] += 1
        before[side] = here
        found.append(numbers[side])
    return found


def is_han(text):
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


def assert_same(ours, theirs, tokenization):
    assert [token.id for token in ours.tokens] == theirs["input_ids"]
    assert [(token.start, token.end) for token in ours.tokens] == [tuple(span) for span in theirs["offset_mapping"]]
    assert [int(token.special) for token in ours.tokens] == theirs["special_tokens_mask"]
    assert [token.word for token in ours.tokens] == words_of(theirs, (ours.text, ours.pair or ""))
    assert [token.in_pair for token in ours.tokens] == [side == 1 for side in theirs.sequence_ids()]
    assert [token.position for token in ours.tokens] == list(range(len(ours)))
    if tokenization.has_segments:
        assert [token.segment for token in ours.tokens] == theirs["token_type_ids"]
    else:
        assert {token.segment for token in ours.tokens} == {0}


def test_single_texts_are_cut_as_transformers_cuts_them(tokenizers):
    tokenization, tokenizer = tokenizers
    randomness = random.Random(0)
    for _ in range(60):
        text = random_text(randomness, randomness.randint(1, 12))
        max_length = randomness.randint(3, 40)
        ours = tokenization.tokenize(text, max_length=max_length)
        assert_same(ours, reference(tokenizer, text, max_length=max_length), tokenization)


def test_pairs_are_cut_as_transformers_cuts_them(tokenizers):
    tokenization, tokenizer = tokenizers
    randomness = random.Random(1)
    least = tokenizer.num_special_tokens_to_add(pair=True) + 1
    for _ in range(60):
        text, pair = (random_text(randomness, randomness.randint(1, 8)) for _ in range(2))
        max_length = randomness.randint(least, 40)
        ours = tokenization.tokenize(text, pair, max_length)
        assert_same(ours, reference(tokenizer, text, pair, max_length), tokenization)


def test_only_the_second_text_is_cut_as_transformers_cuts_it(tokenizers):
    tokenization, tokenizer = tokenizers
    randomness = random.Random(5)
    least = tokenizer.num_special_tokens_to_add(pair=True) + 1
    refused = 0
    for _ in range(80):
        text, pair = (random_text(randomness, randomness.randint(1, 6)) for _ in range(2))
        max_length = randomness.randint(least, 30)
        options = {"truncation": "only_second", "max_length": max_length}
        whole = tokenizer(text, pair, truncation=False)
        room = max_length - (whole.sequence_ids().count(0) + tokenizer.num_special_tokens_to_add(pair=True))
        if room < 1 and len(whole["input_ids"]) > max_length:  # transformers raises, or leaves the pair too long
            refused += 1
            with pytest.raises(InputError, match="has room for"):
                tokenization.tokenize(text, pair, **options)
            with pytest.raises(InputError, match="has room for"):
                tokenization.encode_pairs([text], [pair], max_length, "only_second")
            continue
        theirs = tokenizer(
            text,
            pair,
            **options,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_token_type_ids=True,
        )
        ours = tokenization.tokenize(text, pair, **options)
        assert_same(ours, theirs, tokenization)
        assert not any(not part.of_pair for part in ours.dropped)
        ((ids, _),) = tokenization.encode_pairs([text], [pair], max_length, "only_second")
        assert ids == theirs["input_ids"]
    assert 5 < refused < 60


def test_many_pairs_at_once_are_the_same_as_each_alone(tokenizers):
    tokenization, tokenizer = tokenizers
    randomness = random.Random(7)
    texts, pairs = ([random_text(randomness, randomness.randint(1, 8)) for _ in range(30)] for _ in range(2))
    for max_length in (12, 20, None):
        together = tokenization.encode_pairs(texts, pairs, max_length)
        alone = [tokenization.tokenize(text, pair, max_length) for text, pair in zip(texts, pairs, strict=True)]
        assert [ids for ids, _ in together] == [[token.id for token in row.tokens] for row in alone]
        given, expected = tokenization.padded(*map(list, zip(*together, strict=True))), tokenization.arrays(alone)
        np.testing.assert_array_equal(given[0], expected[0])
        np.testing.assert_array_equal(given[1], expected[1])
        if "token_type_ids" in tokenizer.model_input_names and tokenization.has_segments:
            np.testing.assert_array_equal(given[2], expected[2])
        else:
            assert given[2] is None or not given[2].any()


def test_every_small_combination_of_lengths_is_cut_as_transformers_cuts_it(tokenizers):
    """Which text gives way, and which keeps the odd token, at every balance of the two."""
    tokenization, tokenizer = tokenizers
    least = tokenizer.num_special_tokens_to_add(pair=True) + 1
    for first in range(1, 7):
        for second in range(1, 7):
            text, pair = "a" + " a" * (first - 1), "x" + " x" * (second - 1)
            for max_length in range(least, least + 10):
                ours = tokenization.tokenize(text, pair, max_length)
                theirs = reference(tokenizer, text, pair, max_length)
                assert [token.id for token in ours.tokens] == theirs["input_ids"], (first, second, max_length)


def test_what_was_dropped_is_exactly_what_is_missing(tokenizers):
    tokenization, tokenizer = tokenizers
    randomness = random.Random(2)
    cuts = 0
    for _ in range(75):
        text, pair = (random_text(randomness, randomness.randint(1, 10)) for _ in range(2))
        pair = pair if randomness.random() < 0.5 else None
        ours = tokenization.tokenize(text, pair, randomness.randint(6, 30))
        # Uncut, from the other tokenizer: its own limit does not apply when truncation is off.
        whole = [reference(tokenizer, source) for source in (text, pair) if source is not None]
        lost = {cut.of_pair: cut for cut in ours.dropped}
        assert len(lost) == len(ours.dropped)
        for of_pair, source in enumerate(source for source in (text, pair) if source is not None):
            kept = [token for token in ours.tokens if not token.special and token.in_pair == bool(of_pair)]
            full = [
                (number, span)
                for number, span, special in zip(
                    whole[of_pair]["input_ids"],
                    whole[of_pair]["offset_mapping"],
                    whole[of_pair]["special_tokens_mask"],
                    strict=True,
                )
                if not special
            ]
            cut = lost.get(bool(of_pair))
            if cut is None:
                assert [token.id for token in kept] == [number for number, _ in full]
                continue
            cuts += 1
            assert source[: cut.start] + cut.text == source
            assert len(kept) + cut.tokens == len(full)
            # The first piece that was cut lies at the head of the dropped text, after its spaces if any.
            first_cut_start = full[len(kept)][1][0]
            assert cut.start <= first_cut_start
            assert source[cut.start : first_cut_start].strip() == ""
    assert cuts > 15


def test_nothing_is_dropped_when_everything_fits(tokenizers):
    tokenization, tokenizer = tokenizers
    length = len(tokenizer("the bank")["input_ids"])
    assert tokenization.tokenize("the bank", max_length=length).dropped == ()
    (cut,) = tokenization.tokenize("the bank", max_length=length - 1).dropped
    assert cut.tokens == 1
    assert cut.of_pair is False


def test_a_character_of_several_pieces_is_dropped_whole():
    """Byte-level pieces can be cut inside a character; what is shown as dropped then begins with it."""
    tokenizer = tiny.byte_level_tokenizer()
    tokenization = Tokenization(tokenizer, 64, False)
    text = "a你b"  # a, three bytes of 你, b
    kept = tokenization.tokenize(text, max_length=5)  # <s> a and two of the bytes </s>
    assert [token.end for token in kept.tokens] == [0, 1, 2, 2, 0]
    assert [(cut.text, cut.start, cut.tokens) for cut in kept.dropped] == [("你b", 1, 2)]


def test_spans_point_at_the_characters_typed(embedded_folder):
    tokenization = Tokenization(AutoTokenizer.from_pretrained(embedded_folder), 512, True)
    text = "  ÉLAN vital:\tthe banks' unaffable 🏦 naïveté"
    sentence = tokenization.tokenize(text)
    surfaces = [(sentence.tokens[i].piece, sentence.surface(i)) for i in range(len(sentence))]
    assert surfaces[0] == ("[CLS]", "")
    assert surfaces[-1] == ("[SEP]", "")
    assert surfaces[1:-1] == [
        ("el", "ÉL"),
        ("##an", "AN"),
        ("vital", "vital"),
        (":", ":"),
        ("the", "the"),
        ("banks", "banks"),
        ("'", "'"),
        ("una", "una"),
        ("##ffa", "ffa"),
        ("##ble", "ble"),
        ("[UNK]", "🏦"),
        ("naive", "naïve"),
        ("##te", "té"),
    ]


def test_byte_level_spans_leave_the_space_out():
    tokenization = Tokenization(tiny.byte_level_tokenizer(), 64, False)
    sentence = tokenization.tokenize("x bank banker", "a bank")
    surfaces = [sentence.surface(token.position) for token in sentence.tokens if "bank" in token.piece]
    assert surfaces == ["bank", "bank", "bank"]


def test_pieces_of_a_word_cover_it(tokenizers):
    tokenization, _ = tokenizers
    text = "the unaffable cat"
    sentence = tokenization.tokenize(text)
    inside = next(token.position for token in sentence.tokens if token.start <= 6 < token.end)
    assert sentence.word_text(inside).strip() in {"unaffable", "the unaffable cat"}
    assert inside in sentence.word_positions(inside)


def test_sixteen_threads_with_mixed_lengths_get_no_wrong_result(embedded_folder):
    """A fast tokenizer shared between threads silently mixes up their truncation; ours must not."""
    tokenization = Tokenization(AutoTokenizer.from_pretrained(embedded_folder), 512, True)
    randomness = random.Random(3)
    texts = [random_text(randomness, 14) for _ in range(20)]
    jobs = [(text, None if i % 3 else texts[i - 1], length) for i, text in enumerate(texts) for length in range(16, 21)]
    expected = {job: tokenization.tokenize(*job) for job in jobs}
    assert len({len(sentence) for sentence in expected.values()}) >= 5
    wrong = []
    start = threading.Barrier(16)

    def work(seed):
        order = random.Random(seed).choices(jobs, k=100)
        start.wait()
        for job in order:
            if tokenization.tokenize(*job) != expected[job]:
                wrong.append(job)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_tokenizers_own_settings_do_not_matter(embedded_folder):
    """The embedded tokenizer.json pads and truncates to 128; a change after construction does not reach us either."""
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder)
    tokenizer.backend_tokenizer.enable_truncation(5)
    tokenizer.backend_tokenizer.enable_padding(length=9)
    tokenization = Tokenization(tokenizer, 512, True)
    text = "word " * 200
    assert len(tokenization.tokenize(text)) == 202
    tokenizer.backend_tokenizer.enable_truncation(4)
    assert len(tokenization.tokenize(text)) == 202
    assert len(tokenization.tokenize("one")) == 3


def test_arrays_equal_transformers_padding(tokenizers):
    tokenization, tokenizer = tokenizers
    texts = ["the bank", "the cat sat on the bank of the river", "a"]
    pairs = ["a cat", "x", "the river"]
    for seconds in (None, pairs):
        sentences = [tokenization.tokenize(text, seconds[i] if seconds else None) for i, text in enumerate(texts)]
        ids, mask, segments = tokenization.arrays(sentences)
        theirs = tokenizer(texts, seconds, padding=True, return_token_type_ids=True, return_tensors="np")
        np.testing.assert_array_equal(ids, theirs["input_ids"])
        np.testing.assert_array_equal(mask, theirs["attention_mask"])
        if tokenization.has_segments:
            np.testing.assert_array_equal(segments, theirs["token_type_ids"])
        else:
            assert segments is None


def test_decoding_equals_transformers(tokenizers):
    tokenization, tokenizer = tokenizers
    ids = tokenizer("The  Bank, walking 你")["input_ids"]
    assert tokenization.decode(ids) == tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    assert tokenization.decode(ids, skip_special=True) == tokenizer.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


def test_the_vocabulary_is_in_order_of_id(tokenizers):
    tokenization, tokenizer = tokenizers
    assert len(tokenization.vocabulary) == len(tokenizer)
    for number in range(0, len(tokenizer), 37):
        assert tokenization.vocabulary[number] == tokenizer.convert_ids_to_tokens(number)
    for role, (piece, number) in tokenization.special_tokens.items():
        assert getattr(tokenizer, f"{role}_token_id") == number
        assert tokenization.vocabulary[number] == piece
    assert (tokenization.pad_id, tokenization.unknown_id, tokenization.mask_id) == (
        tokenizer.pad_token_id,
        tokenizer.unk_token_id,
        tokenizer.mask_token_id,
    )


def test_the_tighter_of_two_limits_counts():
    def limit(tokenizers_own, positions):
        tokenizer = tiny.wordpiece_tokenizer()
        tokenizer.model_max_length = tokenizers_own
        return Tokenization(tokenizer, positions, True).max_length

    assert limit(10, 64) == 10
    assert limit(64, 20) == 20
    assert limit(int(1e30), 20) == 20  # transformers' way to say that the tokenizer knows no limit


@pytest.mark.parametrize(("pair", "least"), [(None, 3), ("a cat", 4)])
def test_a_length_outside_the_models_range_is_refused(pair, least):
    tokenization = Tokenization(tiny.wordpiece_tokenizer(), 64, True)
    assert len(tokenization.tokenize("the cat sat", pair, least)) == least
    for length in (least - 1, 0, -1, 65):
        with pytest.raises(InputError) as caught:
            tokenization.tokenize("the cat sat", pair, length)
        assert str(length) in caught.value.problem
        assert f"{least} to 64" in caught.value.expected


def test_a_slow_tokenizer_is_refused():
    class Slow:
        backend_tokenizer = None

    with pytest.raises(ModelError) as caught:
        Tokenization(Slow(), 64, True)
    assert caught.value.kind == "unsupported"


@pytest.mark.parametrize(
    ("texts", "pairs", "given"),
    [
        ([], None, "no sentence"),
        ([""], None, "Sentence 1 is empty"),
        (["a", " \t\n\u3000"], None, "Sentence 2 is empty"),
        (["a"], [" "], "Sentence 2 is empty"),
        (["a"] * 65, None, "65 sentences"),
        (["a" * 20_001], None, "20,001 characters"),
        (["a" * 10_000, "b"], ["c" * 10_000, None], "20,001 characters"),
        (["fine", "half \ud83d of one"], None, "Sentence 2 has an invalid character (U+D83D) at position 6"),
        (["\udfff"], None, "an invalid character (U+DFFF)"),
    ],
)
def test_texts_that_cannot_be_shown(texts, pairs, given):
    with pytest.raises(InputError) as caught:
        check_texts(texts, pairs)
    assert given in caught.value.problem
    assert str(caught.value) == f"{caught.value.problem} {caught.value.expected} {caught.value.fix}"
    assert caught.value.expected.endswith(".")
    assert caught.value.fix.endswith(".")


def test_misuse_is_no_message_for_people():
    with pytest.raises(TypeError, match="not one string"):
        check_texts("one string")
    with pytest.raises(ValueError, match="2 texts but 1 pairs"):
        check_texts(["a", "b"], ["c"])


def test_clean_text_replaces_half_characters_only():
    assert clean_text("a\ud83db") == "a\ufffdb"
    assert clean_text("🏦 é\u0000") == "🏦 é\u0000"


def test_invisible_characters_are_named():
    assert invisible_characters("a\u200bb\u0000\u202ec\n\td👩‍🚀") == ["U+200B", "U+0000", "U+202E"]


def test_in_scripts_without_spaces_each_piece_is_a_word(tokenizers):
    """Thai and kana: where a tokenizer takes a sentence for one word, nothing on a page of words could be told apart."""
    tokenization, _ = tokenizers
    for text in ("ฉันฝากเงินที่ธนาคาร the bank", "ぎんこうはえき。", "iPhoneを買う", "ភាសាខ្មែរ", "မြန်မာစာ", "ພາສາລາວ"):
        sentence = tokenization.tokenize(text)
        for token in sentence.tokens:
            own = sentence.word_positions(token.position)
            typed = sentence.word_text(token.position)
            if len(own) > 1 and has_pairs(typed):  # bytes of one letter, or a letter with a mark in a piece of its own
                spans = [(sentence.tokens[position].start, sentence.tokens[position].end) for position in own]
                letters = [letter for letter in typed.strip() if unicodedata.category(letter)[0] != "M"]
                assert len(letters) <= max(end - start for start, end in spans), typed
        numbers = [token.word for token in sentence.tokens if token.word is not None]
        assert sorted(set(numbers)) == list(range(max(numbers) + 1))
        assert numbers == sorted(numbers)


def test_as_much_as_the_limits_allow_is_shown(monkeypatch):
    monkeypatch.setattr(tokenization_module, "MAX_SENTENCES", 2)
    monkeypatch.setattr(tokenization_module, "MAX_CHARACTERS", 10)
    check_texts(["bank", "river"], ["a", None])
    with pytest.raises(InputError, match="There are 3 sentences"):
        check_texts(["a", "b", "c"])
    with pytest.raises(InputError, match="have 11 characters"):
        check_texts(["bank", "river"], ["a", "b"])
