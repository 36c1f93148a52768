// Rows of tokens as buttons. Text is only ever set with textContent. A click (or Enter) reports the token;
// arrow keys move within a row, Home and End to its ends.
// Long rows: the chips between the first and the last ones are hidden until the button in their place is clicked.
function fold(flow, chips, ends, root, index) {
  const opened = (root.dataset.opened ?? "").split(" ");
  if (!ends || chips.length <= ends.from || opened.includes(String(index))) return;
  const middle = chips.slice(ends.first, chips.length - ends.last);
  middle.forEach((chip) => (chip.hidden = true));
  const more = document.createElement("button");
  more.type = "button";
  more.className = "more";
  more.textContent = `… ${middle.length} more tokens`;
  more.onclick = () => {
    root.dataset.opened = [...opened, index].join(" ").trim();
    middle.forEach((chip) => (chip.hidden = false));
    more.remove();
  };
  // Before the word with the first token that is shown again, or within it.
  chips[ends.first].parentElement.before(more);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".rows");
  const old = parentElement.activeElement ?? parentElement.getRootNode().activeElement;
  const hadFocus = old && old.dataset && old.dataset.position;
  root.replaceChildren();
  root.style.setProperty("--size", `${data.scale}rem`);
  for (const row of data.rows) {
    const line = document.createElement("div");
    line.className = "row";
    line.setAttribute("role", "group");
    line.setAttribute("aria-label", row.label);
    const number = document.createElement("span");
    number.className = "number";
    number.textContent = row.number;
    line.append(number);
    const flow = document.createElement("div");
    flow.className = "flow";
    flow.dir = row.direction; // "auto" would follow [CLS]
    row.words.forEach((word) => {
      const group = document.createElement("span");
      group.className = `word tint${word.tint}`;
      let holder = group;
      if (word.over) {
        // Above the pieces the word as it was typed, over a brace; what does not come back is marked.
        group.classList.add("typed");
        group.classList.toggle("split", word.tokens.length > 1);
        const over = document.createElement("span");
        over.className = word.over.length ? "over" : "over added";
        for (const [text, isLost] of word.over) {
          const part = document.createElement(isLost ? "mark" : "span");
          part.textContent = text;
          if (isLost) part.title = "does not come back";
          over.append(part);
        }
        if (!word.over.length) over.textContent = "added";
        const brace = document.createElement("i");
        holder = document.createElement("span");
        holder.className = "pieces";
        group.append(over, brace, holder);
      }
      word.tokens.forEach((token) => {
        const chip = document.createElement("button");
        chip.type = "button";
        chip.className = ["chip", ...token.marks].join(" ");
        chip.textContent = token.piece;
        for (const text of token.under) {
          const line = document.createElement("small");
          line.textContent = text;
          chip.append(line);
        }
        chip.title = token.hint;
        chip.dataset.position = `${row.index}:${token.position}`;
        chip.setAttribute("aria-pressed", String(token.picked));
        chip.tabIndex = token.picked ? 0 : -1;
        if (data.clickable) {
          // What is chosen is drawn when the server has said so: a click need not mean "only this one".
          chip.onclick = () => setTriggerValue("clicked", [row.index, token.position]);
        } else {
          chip.disabled = true;
        }
        holder.append(chip);
      });
      flow.append(group);
    });
    const chips = [...flow.querySelectorAll(".chip")];
    fold(flow, chips, data.fold, root, row.index);
    if (chips.length && !chips.some((chip) => chip.tabIndex === 0)) chips[0].tabIndex = 0;
    flow.onkeydown = (event) => {
      const here = chips.indexOf(event.target);
      const steps = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: chips.length - 1 };
      const next = chips[steps[event.key]];
      if (!next) return;
      event.preventDefault();
      chips.forEach((chip) => (chip.tabIndex = -1));
      next.tabIndex = 0;
      next.focus();
    };
    line.append(flow);
    root.append(line);
  }
  if (hadFocus) root.querySelector(`[data-position="${hadFocus}"]`)?.focus({ preventScroll: true });
}
