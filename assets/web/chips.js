// Rows of tokens as buttons. Text is only ever set with textContent. A click (or Enter) reports the token;
// arrow keys move within a row, Home and End to its ends.
// Long rows: the chips between the first and the last ones are hidden until a button in their place is clicked. What is picked
// stays in sight, with some tokens beside it.
const BESIDE = 4;

function fold(flow, chips, ends, root, index) {
  const opened = (root.dataset.opened ?? "").split(" ");
  if (!ends || chips.length <= ends.from || opened.includes(String(index))) return;
  const picked = chips.flatMap((chip, place) => (chip.classList.contains("picked") ? [place] : []));
  const runs = []; // of chips that are hidden
  for (let place = ends.first; place < chips.length - ends.last; place++) {
    if (picked.some((other) => Math.abs(other - place) <= BESIDE)) continue;
    const run = runs.at(-1);
    if (run?.at(-1) === place - 1) run.push(place);
    else runs.push([place]);
  }
  const buttons = runs.map((run) => {
    const more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    more.textContent = `… ${run.length} more tokens`;
    more.onclick = () => {
      root.dataset.opened = [...opened, index].join(" ").trim();
      chips.forEach((chip) => (chip.hidden = false));
      buttons.forEach((button) => button.remove());
    };
    return more;
  });
  runs.forEach((run, number) => {
    run.forEach((place) => (chips[place].hidden = true));
    // Before the word with the first token that is shown again, or within it.
    chips[run[0]].parentElement.before(buttons[number]);
  });
}

// Where the rows stand in a low box that scrolls, what is picked is in sight, once for each choice.
function show(root) {
  const picked = root.querySelector(".chip.picked:not([hidden])"), place = picked?.dataset.position ?? "";
  if (!picked || root.dataset.shown === place) return;
  let box = root;
  while (box && !(box.scrollHeight > box.clientHeight + 1 && getComputedStyle(box).overflowY === "auto")) box = box.parentElement ?? box.getRootNode().host;
  if (!box || box.clientHeight > 300) return; // that is the page
  root.dataset.shown = place;
  const { top, bottom } = picked.getBoundingClientRect(), frame = box.getBoundingClientRect();
  box.scrollTop += Math.min(0, top - frame.top) + Math.max(0, bottom - frame.bottom); // no further: what stands above is seen too
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
    // What ends a text ([SEP]) stays in the line of its last word: alone it would read as the beginning of another text.
    const end = flow.lastElementChild, before = end?.previousElementSibling;
    if (before && end.querySelector(".added")) {
      const together = document.createElement("span");
      together.className = "together";
      together.append(before, end);
      flow.append(together);
    }
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
  setTimeout(() => show(root), 100); // once the page has given the box its height
  if (hadFocus) root.querySelector(`[data-position="${hadFocus}"]`)?.focus({ preventScroll: true });
}
