"""Our browser components called as Streamlit calls them: again at every change, and only the last cleanup at the end."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.places import ROOT
from tests.support.stage import Stage


def module(name: str) -> str:
    """A component's script as an address that a page can import."""
    return "data:text/javascript," + quote((ROOT / "assets" / "web" / f"{name}.js").read_text(encoding="utf-8"))


def test_the_tiles_keep_one_observer_and_none_at_the_end(look: Stage) -> None:
    assert look.sheet().evaluate(
        """async (address) => {
          const watching = new Set(), counts = [];
          window.ResizeObserver = class {
            observe() { watching.add(this); }
            disconnect() { watching.delete(this); }
          };
          const { default: draw } = await import(address);
          const parentElement = document.createElement("div");
          parentElement.innerHTML = "<p class='axis'><span class='key'></span></p>" +
            "<div><canvas></canvas><p class='hint'></p></div>";
          document.body.append(parentElement);
          const layout = { blocks: 1, heads: 1, size: 1, hints: [""], selected: [0, 0], scale: 1, height: 300, label: "",
            legend: ["", "", ""], numbers: [] };
          const text = new TextEncoder().encode(JSON.stringify(layout));
          const data = new Uint8Array(4 + text.length + 768 + 1);
          new DataView(data.buffer).setUint32(0, text.length, true);
          data.set(text, 4);
          let cleanup;
          for (let run = 0; run < 3; run++) {
            cleanup = draw({ data, parentElement, setTriggerValue: () => {} });
            counts.push(watching.size);
          }
          cleanup();
          return [...counts, watching.size];
        }""",
        module("heads"),
    ) == [1, 1, 1, 0]


def test_the_labels_keep_one_timer_and_none_at_the_end(look: Stage) -> None:
    assert look.sheet().evaluate(
        """async (address) => {
          const running = new Set(), counts = [];
          let number = 0;
          window.setInterval = () => (running.add(++number), number);
          window.clearInterval = (which) => running.delete(which);
          const { default: draw } = await import(address);
          let cleanup;
          for (let run = 0; run < 3; run++) {
            cleanup = draw();
            counts.push(running.size);
          }
          cleanup();
          return [...counts, running.size];
        }""",
        module("map_labels"),
    ) == [1, 1, 1, 0]


@pytest.mark.core
def test_the_editor_sends_its_last_words_when_it_leaves_and_nothing_that_was_replaced(look: Stage) -> None:
    assert look.sheet().evaluate(
        """async (address) => {
          const { default: draw } = await import(address);
          const sent = [];
          const opened = () => {
            const parentElement = document.createElement("div");
            parentElement.innerHTML = "<label><span></span><textarea></textarea><small></small></label>";
            const run = (text, version) =>
              draw({
                data: { label: "", text, version, hint: "", placeholder: "", height: 100 },
                parentElement,
                setStateValue: (_, value) => sent.push([value.version, value.text]),
              });
            const type = (text) => {
              const field = parentElement.querySelector("textarea");
              field.value = text;
              field.oninput();
            };
            return { run, type };
          };
          const typed = opened(), untouched = opened(), replaced = opened();
          const leave = typed.run("old", 1);
          typed.type("new");
          leave();
          untouched.run("old", 1)();
          replaced.run("old", 1);
          replaced.type("typed");
          replaced.run("a ready-made set", 2)();
          await new Promise((resolve) => setTimeout(resolve, 700));
          return sent;
        }""",
        module("editor"),
    ) == [[1, "new"]]


def test_a_list_of_failed_queries_says_how_many_are_below_what_is_seen(look: Stage) -> None:
    said = look.sheet().evaluate(
        """async (address) => {
          const { default: draw } = await import(address);
          const style = document.createElement("style");
          style.textContent = ".queries { height: 100px; overflow: auto } .query { display: block; height: 20px; border: 0 }";
          const parentElement = document.createElement("div");
          parentElement.innerHTML = "<div class='failed'></div>";
          parentElement.hidden = true;
          document.body.append(style, parentElement);
          const rows = Array.from({ length: 12 }, (_, index) =>
            ({ index, rank: "", query: "a", rival: "b", picked: index === 9 }));
          const data = { scale: 1, traits: null, waiting: "", head: "", of: "", all: "", rows, pickHint: "" };
          const said = [];
          const look = async () => {
            for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
            said.push(parentElement.querySelector(".below").textContent);
          };
          draw({ data, parentElement, setTriggerValue: () => {} });
          await look(); // while it is hidden
          parentElement.hidden = false;
          await look();
          const queries = parentElement.querySelector(".queries");
          queries.scrollTop = 40;
          await look();
          queries.scrollTop = 1000;
          await look();
          queries.scrollTop = 0;
          draw({ data, parentElement, setTriggerValue: () => {} }); // scrolls to the chosen one
          await look();
          return said;
        }""",
        module("failed"),
    )
    assert said[:4] == ["", "7 further down: scroll ↓", "5 further down: scroll ↓", ""]
    assert said[4] in {"", "1 further down: scroll ↓"}


def test_a_hit_that_begins_later_on_a_phone_is_named_by_its_whole_text(look: Stage) -> None:
    before = "\U0001f41d" * 70 + "-"
    name, shown = look.sheet(width=390).evaluate(
        """async ([address, before]) => {
          const { default: draw } = await import(address);
          const parentElement = document.createElement("div");
          parentElement.innerHTML = "<div class='hits'><div></div><ol></ol></div>";
          document.body.append(parentElement);
          const parts = [{ text: before }, { text: "bees", shade: 1 }];
          const row = { index: 0, rank: 1, parts, asked: [], bar: null, score: "" };
          draw({ data: { rows: [row], pickHint: "Why?", scale: 1 }, parentElement, setTriggerValue: () => {} });
          const text = parentElement.querySelector("button.text");
          return [text.getAttribute("aria-label"), text.textContent];
        }""",
        [module("hits"), before],
    )
    assert name == f"{before}bees"
    assert shown == f"… {before[-20:]}bees"  # no emoji is cut in two
