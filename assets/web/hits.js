// A ranked list of sentences. Text is only ever set with textContent. A row reports "picked" with the sentence's
// index; its two marks report "marked" with [index, 1 | 0 | -1]: relevant, not relevant, taken back.
let arrived = 0; // how often an address had set what the page shows when hits were drawn last

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".hits");
  const old = parentElement.activeElement ?? parentElement.getRootNode().activeElement;
  const hadFocus = old?.dataset?.position;
  root.replaceChildren();
  root.style.setProperty("--size", `${data.scale}rem`);
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const button = (name, text, label, position, pressed, action) => {
    const element = make("button", name, text);
    element.type = "button";
    element.title = label;
    element.setAttribute("aria-label", label);
    element.setAttribute("aria-pressed", String(pressed));
    element.dataset.position = position;
    element.onclick = action;
    return element;
  };
  const place = (value) => `${value * 100}%`;
  // Above the first bar: what an empty and a full one are, and the name of the line through all bars.
  const axisOf = (of) => {
    const axis = make("div", "axis");
    axis.append(make("span", "low", of.ends[0]), make("span", "high", of.ends[1]));
    if (of.level !== null) {
      const level = make("span", "level", of.name);
      level.style.left = place(of.level);
      axis.append(level);
    }
    return axis;
  };
  for (const row of data.rows) {
    const line = make("li", row.picked ? "hit picked" : "hit");
    const rank = make("div", "rank");
    rank.append(make("span", "number", row.rank));
    if (row.change) {
      const change = make("span", `change ${row.change.kind}`, row.change.text);
      change.title = row.change.hint;
      rank.append(change);
    }
    const body = make("div", "body");
    const text = button("text", undefined, data.pickHint, `p${row.index}`, row.picked, () => {
      root.dataset.scroll = row.picked ? "" : data.answer;
      setTriggerValue("picked", row.index);
    });
    text.removeAttribute("aria-label"); // the sentence is its name
    for (const part of row.parts) text.append(part.shared ? make("mark", "", part.text) : part.text);
    const foot = make("div", "foot");
    const track = make("span", "track");
    const bar = make("span", "bar");
    bar.style.width = place(Math.max(0, Math.min(1, row.bar)));
    if (row.close === false) bar.classList.add("far");
    if (data.axis && data.axis.unrelated !== null) {
      const band = make("span", "band");
      band.style.width = place(data.axis.unrelated);
      track.append(band);
    }
    track.append(bar);
    if (data.axis && data.axis.level !== null) {
      const level = make("span", "level");
      level.style.left = place(data.axis.level);
      level.title = data.axis.name;
      track.append(level);
    }
    const why = button("why", row.picked ? (data.pickedLabel ?? "Close") : "Why?", data.pickHint, `w${row.index}`, row.picked, text.onclick);
    why.setAttribute("aria-label", `${data.pickHint} (rank ${row.rank})`);
    if (row.bar !== null) foot.append(track);
    foot.append(make("span", "score", row.score), why, make("span", "tag", row.tag));
    body.append(text, ...(data.axis && row === data.rows[0] ? [axisOf(data.axis)] : []), foot);
    line.append(rank, body);
    if (data.markable) {
      const marks = make("div", "marks");
      for (const [value, sign, label] of [
        [1, "✓", "Relevant to the query"],
        [0, "✗", "Not relevant"],
      ]) {
        const on = row.relevant === value;
        const name = `mark ${value ? "yes" : "no"}${on ? " on" : ""}`;
        const position = `m${row.index}:${value}`;
        const report = () => setTriggerValue("marked", [row.index, on ? -1 : value]);
        marks.append(button(name, sign, `${label} (rank ${row.rank})`, position, on, report));
      }
      line.append(marks);
    }
    root.append(line);
  }
  // The answer to a click, or to a link that names a hit, may be drawn far below: bring it into sight once it is there.
  if (data.arrival > arrived) {
    arrived = data.arrival;
    root.dataset.scroll = data.answer;
  }
  if (root.dataset.scroll && data.answered) {
    const wanted = root.dataset.scroll;
    root.dataset.scroll = "";
    const until = Date.now() + 5000;
    const look = () => {
      const answer = document.querySelector(wanted);
      // Of an answer that is higher than the screen, the beginning.
      const block = answer?.offsetHeight > 0.8 * window.innerHeight ? "start" : "center";
      if (answer) answer.scrollIntoView({ behavior: "smooth", block });
      else if (Date.now() < until) setTimeout(look, 100);
    };
    look();
  }
  if (hadFocus) root.querySelector(`[data-position="${hadFocus}"]`)?.focus({ preventScroll: true });
}
