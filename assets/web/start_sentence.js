// The sentences of Start: pieces to click, and three figures of the chosen word, drawn here from the data of all words.
// Reports "word" with the number of the word when a person rests on it, and "open" with [figure, word]; the number behind those
// of the figures stands for the button below the words.
const REST = 700; // milliseconds
const COLOURS = ["var(--blue)", "var(--orange)", "var(--green)"];

// A fan: the word at the left, a curve to each token, as thick as its weight.
function drawLooks(box, looks, word) {
  const u = rem(), width = box.clientWidth, height = box.clientHeight;
  const rows = [...looks.rows, { ...looks.rest, weight: 0, quiet: true }];
  const step = Math.min(38 * u, height / rows.length), first = (height - rows.length * step) / 2 + step / 2;
  const svg = picture(width, height, looks.says);
  const middle = height / 2, [from, chipWidth] = wordChip(word, middle, 0.3 * width, box);
  const names = Math.max(...rows.map((row) => widthOf(row.name, 14, 600, box)));
  const end = Math.max(chipWidth + 40 * u, width - Math.max(96 * u, Math.min(names, 130 * u)) - 70 * u);
  rows.forEach((row, number) => {
    const y = first + number * step;
    if (!row.quiet) svg.append(lookCurve(chipWidth, middle, end, y, row.weight, row.strong));
    const weight = row.strong ? 600 : 400;
    svg.append(label(end + 8 * u, y + 5 * u, row.name, { "font-size": 14 * u, "font-weight": weight, class: row.quiet ? "soft" : "" }));
    svg.append(label(width, y + 5 * u, row.shown, { "text-anchor": "end", "font-weight": weight, class: row.strong ? "num" : "num soft" }));
  });
  svg.append(from);
  const values = rows.map((row) => [row.name, row.shown]);
  box.replaceChildren(svg, valuesTable(looks.says, looks.columns, values));
}

// Curves by layer, named at their ends; the axis is that of the data.
function drawChanges(box, changes) {
  const u = rem(), width = box.clientWidth, height = box.clientHeight, { lines } = changes;
  const all = lines.flatMap((line) => line.values), layers = lines[0].values.length - 1;
  const low = Math.max(-1, Math.floor((Math.min(...all) - 0.02) * 10) / 10), high = 1;
  const longest = Math.max(...lines.map((line) => widthOf(`${line.name} ${line.shown}`, 13, 600, box)));
  const left = 34 * u, right = width - longest - 16 * u, top = 8 * u, bottom = height - 38 * u;
  const x = (layer) => left + (layer / layers) * (right - left);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  const svg = picture(width, height, changes.says);
  const step = high - low > 1.2 ? 0.5 : high - low > 0.5 ? 0.25 : high - low > 0.25 ? 0.1 : 0.05;
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9; tick += step) {
    svg.append(svgElement("path", { d: `M${left} ${y(tick)}H${right}`, stroke: "var(--hair)" }));
    const shown = tick.toFixed(2).replace(/0$/, "").replace("-", "−");
    svg.append(label(left - 6 * u, y(tick) + 4 * u, shown, { "text-anchor": "end", "font-size": 11.5 * u, class: "num soft" }));
  }
  const every = Math.ceil(layers / 12); // so that the numbers of a deep model do not touch
  for (let layer = 0; layer <= layers; layer += every)
    svg.append(label(x(layer), bottom + 16 * u, String(layer), { "text-anchor": "middle", "font-size": 11.5 * u, class: "soft" }));
  svg.append(label(left, height - 5 * u, changes.axis, { "font-size": 12 * u, class: "soft" }));
  const ends = lines.map((line, number) => ({ number, y: y(line.values[layers]) })).sort((a, b) => a.y - b.y);
  for (let place = 1; place < ends.length; place++) ends[place].y = Math.max(ends[place].y, ends[place - 1].y + 18 * u);
  const over = Math.max(0, ends[ends.length - 1].y - bottom);
  lines.forEach((line, number) => {
    const points = line.values.map((value, layer) => `${x(layer).toFixed(1)} ${y(value).toFixed(1)}`);
    const stroke = { fill: "none", stroke: COLOURS[number], "stroke-width": 2.5 * u, "stroke-dasharray": number === 1 ? "7 4" : "none" };
    svg.append(svgElement("path", { d: `M${points.join("L")}`, ...stroke }));
    line.values.forEach((value, layer) => {
      const at = { fill: COLOURS[number] };
      svg.append(number === 1 ? svgElement("rect", { x: x(layer) - 3.5 * u, y: y(value) - 3.5 * u, width: 7 * u, height: 7 * u, ...at }) : svgElement("circle", { cx: x(layer), cy: y(value), r: 3.8 * u, ...at }));
    });
    const name = label(right + 10 * u, ends.find((end) => end.number === number).y + 4.5 * u - over, `${line.name} `);
    name.append(svgElement("tspan", { "font-weight": 600, class: "num" }, line.shown));
    svg.append(name);
  });
  const values = lines[0].values.map((_, layer) => [String(layer), ...lines.map((line) => line.read[layer])]);
  box.replaceChildren(svg, valuesTable(changes.says, [changes.axis, ...lines.map((line) => line.name)], values));
}

// The found word with as many whole words on both sides as fit into some pixels: [before, word, after].
function snippet(found, room, box) {
  const before = found.text.slice(0, found.start).split(/(?<= )/).filter(Boolean);
  const after = found.text.slice(found.end).split(/(?= )/).filter(Boolean);
  const word = found.text.slice(found.start, found.end);
  let from = before.length, to = 0;
  const parts = () => [(from > 0 ? "… " : "") + before.slice(from).join(""), word, after.slice(0, to).join("") + (to < after.length ? " …" : "")];
  const fits = () => widthOf(parts().join(""), 13.4, 400, box) <= room;
  for (let grown = true; grown; ) {
    grown = false;
    if (from > 0) {
      from -= 1;
      if (fits()) grown = true;
      else from += 1;
    }
    if (to < after.length) {
      to += 1;
      if (fits()) grown = true;
      else to -= 1;
    }
  }
  return parts();
}

function drawNearest(box, nearest) {
  const lines = box.clientHeight > 235 * rem() || matchMedia("(max-width: 760px)").matches ? 1.65 : 1;
  const room = (box.clientWidth - 46 * rem()) * lines;
  const list = element("ul", "near");
  for (const found of nearest.words) {
    const [before, word, after] = snippet(found, room, box);
    const line = element("li"), text = element("span");
    line.title = found.text;
    text.append(before, element("b", "", word), after);
    line.append(text, element("span", "num", found.shown));
    list.append(line);
  }
  box.replaceChildren(list);
}

// Guesses for a mask: each with a bar, on a scale from 0 to 1.
function drawGuesses(box, figure) {
  const u = rem(), width = box.clientWidth, height = box.clientHeight, rows = figure.guesses;
  const step = Math.min(38 * u, height / rows.length), first = (height - rows.length * step) / 2 + step / 2;
  const names = Math.min(0.4 * width, Math.max(...rows.map((row) => widthOf(row.name, 14, 600, box))));
  const shares = Math.max(...rows.map((row) => widthOf(row.shown, 14, 600, box)));
  const left = names + 10 * u, room = width - left - shares - 10 * u;
  const svg = picture(width, height, figure.says);
  rows.forEach((row, number) => {
    const y = first + number * step, weight = number ? 400 : 600, bar = { x: left, y: y - 8 * u, height: 16 * u, rx: 3 * u };
    svg.append(label(0, y + 5 * u, row.name, { "font-size": 14 * u, "font-weight": weight }));
    svg.append(svgElement("rect", { ...bar, width: room, fill: "var(--hair)" }));
    svg.append(svgElement("rect", { ...bar, width: Math.max(2 * u, row.share * room), fill: number ? "var(--grey)" : "var(--green)" }));
    svg.append(label(width, y + 5 * u, row.shown, { "text-anchor": "end", "font-weight": weight, class: number ? "num soft" : "num" }));
  });
  box.replaceChildren(svg, valuesTable(figure.says, figure.columns, rows.map((row) => [row.name, row.shown])));
}

const GUESSES = [drawGuesses, "guesses"];
const DRAWN = { looks: [drawLooks, "rows"], changes: [drawChanges, "lines"], nearest: [drawNearest, "words"] };

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".start");
  const cards = [...root.querySelectorAll(".fig")];
  const kept = (root.kept ??= { timer: 0 });
  // A word that is clicked while another one is on its way to the server stays.
  const texts = JSON.stringify(data.rows);
  if (!kept.timer || kept.texts !== texts) kept.word = data.chosen;
  kept.texts = texts;
  kept.known = data.chosen; // to the server, as this drawing of the page or a later one says
  const rest = () => {
    clearTimeout(kept.timer);
    kept.timer = setTimeout(() => {
      kept.timer = 0;
      if (kept.word !== kept.known) setTriggerValue("word", (kept.known = kept.word));
    }, REST);
  };
  const drawFigures = () => {
    const word = data.words[kept.word], ask = root.querySelector(".ask");
    ask.hidden = !word.ask;
    ask.textContent = word.ask;
    ask.onclick = () => setTriggerValue("open", [cards.length, kept.word]);
    cards.forEach((card, number) => {
      const { name, kicker, link } = data.figures[number], figure = word[name], box = card.querySelector(".draw");
      card.hidden = !figure;
      if (!figure) return;
      card.querySelector(".kicker").textContent = figure.kicker ?? kicker;
      card.querySelector("h2").textContent = figure.says;
      const button = card.querySelector(".link");
      button.textContent = figure.link ?? link;
      button.onclick = () => setTriggerValue("open", [figure.opens ?? number, kept.word]);
      const [draw, needed] = figure.guesses ? GUESSES : DRAWN[name];
      box.classList.toggle("list", needed === "words" && Boolean(figure[needed])); // until then a bar stands in its place
      box.replaceChildren();
      if (figure[needed] && box.clientWidth) draw(box, figure, word.text);
    });
  };
  const mark = () => {
    const { twins } = data.words[kept.word];
    for (const chip of root.querySelectorAll(".chip:enabled")) {
      const word = Number(chip.dataset.word), picked = word === kept.word;
      chip.classList.toggle("picked", picked);
      chip.classList.toggle("twin", !picked && twins.includes(word));
      chip.setAttribute("aria-pressed", String(picked));
    }
    // Each row is one stop of the Tab key; the arrow keys go from word to word.
    for (const chips of root.querySelectorAll(".chips")) {
      const words = [...chips.querySelectorAll(".chip:enabled")];
      const stop = words.find((chip) => chip.matches(".picked")) ?? words.find((chip) => chip.matches(".twin")) ?? words[0];
      for (const chip of words) chip.tabIndex = chip === stop ? 0 : -1;
    }
  };
  const walk = (event) => {
    const words = [...event.currentTarget.querySelectorAll(".chip:enabled")], here = words.indexOf(event.target);
    const step = event.currentTarget.dir === "rtl" ? -1 : 1; // a row that is read from the right goes on to the left
    const next = words[{ ArrowRight: here + step, ArrowLeft: here - step, Home: 0, End: words.length - 1 }[event.key]];
    if (!next) return;
    event.preventDefault();
    words.forEach((chip) => (chip.tabIndex = chip === next ? 0 : -1));
    next.focus();
  };
  const choose = (word) => {
    kept.word = word;
    mark();
    drawFigures();
    root.querySelector(".live").textContent = data.figures.map(({ name }) => data.words[word][name]?.says ?? "").join(" ");
    rest();
  };
  const rowOf = (row) => {
    const line = element("div", data.rows.length > 1 ? "row" : "row alone"), chips = element("div", "chips");
    chips.setAttribute("role", "group");
    chips.setAttribute("aria-label", row.label);
    chips.dir = row.direction;
    chips.onkeydown = walk;
    row.pieces.forEach((piece, place) => {
      const chip = element("button", "chip", piece.text);
      chip.type = "button";
      chip.disabled = piece.word < 0;
      const same = (other) => piece.word >= 0 && row.pieces[other]?.word === piece.word;
      chip.classList.toggle("follows", same(place - 1));
      chip.classList.toggle("leads", same(place + 1));
      chip.dataset.word = piece.word;
      chip.onclick = () => choose(piece.word);
      chips.append(chip);
    });
    line.append(element("span", "", row.number), chips);
    return line;
  };
  if (kept.drawn !== texts || !root.querySelector(".row")) {
    root.querySelector(".rows").replaceChildren(...data.rows.map(rowOf));
    kept.drawn = texts;
  } else for (const chip of root.querySelectorAll(".chip:enabled")) chip.onclick = () => choose(Number(chip.dataset.word));
  const note = root.querySelector(".note");
  note.textContent = data.note;
  note.hidden = !data.note;
  mark();
  drawFigures();
  // On a phone a row is swiped: the chosen word, or its other occurrence, is in sight.
  if (kept.seen !== texts)
    for (const chips of root.querySelectorAll(".chips")) {
      const chip = chips.querySelector(".picked, .twin");
      if (chip) chips.scrollLeft = chip.offsetLeft - chips.offsetLeft - chips.clientWidth / 2 + chip.offsetWidth / 2;
    }
  kept.seen = texts;
  drawAtEachWidth(root, drawFigures);
  return () => {
    clearTimeout(kept.timer);
    root.bertInternalsObserver.disconnect();
  };
}
