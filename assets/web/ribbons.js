// Two texts as rows of words with ribbons between them: how much each pair of words adds to the similarity of the texts, the
// strongest pairs as bars, and all pairs as a small matrix. Pointing at a word, or reaching it by Tab, shows all of its pairs.
// data: { first, second: [{ text, kind }], values: [[number]], whole, parts, pointed, scale }. `values` and `whole` are in units
// of the cosine; `parts` says that numbers are written as parts of the cosine, not in per cent of it. Text is set by textContent.
// With `chosen`, a word of the second text, values are what its words take from those of the first: it is pointed at unless a
// person points at another, numbers are of the word that is pointed at, and a word of the second text that is pressed is reported
// as "chosen". `said` then names the rows.
const SVG = "http://www.w3.org/2000/svg";
const STRONGEST = 14, LISTED = 6; // ribbons, and bars
const LEAST = 0.01; // of the cosine: a thinner ribbon is not drawn, unless its word is pointed at
const NARROW = 640; // pixels: below that the texts stand beside each other, and the ribbons run across
const ASIDE = 880; // pixels: from there on the bars and the matrix stand beside the ribbons

const make = (name, attributes = {}, text = "") => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
};
const node = (name, className = "", text = "") => {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
};
const rulers = document.createElement("canvas").getContext("2d");

// The columns on which both texts stand: equal words in order are set below each other where most are equal; else null.
function columnsOf(a, b) {
  const common = [...Array(a.length + 1)].map(() => Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  if (common[0][0] < 0.7 * Math.max(a.length, b.length)) return null;
  const columns = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) columns.push([i++, j++]);
    else if (j < b.length && (i === a.length || common[i][j + 1] >= common[i + 1][j])) columns.push([null, j++]);
    else columns.push([i++, null]);
  }
  return columns;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".ribbons"), isTaken = data.chosen !== undefined;
  const texts = [data.first, data.second], words = texts.map((parts) => parts.map((part) => part.text));
  const sums = [data.values.map((row) => row.reduce((sum, value) => sum + value, 0)), words[1].map((_, j) => data.values.reduce((sum, row) => sum + row[j], 0))];
  const pairs = data.values.flatMap((row, i) => row.map((value, j) => ({ i, j, value }))).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const largest = Math.max(...sums.flat().map(Math.abs), 1e-12);
  // All others together are no token: of what is taken, a scale up to them would leave the rest pale.
  const isNamed = (pair) => data.first[pair.i].kind !== "rest" && data.second[pair.j].kind !== "rest";
  const single = isTaken ? pairs.filter(isNamed) : pairs;
  const strongest = Math.abs(single[0]?.value ?? 0) || 1e-12;
  const written = (value, digits = 0) => {
    if (isTaken && !data.parts && value > 0 && value < 0.005 * data.whole) return "< 1 %";
    const text = data.parts ? value.toFixed(digits ? 3 : 2) : (100 * value / data.whole).toFixed(isTaken ? 0 : digits);
    const plain = /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
    return data.parts ? plain : `${plain} %`;
  };
  const rest = isTaken ? [1, data.chosen] : null; // what is pointed at when nobody points
  let pointed = rest; // [text, word]
  // The number of a word: what it adds in all, or of what is taken the pair with the word that is pointed at; null for none.
  const numberOf = (side, word) => {
    if (!isTaken) return sums[side][word];
    if (side === pointed[0]) return null;
    return side ? data.values[pointed[1]][word] : data.values[word][pointed[1]];
  };
  const shown = () => (pointed ? pairs.filter((pair) => (pointed[0] ? pair.j : pair.i) === pointed[1]) : pairs);

  const left = node("div", "picture"), right = node("div", "aside");
  root.replaceChildren(left, right);

  function point(to) {
    if (String(to) === String(pointed)) return;
    pointed = to;
    draw();
  }

  function places(width, height, size, isNarrow) {
    const style = getComputedStyle(root), mono = style.getPropertyValue("--st-code-font") || "monospace";
    const wide = (word) => {
      rulers.font = `600 ${size}px ${mono}`;
      return Math.ceil(rulers.measureText(word).width) + (isNarrow || size < 15 ? 12 : 18);
    };
    const found = [[], []];
    if (isNarrow) {
      const most = Math.max(...words.map((row) => row.length)), step = (height - 30) / most;
      const column = Math.min(width * 0.3, Math.max(...words.flat().map(wide)));
      words.forEach((row, side) => row.forEach((_, at) => found[side].push([side ? width - column : 0, 30 + step * at + ((most - row.length) * step) / 2, column, Math.min(28, step - 5)])));
      return found;
    }
    const tall = Math.max(28, size * 2.3), y = [44 * data.scale, height - tall - 42 * data.scale], columns = columnsOf(...words);
    if (columns) {
      const widths = columns.map((column) => Math.max(...column.map((at, side) => (at === null ? 0 : wide(words[side][at])))));
      const total = widths.reduce((sum, each) => sum + each, 0), gap = Math.min(isTaken ? 56 : 16, (width - total) / Math.max(1, columns.length - 1));
      let x = 0;
      columns.forEach((column, number) => {
        column.forEach((at, side) => {
          if (at !== null) found[side][at] = [x + (widths[number] - wide(words[side][at])) / 2, y[side], wide(words[side][at]), tall];
        });
        x += widths[number] + gap;
      });
      return found;
    }
    words.forEach((row, side) => {
      const widths = row.map(wide), total = widths.reduce((sum, each) => sum + each, 0), gap = Math.min(48, (width - total) / Math.max(1, row.length - 1));
      let x = Math.max(0, (width - total - gap * (row.length - 1)) / 2);
      widths.forEach((each, at) => {
        found[side][at] = [x, y[side], each, tall];
        x += each + gap;
      });
    });
    return found;
  }

  // The largest type with which the longer text fits into one row.
  function sizeFor(width, isNarrow) {
    let size = (isNarrow ? 13 : 15) * data.scale;
    if (isNarrow) return size;
    const mono = getComputedStyle(root).getPropertyValue("--st-code-font") || "monospace";
    const needs = () => {
      rulers.font = `600 ${size}px ${mono}`;
      return Math.max(...words.map((row) => row.reduce((sum, word) => sum + rulers.measureText(word).width + (size < 15 ? 12 : 18) + 7, 0)));
    };
    while (size > 10 && needs() > width) size--;
    return needs() > width ? 0 : size;
  }

  const isBeside = () => !isTaken && right.clientWidth > 0 && right.clientWidth < left.clientWidth;

  function drawPicture() {
    const width = left.clientWidth;
    let isNarrow = width < NARROW, size = sizeFor(width, isNarrow);
    if (!size) [isNarrow, size] = [true, 13 * data.scale]; // too long for a row: beside each other
    const height = isNarrow ? 36 + Math.max(...words.map((row) => row.length)) * 30 * data.scale : isBeside() ? 440 : 360; // as high as what stands beside it
    const svg = make("svg", { class: "why", width, height, role: "group", "aria-label": data.label });
    const at = places(width, height, size, isNarrow);
    const drawn = (pointed ? shown() : pairs.slice(0, STRONGEST)).filter((pair) => Math.abs(pair.value) > LEAST * Math.max(Math.abs(data.whole), 0.05) * (pointed ? 0.1 : 1));
    // Ends of ribbons lie beside each other, in the order of where they go; one scale for all, so that the widest heap fits its word.
    const heaps = [new Map(), new Map()];
    drawn.forEach((pair) => [pair.i, pair.j].forEach((word, side) => heaps[side].set(word, [...(heaps[side].get(word) ?? []), pair])));
    let scale = (isNarrow ? 12 : 26) / strongest;
    heaps.forEach((heap, side) => heap.forEach((list, word) => {
      const sum = list.reduce((total, pair) => total + Math.abs(pair.value), 0), [, , wide, tall] = at[side][word];
      scale = Math.min(scale, (isNarrow ? tall + 8 : wide + 8) / sum);
    }));
    const thick = (value) => Math.max(0.8, Math.abs(value) * scale), ends = [new Map(), new Map()];
    heaps.forEach((heap, side) => heap.forEach((list) => {
      const middle = (pair) => {
        const [x, y, wide, tall] = at[1 - side][side ? pair.i : pair.j];
        return isNarrow ? y + tall / 2 : x + wide / 2;
      };
      list.sort((a, b) => middle(a) - middle(b));
      let from = -list.reduce((total, pair) => total + thick(pair.value), 0) / 2;
      list.forEach((pair) => {
        ends[side].set(pair, from + thick(pair.value) / 2);
        from += thick(pair.value);
      });
    }));
    [...drawn].reverse().forEach((pair) => {
      const [ax, ay, aw, ah] = at[0][pair.i], [bx, by, bw, bh] = at[1][pair.j];
      // Beside words without numbers there is nothing to leave room for.
      const room = (side) => (isTaken && pointed[0] === side ? 4 : 46) * data.scale;
      const [sx, sy] = isNarrow ? [ax + aw + room(0), ay + ah / 2 + ends[0].get(pair)] : [ax + aw / 2 + ends[0].get(pair), ay + ah + 3];
      const [tx, ty] = isNarrow ? [bx - room(1), by + bh / 2 + ends[1].get(pair)] : [bx + bw / 2 + ends[1].get(pair), by - 3];
      const d = isNarrow ? `M${sx} ${sy}C${(sx + tx) / 2} ${sy} ${(sx + tx) / 2} ${ty} ${tx} ${ty}` : `M${sx} ${sy}C${sx} ${(sy + ty) / 2} ${tx} ${(sy + ty) / 2} ${tx} ${ty}`;
      const path = make("path", { d, class: pair.value < 0 ? "ribbon takes" : "ribbon adds", "stroke-width": thick(pair.value).toFixed(1), opacity: pointed || Math.abs(pair.value) > 0.55 * strongest ? 0.72 : 0.28 });
      path.append(make("title", {}, `${words[0][pair.i]} – ${words[1][pair.j]}: ${written(pair.value, 1)}`));
      svg.append(path);
    });
    texts.forEach((parts, side) => {
      const name = data.names[side], numbers = parts.map((_, word) => numberOf(side, word)), most = Math.max(...numbers);
      const strongestHere = isTaken ? Math.max(...numbers.map((value) => value ?? 0), 1e-12) : largest;
      svg.append(make("text", { x: isNarrow && side ? width : 0, y: isNarrow || !side ? 14 * data.scale : height - 3, "text-anchor": isNarrow && side ? "end" : "start", class: "soft" }, isNarrow ? name : isTaken ? data.said[side] : `${name}, and what each ${data.unit} adds to the cosine`));
      parts.forEach((part, word) => {
        const [x, y, wide, tall] = at[side][word], value = numbers[word], isOn = String(pointed) === String([side, word]), isMost = value !== null && value === most, isChosen = isTaken && side === 1 && word === data.chosen;
        const read = value === null ? part.text : `${part.text}: ${written(value)}`;
        const chip = make("g", { class: `word${isOn ? " on" : ""}${isChosen ? " chosen" : ""}`, tabindex: 0, role: "button", "aria-label": read, "data-word": `${side} ${word}`, style: `font-size: ${size}px` });
        const fill = `color-mix(in srgb, var(${value < 0 ? "--takes" : "--adds"}) ${Math.round(46 * Math.abs(value ?? 0) / strongestHere)}%, var(--st-background-color))`;
        chip.append(make("rect", { x: x + 0.75, y: y + 0.75, width: wide - 1.5, height: tall - 1.5, rx: 7, style: `fill: ${fill}`, class: part.kind === "word" ? "plain" : "special" }));
        const fits = isNarrow ? Math.max(3, Math.floor((wide - 10) / (size * 0.61))) : part.text.length;
        chip.append(make("text", { x: x + wide / 2, y: y + tall / 2 + size / 3, "text-anchor": "middle", "font-size": size, class: `name${isMost ? " strong" : ""}` }, part.text.length > fits ? `${part.text.slice(0, fits - 1)}…` : part.text));
        const number = isNarrow ? { x: side ? x - 5 : x + wide + 5, y: y + tall / 2 + 4.5, "text-anchor": side ? "end" : "start" } : { x: x + wide / 2, y: side ? y + tall + 17 * data.scale : y - 8 * data.scale, "text-anchor": "middle" };
        if (value !== null) {
          const smaller = isNarrow ? 12 : Math.min(13, Math.max(9, (wide + 8) / (written(value).length * 0.62)));
          chip.append(make("text", { ...number, "font-size": smaller * data.scale, class: isMost || value < -0.002 ? "number strong" : "number soft" }, written(value)));
        }
        chip.addEventListener("focus", () => {
          point([side, word]);
          root.querySelector(`[data-word="${side} ${word}"]`)?.focus({ preventScroll: true });
        });
        chip.addEventListener("pointerenter", (event) => {
          // A word that is drawn anew under a pointer that rests is not pointed at: the keyboard may have chosen another.
          const place = `${event.screenX} ${event.screenY}`;
          if (place !== root.pointerPlace) point([side, word]);
          root.pointerPlace = place;
        });
        if (isTaken && side) {
          chip.addEventListener("click", () => setTriggerValue("chosen", word));
          chip.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            setTriggerValue("chosen", word);
          });
        }
        svg.append(chip);
      });
    });
    left.replaceChildren(svg);
  }

  function drawAside() {
    const name = pointed ? `Strongest pairs of “${words[pointed[0]][pointed[1]]}”` : "Strongest pairs", bars = node("div", "bars");
    shown().filter((pair) => isNamed(pair) || pointed).slice(0, LISTED).forEach((pair) => {
      const bar = node("i", pair.value < 0 ? "takes" : "adds");
      bar.style.width = `${Math.max(1, 100 * Math.abs(pair.value) / strongest).toFixed(1)}%`;
      const track = node("span", "track");
      track.append(bar);
      bars.append(node("span", "pair", `${words[0][pair.i]} – ${words[1][pair.j]}`), track, node("span", "value", written(pair.value, 1)));
    });
    const wide = right.clientWidth, size = 11 * data.scale, font = `${size}px ${getComputedStyle(root).fontFamily}`;
    rulers.font = font;
    const reach = (row) => Math.min(90, Math.max(...row.map((word) => rulers.measureText(word).width)) + 8);
    const cut = (word) => (rulers.measureText(word).width > 82 ? `${word.slice(0, 10)}…` : word);
    const [aside, head] = [reach(words[0]), reach(words[1])];
    const room = isBeside() ? 175 / words[0].length : 26;
    const cell = Math.max(5, Math.min(22, (wide - aside) / words[1].length, Math.max(8, room)));
    const svg = make("svg", { class: "matrix", width: wide, height: head + cell * words[0].length + 2, role: "img", "aria-label": "All pairs" });
    if (cell >= size - 2) {
      words[1].forEach((word, j) => svg.append(make("text", { "font-size": size, transform: `translate(${aside + (j + 0.5) * cell + 4} ${head - 5}) rotate(-90)`, class: pointed?.[0] === 1 && pointed[1] === j ? "strong" : "soft" }, cut(word))));
      words[0].forEach((word, i) => svg.append(make("text", { x: aside - 6, y: head + (i + 0.5) * cell + 4, "font-size": size, "text-anchor": "end", class: pointed?.[0] === 0 && pointed[1] === i ? "strong" : "soft" }, cut(word))));
    }
    data.values.forEach((row, i) => row.forEach((value, j) => {
      const fill = `color-mix(in srgb, var(${value < 0 ? "--takes" : "--adds"}) ${Math.round(100 * Math.min(1, Math.abs(value) / strongest))}%, var(--st-secondary-background-color))`;
      const square = make("rect", { x: aside + j * cell + 0.5, y: head + i * cell + 0.5, width: cell - 1, height: cell - 1, rx: 1.5, style: `fill: ${fill}` });
      square.append(make("title", {}, `${words[0][i]} – ${words[1][j]}: ${written(value, 1)}`));
      svg.append(square);
    }));
    if (pointed) {
      const [side, word] = pointed, box = side ? { x: aside + word * cell, y: head, width: cell, height: cell * words[0].length } : { x: aside, y: head + word * cell, width: cell * words[1].length, height: cell };
      svg.append(make("rect", { ...box, class: "frame" }));
    }
    // What is taken stands at the words already, each with its number.
    right.replaceChildren(...(isTaken ? [] : [node("b", "", name), bars]), node("b", "", data.all.replace("{}", written(strongest))), svg);
  }

  function draw() {
    if (root.clientWidth < 100) return; // not on screen: drawn once it has a width
    root.classList.toggle("wide", root.clientWidth >= ASIDE);
    root.style.setProperty("--scale", data.scale);
    root.style.fontSize = "1rem"; // larger on a projector, as all of the page is
    drawPicture();
    drawAside();
  }
  // Of the root, which stays: a picture that was drawn anew under the pointer is not told that the pointer leaves it.
  root.onpointerleave = () => point(rest);
  root.onpointermove = (event) => {
    if (!event.target.closest("svg.why")) point(rest);
  };
  drawKeepingFocus(root, "word", draw);
  let seen = root.clientWidth;
  const watcher = new ResizeObserver(() => {
    if (root.clientWidth === seen) return;
    seen = root.clientWidth;
    drawKeepingFocus(root, "word", draw);
  });
  watcher.observe(root);
  root._stop?.();
  root._stop = () => watcher.disconnect();
  return () => watcher.disconnect();
}
