"""Links of somebody who means harm, drawn by kind from a seed: whatever follows the server's name in an address.

Run as `python -m tests.support.hostile_links PLACE`: reads a case a line from its standard input and answers each, so that one
that ends the process, or takes gigabytes, is seen from outside.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import time
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

SECRET = "nobody-may-see-this"  # in files outside: no page and no message may show it
MOST_BYTES, MOST_SECONDS = 2 << 30, 30.0
ADDRESS_SPACE = 6 << 30  # of the process: what asks for more fails instead of stopping the machine
# Half characters, controls, markup, formulas, texts of a million letters, and what a reader could run, open or format.
TEXTS = (
    *("", " ", "\0", "\ud800", "\udfff", "\x1b[2J", "\u202e", "\u2028", "\ufeff", "a\tb"),
    *("\r\nSet-Cookie: a=b", "e\u0301" * 500),
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "](javascript:alert(1))", "$\\href{x}{y}$"),
    *("![](//x.example/a.png)", "=cmd|' /C calc'!A0", "@SUM(1)", "{0.__class__}", "%s%n", "${7*7}"),
    *("__import__('os').abort()", "' or 1=1 --", "$(id)", "`id`"),
    *("." * 5_000, " " * 5_000 + "x", "-" * 5_000, "(" * 3_000, "a.b. " * 1_000),
    *("क्षि" * 800, "ไทย" * 900, "👩‍👩‍👧" * 300, "مرحبا" * 500),
    *("1", "-1", "٣", "1e9", "9" * 400, "0x10", "1_000", "NaN", "inf", "true", "null", "[]", "None"),
)


def paths(outside: Path) -> list[str]:
    """How a link could name a file or a folder that was not given."""
    here = str(outside)
    return [
        *(here, f"{here}/secret.txt", f"{here}/", f"//{here}", f"file://{here}/secret.txt", f"{here}/../{outside.name}"),
        *(f"run:../../{outside.name}", f"run:{here}", "run:..", "run:a/../b:start", f"~/{outside.name}", "~root", "~nobody/x"),
        *("/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/mem", "..", ".", "\\\\host\\share", "//host/share"),
        *("C:\\", "c:/x", "nul", "a\0b", "/" + "a" * 5_000, "s3://x/y", "http://127.0.0.1/x", "../" * 40 + here.lstrip("/")),
    ]  # fmt: skip


class Links:
    """The kinds of links, each a method that draws the path and the query of one."""

    def __init__(self, seed: int, outside: Path) -> None:
        from dashboard.declared import table
        from dashboard.declared.table import SETTINGS

        self._chance, self._outside = random.Random(seed), outside
        self._settings = list(SETTINGS)
        self._keys = sorted({setting.short for setting in SETTINGS})
        self._views, self._pages = sorted(table.VIEWS), sorted(table.PAGE_BY_KEY)

    # What a browser sends for a text: each of its bytes may be written as % and two digits, or as it is.

    def _sent(self, text: str) -> str:
        content = text.encode("utf-8", "surrogatepass")
        return self._chance.choice((quote, quote_plus))(content, safe="")

    def _query(self, pairs: list[tuple[str, str]]) -> str:
        return "&".join(f"{self._sent(key)}={self._sent(text)}" for key, text in pairs)

    def _page(self) -> str:
        older = ("tokens", "model", "layers", "heatmaps", "attention", "map", "evaluate", "pairs", "why", "training")
        return self._chance.choice((*self._pages, *older))

    def _text(self) -> str:
        text = self._chance.choice(TEXTS)
        return text if self._chance.random() < 0.7 else text + self._chance.choice(TEXTS)

    def _value(self, setting: Any) -> list[str]:
        """A value that the setting takes, where that is known."""
        return ["1"] if setting.default is None else list(setting.show(setting.default))

    def texts(self) -> tuple[str, str]:
        """Texts that a reader could take for something else, for any settings of a view."""
        pairs = [("v", self._chance.choice(self._views))]
        pairs += [(self._chance.choice(self._keys), self._text()) for _ in range(self._chance.randint(1, 6))]
        return self._page(), self._query(pairs)

    def files(self) -> tuple[str, str]:
        """Files and folders of the server, wherever a model, a corpus, a lesson or a collection is named."""
        named = [setting.short for setting in self._settings if setting.name in ("model", "model2", "cross_encoder")]
        keys = [*named, "with", "corpus", "lesson", "gs", "v", "s", "run", self._chance.choice(self._keys)]
        drawn = [(self._chance.choice(keys), self._chance.choice(paths(self._outside))) for _ in range(3)]
        return self._page(), self._query([("v", self._chance.choice(self._views)), *drawn])

    def packed(self) -> tuple[str, str]:
        """A word of packed texts that is cut, unpacks to megabytes, nests, or holds what is no text."""
        chance = self._chance
        content: Any = chance.choice(
            [
                {"s": [self._text(), self._text()]},
                {"s": ["\ud800"] * 50, "\ud800": ["x"]},
                {"s": ["a" * chance.choice([20_000, 200_000, 3_000_000])]},
                {str(number): ["x"] for number in range(chance.choice([500, 20_000]))},
                {"s": ["x"] * 30_000},
                {"m": [chance.choice(paths(self._outside))], "s": [self._text()]},
                {"s": "x", "m": None},
                [[[]]],
                "x",
                10**400,
            ]
        )
        plain = json.dumps(content)
        if chance.random() < 0.2:
            plain = chance.choice(["[" * 50_000, '{"a":' * 20_000, "9" * 6_000, "NaN", plain[: len(plain) // 2], ""])
        deflate = zlib.compressobj(9, wbits=chance.choice([-15, -15, -15, 15]))
        word = base64.urlsafe_b64encode(deflate.compress(plain.encode()) + deflate.flush()).decode().rstrip("=")
        if chance.random() < 0.3:
            place = chance.randrange(len(word) + 1)
            word = chance.choice([word[:place], word[:place] + "AAAA" + word[place:], word[::-1], word + "!"])
        pairs = [(chance.choice(["zip", "z"]), chance.choice(["1", "1", "1", "2", ""]) + word)]
        if chance.random() < 0.5:
            pairs.append(("v", chance.choice(self._views)))
        return self._page(), self._query(pairs)

    def numbers(self) -> tuple[str, str]:
        """Numbers beyond every bound, in settings that take numbers and in those that do not."""
        numbers = [*map(str, (0, -1, 1, 63, 64, 65, 999, 10**6, 2**31, 2**63, 10**30)), *TEXTS[-13:]]
        pairs = [(self._chance.choice(self._keys), self._chance.choice(numbers)) for _ in range(8)]
        return self._page(), self._query([("v", self._chance.choice(self._views)), *pairs])

    def repeated(self) -> tuple[str, str]:
        """One key hundreds of times, or hundreds of keys."""
        count = self._chance.choice([2, 65, 300, 990])
        key = self._chance.choice(self._keys)
        pairs = [(key, self._text()[:20]) for _ in range(count)]
        if self._chance.random() < 0.5:
            pairs = [(f"{key}{number}{self._text()[:5]}", "x") for number in range(count)]
        return self._page(), self._query(pairs)

    def changed(self) -> tuple[str, str]:
        """A link that works, with some of its characters changed, cut or repeated."""
        from dashboard.declared import table

        key = self._chance.choice(self._views)
        pairs = [("v", key), *((each.short, text) for each in table.settings_in(key) for text in self._value(each))]
        sent = list(self._query(pairs))
        for _ in range(self._chance.randint(1, 6)):
            place = self._chance.randrange(len(sent) + 1)
            sent[place : place + self._chance.choice([0, 0, 1, 5])] = self._chance.choice(
                [
                    "%",
                    "%0",
                    "%00",
                    "%ed%a0%80",
                    "%ff",
                    "&",
                    "&&",
                    "=",
                    "+",
                    ";",
                    "#",
                    "?",
                    "%26",
                    "%3D",
                    "v=",
                    "😀",
                    "\\",
                ]
            )
        return table.place_of(key), "".join(sent)

    def places(self) -> tuple[str, str]:
        """Paths that no page has: out of the folder, to another server, with what ends a header."""
        page = self._chance.choice(
            ["..", "../../etc/passwd", "//x.example", "\\x.example", "a\r\nSet-Cookie: a=b", "tokens/..", "%2e%2e", "\0",
             "home/x", "static/../app.py", "a" * 5_000, "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "?", "#"]
        )  # fmt: skip
        return page, self._query([("v", self._chance.choice([*self._views, "x", ""])), ("view", self._text())])


KINDS: tuple[str, ...] = tuple(name for name in vars(Links) if not name.startswith("_"))


def draw(kind: str, seed: int, outside: Path) -> tuple[str, str]:
    """The path and the query of a case."""
    drawn: tuple[str, str] = getattr(Links(seed, outside), kind)()
    return drawn


def plant(place: Path) -> Path:
    """The folder of files that no link may show: a text, and a model of which every file has the secret."""
    outside = place / "outside"
    outside.mkdir(exist_ok=True)
    for name in ("secret.txt", "config.json", "tokenizer.json", "corpus.jsonl", "01-secret.md"):
        (outside / name).write_text(json.dumps({"text": SECRET, "model_type": SECRET}) + "\n")
    return outside


def opened(page: str, query: str, *, is_private: bool) -> dict[str, Any]:
    """What becomes of a link as the server and the first run of a session read it: what they say, and what they write."""
    from urllib.parse import parse_qs

    import pytest

    from dashboard import access, state
    from dashboard.declared import addresses, table
    from dashboard.declared.table import SETTINGS
    from dashboard.ui import messages

    page, query = addresses.corrected(page, query) or (page, query)
    if again := addresses.corrected(page, query):
        raise AssertionError(f"the address that was corrected is corrected again: {again}")
    asked = parse_qs(query, keep_blank_values=True)
    # Streamlit reads an address as a text in UTF-8, in which a byte that fits nowhere becomes U+FFFD.
    session: dict[str, Any] = {}

    class Address(dict[str, list[str]]):
        def get_all(self, key: str) -> list[str]:
            return self.get(key, [])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.session_state", session)
        patch.setattr("streamlit.query_params", Address(asked))
        patch.setattr(access, "is_private", lambda: is_private)
        shown = state.read_address(page if page in table.PAGE_BY_KEY else "home")
        notices = [messages.escape(text) for name in (None, shown) for text in state.current_notices(name)]
        written, _ = state.address_of(shown)
        values = {setting.name: state.peek(setting.name) for setting in SETTINGS}
        models = list(state.named_models().values())
        for texts in written.values():
            for text in texts:
                text.encode()  # which a half character prevents, as it would when the page is sent
    return {
        "notices": notices,
        "written": written,
        "values": repr(values),
        "models": models,
        "size": state.size_of(state._items(written)),
    }


def outcome(kind: str, seed: int, outside: Path) -> dict[str, Any]:
    """What becomes of a case on a public and on a private server: its faults, and what the session says."""
    page, query = draw(kind, seed, outside)
    started = time.process_time()
    faults, said = [], ""
    for is_private in (False, True):
        try:
            found = opened(page, query, is_private=is_private)
        except Exception as problem:  # noqa: BLE001 - whatever it is would be a red page
            faults.append(f"{type(problem).__name__}: {str(problem)[:300]}")
            continue
        seen = json.dumps(found)
        said += " ".join(found["notices"])[:500]
        if SECRET in seen:
            faults.append("it showed a file outside")
        if "<" in "".join(found["notices"]).replace("\\<", ""):
            faults.append("its markup is not escaped")
        if found["size"] > 8_000:
            faults.append("the session writes a longer address than it reads")
        if not is_private and any(model.startswith(("/", "~", ".")) for model in found["models"]):
            faults.append("a folder of a public server was taken for a model")
    seconds = time.process_time() - started
    if seconds > MOST_SECONDS / 10:  # a link is read before anything else is drawn
        faults.append(f"it took {seconds:.1f} s")
    return {"kind": kind, "seed": seed, "faults": faults, "said": said}


def serve(place: Path) -> None:
    """Read a case from each line of the standard input, and write what became of it, a line of JSON each."""
    import resource  # which Windows does not have

    def bytes_of(name: str) -> int:
        """What Linux says of this process itself: getrusage counts its parent's memory too, where that is larger."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1_024 * int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])

    outside = plant(place)
    resource.setrlimit(resource.RLIMIT_AS, (bytes_of("VmSize") + ADDRESS_SPACE, resource.RLIM_INFINITY))
    for line in sys.stdin:
        case = json.loads(line)
        answer = outcome(case["kind"], case["seed"], outside)
        peak = bytes_of("VmHWM")
        if peak > MOST_BYTES:
            answer["faults"].append(f"it took {peak:,} bytes")
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
