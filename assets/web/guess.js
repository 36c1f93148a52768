// Guess the word: the first guesses as bars, the first five after each layer, the rank of the true piece below them on the same
// x, and the line of text coloured by how surprised the model is. A click on a word of that line reports "hidden" with its
// position; with several masks the buttons above the bars report the one to show in the same way. `two` has bars alone.
const NARROW = 760; // pixels: below it bars, guesses by layer, curve and text stand below each other
const LEAST = 120; // pixels for which it is drawn: while a page changes, its box is narrower for a moment
const LEAST_CHIP = 44, ON_PHONE = 62; // pixels of a layer's column; with less room, some layers have chips and all have a point

// A text that fits a width: smaller down to a size, then with an ellipsis. Returns [text, size].
function fitted(text, width, size, least, weight, root) {
  let shown = text, now = size;
  while (widthOf(shown, now, weight, root) > width && now > least) now -= 0.5;
  while (shown.length > 2 && widthOf(shown, now, weight, root) > width) shown = `${shown.slice(0, -2)}…`;
  return [shown, now];
}

// A text in lines that fit a width, at most three, broken between words.
function linesOf(text, width, size, root) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && lines.length < 3 && widthOf(longer, size, 700, root) > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line) => fitted(line, width, size, size - 1, 700, root)[0]);
}

// A heading; `mark` says what the colour of one bar means, in this colour.
function heading(x, y, strong, soft, size, mark, isKnown) {
  const line = label(x, y, "", { "font-size": size * rem() });
  if (strong) line.append(svgElement("tspan", { "font-weight": 700 }, strong));
  if (soft) line.append(svgElement("tspan", { class: "quiet" }, ` ${soft}`));
  if (mark) line.append(svgElement("tspan", { class: isKnown ? "mark" : "mark first", "font-weight": 600, dx: strong ? 12 * rem() : 0 }, `■ ${mark}`));
  return line;
}

// Bars of a mask's guesses on a scale from 0 to the next round share above the largest, of two masks of both; the true piece
// is blue, and stands apart where it is not among the first. Where nobody knows the truth, the first guess is green.
function drawBars(svg, panel, panels, x, y, width, height, size, root) {
  const u = rem(), { rows } = panel, far = rows.some((row) => row.far), own = panel.known ? "own" : "own first";
  const step = height / Math.max(rows.length + (far ? 0.5 : 0), 6);
  const all = panels.flatMap((other) => other.rows); // bars of two masks have the same scale
  const reach = [0.05, 0.1, 0.2, 0.5].find((share) => share >= Math.max(...all.map((row) => row.share))) ?? 1;
  const names = Math.min(width * 0.42, Math.max(...all.map((row) => widthOf(row.piece, size, row.own ? 700 : 400, root))) + 12 * u);
  const numbers = Math.max(...all.map((row) => widthOf(row.said, size - 1, row.own ? 700 : 400, root))) + 12 * u;
  const room = Math.max(20, width - names - numbers);
  rows.forEach((row, place) => {
    const top = y + (place + (row.far ? 0.5 : 0)) * step, middle = top + step / 2, weight = row.own ? 700 : 400;
    const [text, fits] = fitted(row.piece, names - 10 * u, size, size * 0.8, weight, root), long = Math.max(2, (room * row.share) / reach);
    if (row.far) svg.append(label(x + names + 1, top - step * 0.08, "⋮", { class: "quiet", "font-size": size * u }));
    svg.append(label(x + names - 9 * u, middle + 0.34 * fits * u, text, { "text-anchor": "end", "font-size": fits * u, "font-weight": weight }));
    svg.append(svgElement("rect", { x: x + names, y: top + 3, width: long, height: Math.max(3, step - 6), rx: 4, class: row.own ? `bar ${own}` : "bar" }));
    const number = { "font-size": (size - 1) * u, "font-weight": weight, class: row.own ? "num" : "num quiet" };
    svg.append(label(x + names + long + 7 * u, middle + 0.34 * size * u, row.said, number));
  });
}

// What the first column shows, if it is the start, in the longest of some texts that fits; returns the room that it takes.
function drawNote(svg, lens, every, x, y, width, root) {
  const u = rem(), size = 12.5, text = lens.notes?.find((note) => widthOf(note, size, 400, root) <= width);
  if (!text || (lens.layers.length - 1) % every) return 0;
  svg.append(label(x, y, text, { class: "quiet", "font-size": size * u }));
  return 14 * u;
}

// Of how many layers one has chips.
function stepOf(lens, width, narrow) {
  const least = (narrow ? ON_PHONE : LEAST_CHIP) * rem();
  return Math.max(1, Math.ceil((least * (lens.layers.length - 1)) / Math.max(1, width - least)));
}

const atLayers = (lens, every) => (every === 1 ? lens.soft : lens.some.replace("#", every));

// The chips of the layers, and the curve below them.
function drawLayers(svg, lens, x, y, width, height, narrow, root) {
  const u = rem(), last = lens.layers.length - 1, size = narrow ? 11.5 : 14, chip = (narrow ? 26 : 29) * u, gap = 4 * u;
  const every = stepOf(lens, width, narrow);
  const apart = width / (last + every), column = every * apart, at = (layer) => x + column / 2 + layer * apart;
  const has = (layer) => (last - layer) % every === 0, first = lens.known ? "" : " first";
  lens.layers.forEach(({ name, short, guesses }, layer) => {
    if (!has(layer)) return;
    const title = widthOf(name, 13, 400, root) < column - 6 && !narrow ? name : short;
    svg.append(label(at(layer), y - 7 * u, title, { "text-anchor": "middle", class: "quiet", "font-size": (narrow ? 12 : 13) * u }));
    guesses.forEach(({ piece, own }, place) => {
      const top = y + place * (chip + gap), weight = own ? 700 : 400;
      const [text, fits] = fitted(piece, column - 8, size, 9.5, weight, root);
      svg.append(svgElement("rect", { x: at(layer) - column / 2 + 2, y: top, width: column - 4, height: chip, rx: 6, class: own ? `chip own${first}` : "chip", "fill-opacity": own ? 1 : (0.22 - 0.03 * place).toFixed(2) }));
      svg.append(label(at(layer), top + chip / 2 + 0.34 * fits * u, text, { "text-anchor": "middle", "font-size": fits * u, "font-weight": weight, class: own ? "on" : "" }));
    });
  });
  const { rank } = lens, below = y + lens.most * (chip + gap);
  if (!rank) {
    if (lens.without) svg.append(label(x + 2, below + 20 * u, lens.without, { class: "quiet", "font-size": 13 * u }));
    return;
  }
  const top = below + (narrow ? 46 : 50) * u, bottom = Math.max(top + 60 * u, y + height - 10 * u);
  // As far down as a rank stands, to the next power of ten; a hundred at least, so that third is near the top.
  const deepest = Math.min(rank.pieces, Math.max(100, 10 ** Math.ceil(Math.log10(Math.max(...rank.ranks, ...(rank.other?.ranks ?? []))) - 1e-9)));
  const down = (value) => top + ((bottom - top) * Math.log10(value)) / Math.max(Math.log10(deepest), 1e-9);
  svg.append(heading(narrow ? 0 : x + 2, below + 18 * u, rank.title, narrow ? rank.narrow : rank.among, narrow ? 13 : 14));
  for (let tick = 1; tick <= deepest; tick *= 10) {
    svg.append(svgElement("path", { d: `M${x} ${down(tick)}H${x + width}`, class: "grid" }));
    svg.append(label(x - 6 * u, down(tick) + 4 * u, tick.toLocaleString("en"), { "text-anchor": "end", class: "num quiet", "font-size": 11.5 * u }));
  }
  const line = (ranks) => ranks.map((value, layer) => `${layer ? "L" : "M"}${at(layer)} ${down(value)}`).join("");
  const { other } = rank;
  if (other) {
    svg.append(svgElement("path", { d: line(other.ranks), class: "line other" }));
    // Its name stands in the heading's line, where no curve is.
    const words = `${other.name}: ${other.ranks[last].toLocaleString("en")}`, wide = widthOf(words, 12, 400, root), right = x + width;
    svg.append(svgElement("path", { d: `M${right - wide - 34 * u} ${below + 14 * u}h${26 * u}`, class: "line other" }));
    svg.append(label(right, below + 18 * u, words, { "text-anchor": "end", class: "quiet", "font-size": 12 * u }));
  }
  svg.append(svgElement("path", { d: line(rank.ranks), class: `line${first}` }));
  rank.ranks.forEach((value, layer) => {
    svg.append(svgElement("circle", { cx: at(layer), cy: down(value), r: (narrow ? 4 : 5) * u, class: `point${first}` }));
    if (!has(layer)) return;
    // Not where the line runs: the first point's rises to the right.
    const isUnder = (layer ? other && value > other.ranks[layer] : value > rank.ranks[1]) && down(value) + 24 * u < bottom;
    svg.append(label(at(layer), isUnder ? down(value) + 19 * u : down(value) - 9 * u, value.toLocaleString("en"), { "text-anchor": "middle", "font-weight": 700, class: "num halo", "font-size": (narrow ? 11.5 : 13) * u }));
  });
}

// The colour of a word that is as surprising as its shade, 0..1, says.
const shaded = (shade) => `color-mix(in srgb, var(--orange) ${Math.round(75 * shade)}%, transparent)`;

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".guess");
  const [masks, figure, text, tables] = [".masks", ".figure", ".surprise", ".tables"].map((name) => root.querySelector(name));
  const hide = (position) => setTriggerValue("hidden", position);
  root.setAttribute("aria-label", data.said);

  const button = (name, position, pressed) => {
    const one = element("button", name);
    one.type = "button";
    one.dataset.place = `${name} ${position}`;
    one.setAttribute("aria-pressed", String(pressed));
    one.onclick = () => hide(position);
    return one;
  };

  masks.hidden = data.masks.length < 2;
  const drawMasks = () =>
    masks.replaceChildren(
      element("span", "soft", "Guesses for"),
      ...data.masks.map(({ name, guess, position, pressed }) => {
        const pill = button("pill", position, pressed);
        pill.append(name, element("b", "", ` ${guess}`));
        return pill;
      }),
    );

  const { surprise } = data;
  text.hidden = !surprise;
  const drawText = () => {
    if (!surprise) return;
    const lead = element("div", "lead"), line = element("ol"), total = element("div", "total");
    lead.append(element("b", "", surprise.title), element("span", "soft", surprise.most));
    if (surprise.scale.length) {
      const scale = element("span", "scale soft");
      scale.append(
        ...surprise.scale.map(({ bits, shade }) => {
          const swatch = element("i", "num", bits);
          swatch.style.background = shaded(shade);
          return swatch;
        }),
        "bits: 1 is ½, 2 is ¼ …",
      );
      lead.append(scale);
    }
    for (const word of surprise.words) {
      const item = element("li");
      if (word.position === null) item.append(element("span", "mark", word.text));
      else {
        const one = button("word", word.position, word.pressed);
        one.textContent = word.text;
        one.style.background = shaded(word.shade);
        one.setAttribute("aria-label", word.bits ? `Hide ${word.text}: ${word.bits} bits` : `Hide ${word.text}`);
        item.append(one);
      }
      const bits = element("small", "num", word.bits || "\u00a0");
      bits.setAttribute("aria-hidden", "true"); // the button's name has it
      item.append(bits);
      line.append(item);
    }
    total.append(element("b", "num", surprise.total), element("span", "", surprise.total_name), element("small", "", surprise.total_term));
    text.replaceChildren(lead, line, total);
    // Of a long text the hidden word is in sight.
    const pressed = line.querySelector('[aria-pressed="true"]');
    if (pressed) line.scrollTop += pressed.getBoundingClientRect().top - line.getBoundingClientRect().top - line.clientHeight / 3;
  };

  const drawFigure = () => {
    const u = rem(), width = Math.max(LEAST * u, root.clientWidth), narrow = width < NARROW * u, { panels, lens } = data;
    root.classList.toggle("narrow", narrow);
    const size = narrow ? 14 : 15, rows = Math.max(...panels.map((panel) => panel.rows.length));
    const bars = (narrow ? 25 : 24) * u * (rows + 0.5), layers = lens ? (lens.most * 30 + (lens.rank ? 190 : 50)) * u : 0;
    // On a phone the sentence of a panel has as many lines as it needs.
    const titles = panels.map((panel) => (panels.length > 1 && narrow ? linesOf(panel.title, width, 14, root) : [panel.title]));
    const further = titles.reduce((sum, lines) => sum + 19 * u * (lines.length - 1), 0);
    const height = narrow ? further + panels.length * (bars + 34 * u) + (lens ? layers + 74 * u : 0) : data.height;
    const isOne = panels.length === 1, marks = isOne ? [] : panels.filter((panel, place) => panels.findIndex((other) => other.mark === panel.mark) === place);
    const above = marks.length ? 22 * u : 0; // what the colours mean in all panels
    const svg = picture(width, height + above, data.said);
    marks.forEach((panel, place) => svg.append(heading(place * 160 * u, 14 * u, "", "", 14, panel.mark, panel.known)));
    if (narrow) {
      let top = above;
      for (const [place, panel] of panels.entries()) {
        titles[place].forEach((line, row) => {
          top += row && 19 * u;
          svg.append(heading(0, top + 14 * u, line, row ? "" : panel.soft, 14, isOne ? panel.mark : "", panel.known));
        });
        drawBars(svg, panel, panels, 0, top + 24 * u, width, bars, size, root);
        top += bars + 38 * u;
      }
      if (lens) {
        const left = lens.rank ? 46 * u : 0, soft = atLayers(lens, stepOf(lens, width - left, true));
        svg.append(heading(0, top + 10 * u, lens.title, soft, 14));
        const below = drawNote(svg, lens, stepOf(lens, width - left, true), 0, top + 28 * u, width, root);
        drawLayers(svg, lens, left, top + 44 * u + below, width - left, height + above - top - 46 * u - below, true, root);
      }
    } else if (lens) {
      const left = Math.min(320 * u, width * 0.3), x = left + 76 * u;
      svg.append(heading(0, 14 * u, panels[0].title, panels[0].soft, 14, panels[0].mark, panels[0].known));
      drawBars(svg, panels[0], panels, 0, 24 * u, left, height - 28 * u, size, root);
      svg.append(heading(x + 2, 14 * u, lens.title, atLayers(lens, stepOf(lens, width - x, false)), 14));
      const below = drawNote(svg, lens, stepOf(lens, width - x, false), x + 2, 31 * u, width - x, root);
      drawLayers(svg, lens, x, 46 * u + below, width - x, height - 48 * u - below, false, root);
    } else {
      const gap = 48 * u, each = (width - gap * (panels.length - 1)) / panels.length;
      panels.forEach((panel, place) => {
        const x = place * (each + gap), [title] = fitted(panel.title, each, 15, 13, 700, root);
        svg.append(heading(x, above + 14 * u, title, panel.soft, 15, isOne ? panel.mark : "", panel.known));
        drawBars(svg, panel, panels, x, above + 26 * u, each, height - 30 * u, size, root);
      });
    }
    figure.replaceChildren(svg);
    root.dataset.drawn = `${root.clientWidth}`;
  };

  tables.replaceChildren(...data.tables.map(({ caption, names, rows }) => valuesTable(caption, names, rows)));
  drawKeepingFocus(root, "place", () => {
    drawMasks();
    drawText();
    drawFigure();
  });
  drawAtEachWidth(root, drawFigure);
  return () => root.bertInternalsObserver.disconnect();
}
