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
