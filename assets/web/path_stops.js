// The whole path: how each stop is drawn, open (wide) and closed (narrow, still alive).
// `area` is where a stop stands: x, width, top (of its drawing), head (of its column titles), bottom, y(token), pitch, isNarrow.

const fade = (weight) => 0.16 + 0.84 * Math.min(1, weight * 1.8);
const thickness = (path, weight, part = 1) => Math.max(0.6, weight * 15 * path.pen.scale) * part;
const frameOf = (path, token) => (token === path.state.token ? 2 : 0);
const choose = (path, changes) => () => path.set(changes);

// Draw something for each token that has a row of its own.
function eachToken(path, draw) {
  for (const row of path.rows) if (row.token !== undefined) draw(row.token);
}
// And for each row that stands for the tokens out of the window, as [first, last].
function eachRest(path, draw) {
  for (const row of path.rows) if (row.rest) draw(row.rest);
}
const tokensOf = ([first, last]) => Array.from({ length: last - first + 1 }, (_, place) => first + place);
// Of a value for each token: those of the rows, the values of a rest added up, as [value, y].
function byRow(path, area, values) {
  return path.rows.map((row) => row.rest ? [total(tokensOf(row.rest).map((token) => values[token])), area.y(row.rest[0]), null] : [values[row.token], area.y(row.token), row.token]);
}

function drawRests(path, area, x, say = () => "") {
  eachRest(path, (rest) => {
    const more = say(rest), y = area.y(rest[0]), words = `${rest[1] - rest[0] + 1} more${more ? ` · ${more}` : ""}`;
    restSpot(path, rest, x, y, path.pen.text(words, x, y, { size: 12, colour: path.pen.colours.quiet }));
  });
}

function restSpot(path, rest, x, y, width) {
  const isAbove = rest[1] < path.state.token;
  path.pen.spot(x, y - 10, width, 20, { hint: `${several(rest[1] - rest[0] + 1, "more piece")} ${isAbove ? "above" : "below"}. Click to show ${rest[0] === rest[1] ? "it" : "them"}.`, press: () => path.show(rest) });
}

function chip(path, token, x, y, width, { size = 13.5, pitch = 40 * path.pen.scale } = {}) {
  const { pen, facts } = path, { colours, scale } = pen, { piece, special, id } = facts.tokens[token], isChosen = token === path.state.token;
  const height = Math.min(27 * scale, pitch - 4 * scale);
  pen.box(x, y - height / 2, width, height, {
    fill: isChosen ? colours.accent : special ? null : colours.panel, stroke: isChosen ? colours.accent : colours.line, dash: special && !isChosen ? [3, 3] : [],
  });
  pen.text(piece, x + width / 2, y, {
    size: Math.min(size, (height / scale) * 0.62), align: "center", bold: isChosen, most: width - 8 * scale,
    colour: isChosen ? colours.ground : special ? colours.quiet : colours.text,
  });
  pen.spot(x, y - height / 2, width, height, { hint: `${quoted(path, token)}: piece ${token} (counted from 0), id ${id}. Click to follow it.`, press: choose(path, { token }), token });
}

// A strip for each token, one below the other.
function stripRows(path, area, key, values, name, width, { dx = 0, ...more } = {}) {
  const height = Math.min(20 * path.pen.scale, area.pitch * 0.6);
  eachToken(path, (token) => path.pen.strip(`${key} ${token}`, () => values(token), path.facts.dim, area.x + dx, area.y(token) - height / 2, width, height, {
    frame: frameOf(path, token), name: `${quoted(path, token)}, ${name}`, token, ...more,
  }));
}

// Vectors one below the other with signs between them; pointing at a cell shows this cell's number in all of them.
function stack(path, x, y, height, items, { width, noteWidth = 0, from = 0, of = items.length, isBare = false, isNarrow = false } = {}) {
  const { pen, state } = path, { colours, scale } = pen;
  const all = total(items.map((item) => item.weight ?? 1)), places = [];
  let top = y;
  items.forEach((item, number) => {
    const slot = (height * (item.weight ?? 1)) / all, count = item.count ?? path.facts.dim, rows = item.rows ?? 1;
    const thick = Math.max(8, Math.round(rows > 1 ? Math.min(slot - 34 * scale, 56 * scale) : Math.min(34 * scale, slot - 27 * scale)));
    const at = top + 22 * scale, cell = state.cell !== null && state.cell.count === count && rows === 1 ? state.cell.at : null;
    places.push({ x, y: at, width, height: thick });
    path.appear(number + from, of, () => {
      if (item.sign) pen.text(item.sign, x - 15 * scale, at + thick / 2, { size: 17, align: "center", colour: colours.quiet });
      const values = () => path.numbers.once(`stack ${item.key}`, item.values), beside = isNarrow && cell !== null ? numberAbove(path, item, values, cell, { x, y: top + 9 * scale, width, isFirst: number === 0, items }) : 0;
      const room = item.most ?? (isNarrow || number === 0 ? width : width + 56 * scale) - beside; // numbers stand beside the strips, not beside the names
      const labelled = pen.text(item.label, x, top + 9 * scale, { bold: !item.isAside, colour: item.isAside ? colours.quiet : colours.text, most: room });
      const sub = pen.fitting(item.sub ?? [], room - labelled - 8 * scale, { size: 12 });
      if (sub) pen.text(sub, x + labelled + 8 * scale, top + 9 * scale, { size: 12, colour: colours.quiet });
      pen.strip(item.key, values, count, x, at, width, thick, { rows, frame: item.frame, name: item.name ?? item.label, more: item.more, press: item.press && ((px) => item.press(Math.min(0.999, Math.max(0, (px - x) / width)))) });
      if (item.mark) pen.box(x + item.mark[0] * width, at - 3, (item.mark[1] - item.mark[0]) * width, thick + 6, { round: 0, stroke: colours.accent, thick: 2 });
      if (!isNarrow) writeNumber(path, item, values, cell, { x: x + width + 10 * scale, y: at + thick / 2, top: top + 9 * scale, isFirst: number === 0, isBare, items });
      if (item.note && noteWidth > 90 * scale) pen.lines(item.note, x + width + 74 * scale, at + thick / 2, noteWidth, { colour: colours.quiet, centred: true });
      if (cell !== null) {
        const middle = x + ((cell + 0.5) / count) * width;
        for (const end of [at - 4, at + thick]) pen.stroke([[middle, end], [middle, end + 4]], colours.text);
      }
    });
    top += slot;
  });
  return places;
}

// What rounding leaves of the sum of a cell.
function restOf(path, item, value, cell, items) {
  const terms = (item.sum ?? []).map((key) => path.numbers.once(`stack ${key}`, items.find((other) => other.key === key).values)[cell]);
  return terms.length ? missing(terms, value, 3) : 0;
}

// Above a strip, where there is no room beside it: the number of the chosen cell. Returns what room it takes.
function numberAbove(path, item, values, cell, { x, y, width, isFirst, items }) {
  const { pen } = path, { colours, scale } = pen, value = values()[cell], rest = restOf(path, item, value, cell, items), look = { mono: true, size: 12.5 };
  const isNamed = isFirst && pen.widthOf(`cell ${cell}: ${shown(value, 3)}`, look) <= width - pen.widthOf(item.label, { bold: true }) - 8 * scale;
  const words = `${isNamed ? `cell ${cell}: ` : ""}${shown(value, 3)}`;
  let room = pen.text(words, x + width, y, { ...look, align: "right" }) + 8 * scale;
  if (rest) room += pen.text(`rounding ${signed(rest, 3)}`, x + width - room, y, { size: 11, colour: colours.quiet, align: "right" }) + 8 * scale;
  return room;
}

// At the right of a strip: its length, or the number of the cell that is pointed at, with what rounding leaves of a sum.
function writeNumber(path, item, values, cell, { x, y, top, isFirst, isBare, items }) {
  const { pen } = path, { colours, scale } = pen;
  if (item.isWide) return;
  if (isFirst && !item.most && !(isBare && cell === null)) pen.text(cell === null ? "length" : `cell ${cell}`, x, top, { size: 12, colour: colours.quiet });
  if (cell !== null) {
    pen.text(shown(values()[cell], 3), x, y, { mono: true, colour: item.isAside ? colours.quiet : colours.text });
    const rest = restOf(path, item, values()[cell], cell, items);
    if (rest) ["rounding", signed(rest, 3)].forEach((words, line) => pen.text(words, x, y + (16 + 13 * line) * scale, { size: 11, colour: colours.quiet, mono: line === 1 }));
  } else if (!isBare && !item.isAside) {
    pen.text(shown(lengthOf(values())), x, y, { size: 12, colour: colours.quiet });
    pen.spot(x - 6, y - 12 * scale, 60 * scale, 24 * scale, { hint: `The length of this vector: ${shown(lengthOf(values()))}. Point at a cell to see its number in every strip.` });
  }
}

// The terms of one number of a norm.
const normTerms = (path, vector, name) => (at) => {
  const { mean, spread, scale, shift } = path.numbers.normed(vector(), name), { isCentred } = path.facts.norms[name];
  const terms = [vector()[at], mean, spread, scale[at], shift[at]], digits = enough(terms, (value, middle, size, by, more) => ((value - middle) / size) * by + more, 3, 3);
  const [value, middle, size, by] = terms.map((term) => shown(term, digits));
  return ` ≈ ${isCentred ? `(${value} less the mean ${middle})` : value} ÷ ${isCentred ? "spread" : "size"} ${size} × ${by}${isCentred ? ` ${signed(shift[at], digits)}` : ""}`;
};

// Small bars for every head of the block: where the chosen token looks in each.
function headTiles(path, x, y, width, height, words) {
  const { pen, numbers, facts, state: { token, block, head } } = path, { colours, scale } = pen;
  pen.text(words, x, y - 9 * scale, { size: 11.5, colour: colours.quiet });
  const each = width / facts.heads, tile = each - Math.min(6 * scale, each * 0.15);
  for (let other = 0; other < facts.heads; other++) {
    const left = x + other * each, weights = numbers.weights(block, other, token), isChosen = other === head, most = largest(weights);
    pen.box(left, y, tile, height, { round: 4, fill: isChosen ? colours.ground : null, stroke: isChosen ? colours.accent : colours.line, thick: isChosen ? 2 : 1 });
    if (tile > 16 * scale) pen.text(String(other), left + 4 * scale, y + 9 * scale, { size: 10.5, bold: isChosen, colour: isChosen ? colours.accent : colours.quiet });
    pen.context.fillStyle = isChosen ? colours.accent : colours.quiet;
    const pitch = tile / weights.length;
    weights.forEach((weight, key) => {
      const bar = Math.max(1, (weight / weights[most]) * (height - 19 * scale));
      if (weight > 0) pen.context.fillRect(left + key * pitch + 0.5, y + height - 2 - bar, Math.max(1, pitch - 1), bar);
    });
    pen.spot(left, y, tile, height, { hint: `Head ${other}: ${quoted(path, token)} looks most at ${most === token ? "itself" : quoted(path, most)}, ${percent(weights[most])} (its longest bar). Click to choose it.`, press: choose(path, { head: other }) });
  }
}

function loading(path, area) {
  path.pen.text("Loading this block …", area.x + area.width / 2, (area.top + area.bottom) / 2, { size: 15, align: "center", colour: path.pen.colours.quiet });
}

// Two factors with so many digits that their product can be checked.
function productOf(one, other, digits) {
  const more = enough([one, other], times, digits, Math.min(digits, 3));
  return `${shown(one, more)} × ${shown(other, more)}`;
}

const scaleName = ({ scale, headSize }) => (Math.abs(scale * Math.sqrt(headSize) - 1) < 1e-6 ? `÷ √${headSize}` : `× ${shown(scale, 4)}`);

// The width of strips that have their lengths and notes at their right.
const besideNotes = ({ pen }, area, count) => pen.cells(count, Math.min(area.width * 0.66, area.width - 240 * pen.scale));

const BY_CELL = ["cell by cell: lengths do not simply add", "lengths do not add", "cell by cell"];

const OPEN = {
  pieces(path, area) {
    const { pen, facts, state } = path, { colours, scale } = pen, { isNarrow } = area;
    const chips = isNarrow ? area.x + 96 : area.x + area.width * 0.25, width = (isNarrow ? 88 : 104) * scale;
    const ids = chips + width + (isNarrow ? 52 : 78 * scale), notes = ids + (isNarrow ? 12 : 26 * scale);
    for (const [words, x, align] of [["your text", chips - 22 * scale, "right"], ["piece", chips + width / 2, "center"], ["id", ids, "right"], [isNarrow ? "" : "what it is", notes, "left"]])
      pen.text(words, x, area.head, { size: 12, colour: colours.quiet, align });
    const first = new Map();
    facts.tokens.forEach((token, place) => first.has(token.id) || first.set(token.id, place));
    drawRests(path, area, chips);
    eachToken(path, (place) => path.appear(place * 0.5, facts.tokens.length * 0.5, () => {
      const token = facts.tokens[place], y = area.y(place), isChosen = place === state.token;
      if (token.text) {
        pen.text(token.text, chips - 22 * scale, y, { size: isNarrow ? 14 : Math.min(17, area.pitch / scale * 0.55), align: "right", bold: isChosen, most: chips - 26 * scale - area.x });
        pen.stroke([[chips - 17 * scale, y], [chips - 4 * scale, y]], colours.line);
      }
      chip(path, place, chips, y, width, { pitch: area.pitch, size: isNarrow ? 13 : 14 });
      pen.text(String(token.id), ids, y, { mono: true, align: "right", size: 13, bold: isChosen, colour: isChosen ? colours.accent : colours.text });
      const look = { size: isNarrow ? 11.5 : 13 }, forms = pieceNote(facts, place, first), most = area.x + area.width - notes;
      pen.text(pen.fitting(forms, most, look) || forms[forms.length - 1], notes, y, { ...look, colour: colours.quiet, most });
    }));
  },

  zero(path, area) {
    const { pen, numbers, facts, state: { token } } = path, { scale } = pen, width = area.isNarrow ? 288 : besideNotes(path, area, facts.dim), x = area.x + (area.isNarrow ? 24 : 46 * scale);
    const about = {
      word: ["word vector", `row ${facts.tokens[token].id} of ${grouped(facts.vocabulary)}`, "Which piece it is: learnt once, the same in every sentence."],
      position: ["position vector", `row ${facts.tokens[token].row} of ${grouped(facts.maxPositions)}`, "Where it stands."],
      segment: ["segment vector", `row ${facts.tokens[token].segment}`, "First or second text."],
      task: ["task vector", "", "What the vector is for."],
    };
    const items = facts.parts.map(({ name, size }, number) => ({
      key: `part ${name} ${token}`, sign: number ? "+" : "", label: about[name][0], sub: about[name][1], note: about[name][2], count: size, values: () => numbers.part(name, token),
    }));
    if (facts.parts.length > 1)
      items.push({ key: `parts ${token}`, sign: "=", label: "sum", note: "Number by number.", count: facts.parts[0].size, sum: facts.parts.map(({ name }) => `part ${name} ${token}`), values: () => numbers.partsSum(token) });
    const steps = facts.zeroSteps, last = { key: `layer 0 ${token}`, frame: 2, values: () => numbers.layer(0, token) };
    const isNorm = steps.length === 1 && steps[0] === "norm";
    if (steps.length) items.push({ ...last, sign: "→", label: `${steps.join(", then ")}: layer 0`, more: isNorm && facts.norms["layer 0"] ? normTerms(path, () => numbers.partsSum(token), "layer 0") : undefined, note: steps.includes("norm") ? "Brought to about the same size, so that no token is louder than another." : "" });
    else if (facts.parts.length > 1) items.push({ ...last, sign: "=", label: "layer 0" });
    else Object.assign(items[0], { label: "word vector: layer 0", frame: 2 });
    const most = Math.min(area.bottom - area.top, items.length * 118 * scale);
    stack(path, x, area.top, area.isNarrow ? Math.min(area.bottom - area.top, items.length * 64) : most, items, { width, noteWidth: area.x + area.width - x - width - 84 * scale, isNarrow: area.isNarrow });
  },

  look(path, area) {
    const { pen, numbers, facts, state } = path, { colours, scale } = pen, { token, block, head } = state, { isNarrow } = area;
    if (!numbers.hasBlock(block)) return loading(path, area);
    const weights = numbers.weights(block, head, token), scores = numbers.scores(block, head, token);
    const partner = state.partner !== null && state.partner < facts.tokens.length ? state.partner : largest(weights);
    const x = area.x + 14 * scale, start = isNarrow ? x + 66 : area.x - 5 * scale, end = start + (isNarrow ? 50 : 80 * scale), names = end + 8 * scale, nameWidth = (isNarrow ? 60 : 70 * scale);
    const keys = names + nameWidth + 4 * scale, hasKeys = !isNarrow && area.width > 520 * scale, keyWidth = hasKeys ? pen.cells(facts.headSize, 96 * scale) : 0, matches = keys + keyWidth + (hasKeys ? 60 : 52) * scale, bars = matches + 14 * scale, barWidth = isNarrow ? 32 : 50 * scale;
    if (hasKeys) pen.text("key", keys + keyWidth / 2, area.head, { size: 12, colour: colours.quiet, align: "center" });
    pen.text("match", matches, area.head, { size: 12, colour: colours.quiet, align: "right" });
    pen.text("share", bars, area.head, { size: 12, colour: colours.quiet });
    pen.spot(matches - 50 * scale, area.head - 10, 54 * scale, 20, { hint: `query · key ${scaleName(facts)}: the ${facts.headSize} products added up${facts.terms.length ? `, and ${facts.terms.join(" and ")} added` : ""}` });
    pen.spot(bars, area.head - 10, 60 * scale, 20, { hint: "softmax: e to the power of the match, divided by the sum over all tokens" });
    if (isNarrow) chip(path, token, x - 8, area.y(token), 68, { pitch: area.pitch, size: 12.5 });
    byRow(path, area, weights).forEach(([weight, y]) => weight > 0 && path.appear(1, 3, () => pen.curve(start, area.y(token), end, y, thickness(path, weight, 0.9), colours.accent, fade(weight))));
    drawRests(path, area, names, (rest) => `${percent(total(tokensOf(rest).map((key) => weights[key])))} together`);
    eachToken(path, (key) => {
      const y = area.y(key), isHidden = scores[key] === -Infinity, isOpen = key === partner;
      if (isOpen) pen.box(names - 4 * scale, y - area.pitch / 2 + 2, bars + barWidth + 46 * scale - names, area.pitch - 4, { stroke: colours.line });
      pen.text(facts.tokens[key].piece, names, y, { bold: key === token, colour: isHidden ? colours.quiet : key === token ? colours.accent : colours.text, alpha: isHidden ? 0.7 : 1, most: nameWidth });
      const height = Math.min(16 * scale, area.pitch - 6);
      if (hasKeys) pen.strip(`key ${block} ${head} ${key}`, () => numbers.ofHead("keys", block, head, key), facts.headSize, keys, y - height / 2, keyWidth, height, { alpha: isHidden ? 0.12 : 1, name: `key of ${named(path, key)}`, token: key });
      if (isHidden) pen.text("hidden", matches, y, { size: 12, colour: colours.quiet, align: "right" });
      else {
        pen.text(shown(scores[key], isNarrow ? 1 : 2), matches, y, { mono: true, align: "right" });
        path.appear(1.5, 3, () => {
          const bar = Math.max(1, weights[key] * barWidth);
          pen.box(bars, y - 6 * scale, bar, 12 * scale, { round: 0, fill: colours.accent, alpha: fade(weights[key]) });
          pen.text(percent(weights[key]), bars + bar + 6 * scale, y, { bold: weights[key] > 0.2 });
        });
      }
      pen.spots.unshift({ x: area.x, y: y - area.pitch / 2, width: bars + barWidth + 40 * scale - area.x, height: area.pitch, press: choose(path, { token: key }), partner: key, token: key,
        hint: isHidden ? `${named(path, key)} is ${numbers.mode === "left" && key > token ? "to the right" : "too far away"}: hidden` : `${named(path, token)} to ${named(path, key)}: match ${shown(scores[key])}, share ${percent(weights[key])}.${isNarrow ? "" : " Click to follow it."}` });
    });
    const inSight = byRow(path, area, weights).filter(([, , key]) => key === null || scores[key] !== -Infinity).map(([weight]) => weight), rest = missing(inSight, 1, 2), foot = area.y(facts.tokens.length - 1) + area.pitch / 2 + 10 * scale;
    pen.stroke([[bars, foot - 8 * scale], [bars + barWidth + 40 * scale, foot - 8 * scale]], colours.line);
    pen.text("100\u00a0%", bars, foot + 3 * scale, { size: 12.5, bold: true });
    if (rest) pen.text(`rounding ${signed(rest * 100, 0)}\u00a0%`, bars - 12 * scale, foot + 3 * scale, { size: 11, colour: colours.quiet, align: "right" });
    if (isNarrow) {
      const end = oneMatch(path, { x: area.x + 24, width: 288, top: foot + 30, height: 150, token, block, head, partner, isNarrow, foot: foot + 196 });
      headTiles(path, area.x + 4, end + 24, area.width, 40, `the ${several(facts.heads, "head")}, each to its own largest share`);
      return;
    }
    const left = bars + barWidth + 76 * scale, width = pen.cells(facts.headSize, Math.max(90 * scale, area.x + area.width - 10 * scale - left));
    pen.box(left - 18 * scale, area.y(token) - area.pitch / 2, area.x + area.width + 5 * scale - left + 18 * scale, area.pitch, { round: 0, fill: colours.ground });
    pen.box(left - 18 * scale, area.y(token) - area.pitch / 2, area.x + area.width + 5 * scale - left + 18 * scale, area.pitch, { round: 0, fill: colours.panel });
    pen.stroke([[left - 18 * scale, area.top + 4 * scale], [left - 18 * scale, area.bottom - 74 * scale]], colours.line);
    const hasTiles = area.bottom - area.top > 390 * scale; // on a low screen the heads stand below the drawing alone
    pen.text("one match, opened", left, area.head, { size: 12, colour: colours.quiet });
    oneMatch(path, { x: left, width, top: area.top + 20 * scale, height: 158 * scale, token, block, head, partner, isNarrow, foot: area.top + 190 * scale, end: area.x + area.width - 8 * scale, most: area.bottom - (hasTiles ? 66 : 6) * scale });
    if (hasTiles) headTiles(path, area.x + 14 * scale, area.bottom - 46 * scale, area.width - 20 * scale, 40 * scale, `the ${several(facts.heads, "head")}`);
  },

  take(path, area) {
    const { pen, numbers, facts, state: { token, block, head } } = path, { colours, scale } = pen, { isNarrow } = area;
    if (!numbers.hasBlock(block)) return loading(path, area);
    const weights = numbers.weights(block, head, token), x = area.x + 14 * scale, values = isNarrow ? x + 76 : x + 68 * scale, valueWidth = pen.cells(facts.headSize, 64 * scale);
    const width = isNarrow ? 280 : pen.cells(facts.dim, Math.min(area.width * 0.52, area.x + area.width - values - valueWidth - 160 * scale)), left = isNarrow ? area.x + 48 : area.x + area.width - width - 68 * scale, top = isNarrow ? area.y(facts.tokens.length - 1) + area.pitch : area.top - 6 * scale;
    const took = numbers.took(block, token), most = largest(took, token), shares = values + valueWidth + (isNarrow ? 66 : 8 * scale); // of all heads
    pen.text(isNarrow ? `share in head ${head} × value` : "share × value", values + valueWidth + (isNarrow ? 40 : 0), area.head, { size: 12, colour: colours.quiet, align: "right" });
    pen.text(facts.heads > 1 ? "all heads" : "all", shares, area.head, { size: 12, colour: colours.quiet });
    byRow(path, area, took).forEach(([share, y, key]) => pen.text(percent(share), shares, y, { size: 12, bold: key === most, colour: key === most ? colours.text : colours.quiet }));
    const slot = left + ((head + 0.5) * width) / facts.heads, knot = left - 18 * scale;
    drawRests(path, area, x, (rest) => percent(total(tokensOf(rest).map((key) => weights[key]))));
    eachToken(path, (key) => {
      const y = area.y(key), isHidden = !numbers.mayLook(block, token, key), height = Math.min(16 * scale, area.pitch - 6);
      pen.text(facts.tokens[key].piece, x, y, { bold: key === token, colour: isHidden ? colours.quiet : key === token ? colours.accent : colours.text, alpha: isHidden ? 0.7 : 1, most: values - x - 4 });
      pen.strip(`weighted ${block} ${head} ${token} ${key}`, () => numbers.weighted(block, head, token, key), facts.headSize, values, y - height / 2, valueWidth, height, { alpha: isHidden ? 0.3 : 1, name: `${percent(weights[key])} of the value of ${quoted(path, key)}`, token: key });
      if (isNarrow) pen.text(isHidden ? "hidden" : percent(weights[key]), values + valueWidth + 8, y, { size: 12, colour: colours.quiet });
      pen.spots.unshift({ x: area.x, y: y - area.pitch / 2, width: values + valueWidth - area.x, height: area.pitch, press: choose(path, { token: key }), token: key, hint: `${quoted(path, token)} takes ${percent(weights[key])} of the value of ${quoted(path, key)} in head ${head}. Click to follow ${quoted(path, key)}.` });
    });
    const came = `layer ${block} ${token}`, added = `attention ${block} ${token}`;
    const items = [
      { key: came, label: `${quoted(path, token)} as it came`, sub: `layer ${block}`, frame: 2, values: () => numbers.layer(block, token) },
      { key: `joined ${block} ${token}`, isAside: true, label: `${several(facts.heads, "head")} joined`, sub: `head ${head} framed`, count: facts.heads * facts.headSize, values: () => numbers.joined(block, token), mark: [head / facts.heads, (head + 1) / facts.heads],
        press: (part) => path.set({ head: Math.floor(part * facts.heads) }), more: (at) => ` (head ${Math.floor(at / facts.headSize)}; click to choose it)` },
      { key: added, sign: "→", label: "output matrix", sub: ["what attention adds", "is added"], values: () => numbers.step("attention_output", block, token) },
      { key: `sum ${block} ${token}`, sign: "=", label: "sum with what came in", sub: facts.normsFirst ? [`after attention; ${BY_CELL[0]}`, "after attention"] : BY_CELL, sum: [added, came], values: () => numbers.afterTake(block, token), frame: facts.normsFirst ? 2 : 0 },
    ];
    if (!facts.normsFirst) items.push({ key: `after ${block} ${token}`, sign: "→", label: "norm", sub: ["after attention, brought to about the same size", "after attention, about the same size", "after attention"], frame: 2, values: () => numbers.step("after_attention", block, token), more: normTerms(path, () => numbers.afterTake(block, token), `${block}.after attention`) });
    const places = stack(path, left, top, isNarrow ? 300 : Math.min(area.bottom - 70 * scale - top, items.length * 108 * scale), items, { width, of: 6, from: 1, isNarrow });
    const [, joined] = places, sum = places[items.findIndex((item) => item.sign === "=")], meet = joined.y + joined.height + 10 * scale;
    path.appear(3, 5, () => residual(path, left, places[0], sum, "attention"));
    if (!isNarrow) {
      byRow(path, area, weights).forEach(([weight, y]) => weight > 0 && path.appear(0.5, 6, () => pen.curve(shares + 36 * scale, y, knot, meet, thickness(path, weight, 0.6), colours.accent, fade(weight))));
      path.appear(1, 6, () => pen.stroke([[knot, meet], [slot, meet], [slot, joined.y + joined.height + 4 * scale]], colours.accent, 2 * scale));
    }
    if (!isNarrow) headTiles(path, area.x + 14 * scale, area.bottom - 46 * scale, area.width - 20 * scale, 40 * scale, `the ${several(facts.heads, "head")} of block ${block}, each drawn to its own largest share`);
  },

  alone(path, area) {
    const { pen, numbers, facts, state: { token, block } } = path, { scale } = pen, { isNarrow } = area;
    if (!numbers.hasBlock(block)) return loading(path, area);
    const width = isNarrow ? 280 : besideNotes(path, area, facts.dim), x = area.x + (isNarrow ? 48 : 52 * scale), neurons = numbers.step("neurons", block, token);
    const loudest = Array.from(neurons.keys()).sort((a, b) => Math.abs(neurons[b]) - Math.abs(neurons[a])).slice(0, 3), rows = facts.inner % 4 ? 1 : 4;
    const isLast = block + 1 === facts.blocks, came = `after ${block} ${token}`, fed = `fed ${block} ${token}`;
    const where = isLast ? "This is the last layer." : `This goes into block ${block + 1}.`;
    const items = [{ key: came, label: `${quoted(path, token)} after attention`, frame: 2, values: () => numbers.step("after_attention", block, token), note: "What comes in: itself and what it took." }];
    if (facts.normsFirst) items.push({ key: `read ${block} ${token}`, sign: "→", label: "norm", sub: "a copy, for this step alone", values: () => numbers.step("feed_forward_reads", block, token) });
    items.push(
      { key: `neurons ${block} ${token}`, sign: "→", label: `${grouped(facts.inner)} neurons`, sub: rows > 1 ? "in four lines" : "", count: facts.inner / rows, rows, weight: 1.35, isWide: true, values: () => neurons, note: `Each is on or nearly silent. Loudest: ${loudest.map((place) => `no. ${place} (${shown(neurons[place], 1)})`).join(", ")}.` },
      { key: fed, sign: "→", label: `back to ${facts.dim}`, sub: ["what feed-forward adds", "is added"], values: () => numbers.step("feed_forward_output", block, token), note: "The neurons that are on write their part." },
    );
    const hasNorm = !facts.normsFirst || (isLast && facts.hasFinalNorm);
    items.push({ key: `alone ${block} ${token}`, sign: "=", label: hasNorm ? "sum with what came in" : `sum with what came in: layer ${block + 1}`, sub: BY_CELL, sum: [came, fed], values: () => numbers.afterAlone(block, token), note: `The old went round the neurons (residual) and is kept; the new is added.${hasNorm ? "" : ` ${where}`}`, frame: hasNorm ? 0 : 2 });
    if (hasNorm) items.push({ key: `next ${block} ${token}`, sign: "→", label: `norm: layer ${block + 1}`, frame: 2, values: () => numbers.layer(block + 1, token), more: normTerms(path, () => numbers.afterAlone(block, token), facts.normsFirst ? "final" : `${block}.after feed-forward`), note: where });
    const places = stack(path, x, area.top, Math.min(area.bottom - area.top, items.length * 110 * scale), items, { width, noteWidth: area.x + area.width - x - width - 84 * scale, isNarrow });
    const sum = places[items.findIndex((item) => item.sign === "=")];
    path.appear(3, 5, () => residual(path, x, places[0], sum, "the feed-forward part"));
  },

  blocks(path, area) {
    const { pen, numbers, facts, state: { token, block: opened } } = path, { colours, scale } = pen, { isNarrow } = area, last = facts.blocks;
    const x = area.x + (isNarrow ? 64 : 14 * scale), most = (area.width - (isNarrow ? 76 : 24 * scale)) / (last + 1), width = Math.min(isNarrow ? 24 : pen.cells(64, 64 * scale), Math.max(6, most * 0.55)), step = (area.x + area.width - 12 * scale - x - width) / last;
    const every = Math.ceil((isNarrow ? 18 : 46) * scale / step); // so that names do not touch
    const isNamed = step >= (isNarrow ? 48 : 60) * scale;
    if (isNarrow && !isNamed) pen.text("columns: layers", area.x + area.width - 4, area.head - 24, { size: 12, colour: colours.quiet, align: "right" });
    drawRests(path, area, isNarrow ? area.x + 8 : x);
    if (isNarrow) eachToken(path, (other) => pen.text(facts.tokens[other].piece, area.x + 8, area.y(other), { size: 12.5, bold: other === token, colour: other === token ? colours.accent : colours.text, most: 52 }));
    for (let layer = 0; layer <= last; layer++) {
      const left = x + layer * step;
      if (layer % every === 0 || layer === last) pen.text(isNamed ? `layer ${layer}` : String(layer), left + width / 2, area.head, { size: 12, colour: colours.quiet, align: "center" });
      eachToken(path, (other) => {
        const height = Math.min(18 * scale, area.pitch * 0.6);
        pen.strip(`layer ${layer} ${other}`, () => numbers.layer(layer, other), facts.dim, left, area.y(other) - height / 2, Math.round(width), height, { frame: frameOf(path, other), name: `${quoted(path, other)}, layer ${layer}`, token: other, press: choose(path, { token: other }) });
      });
      if (layer < last) path.appear(layer, last, () => {
        const took = numbers.took(layer, token), order = took.map((share, other) => [share, other]).sort((a, b) => b[0] - a[0]).slice(0, 4), best = largest(took, token), from = left + width + 3, to = left + step - 3;
        for (const [share, other] of order) if (share > 0.02) pen.curve(from, area.y(other), to, area.y(token), thickness(path, share, 0.8), colours.accent, 0.25 + 0.75 * Math.min(1, share * 2.5));
        if (step > (isNarrow ? 34 : 60 * scale) && best >= 0 && took[best] > 0) {
          const middle = (from + to) / 2, y = area.bottom - (isNarrow ? 22 : 67 * scale);
          pen.text(facts.tokens[best].piece, middle, y, { size: 12, align: "center", bold: layer === opened, colour: layer === opened ? colours.accent : colours.text, most: step - 4 });
          pen.text(percent(took[best]), middle, y + 14 * scale, { size: 11.5, align: "center", colour: colours.quiet });
        }
        pen.spot(left + width, area.top, step - width, area.bottom - area.top - 60 * scale, { hint: `Block ${layer}: ${quoted(path, token)} took ${order.map(([share, other]) => `${percent(share)} from ${other === token ? "itself" : quoted(path, other)}`).join(", ")}. Click to open this block.`, press: choose(path, { block: layer, stop: "look" }) });
      });
      if (layer % every) continue;
      const cosine = cosineOf(numbers.layer(layer, token), numbers.layer(0, token)), radius = Math.min((isNarrow ? 10 : 14) * scale, step * every * 0.4), cx = left + width / 2, cy = isNarrow ? area.y(facts.tokens.length - 1) + area.pitch / 2 + 18 : area.bottom - 22 * scale;
      pen.context.beginPath();
      pen.context.arc(cx, cy, radius, -Math.PI, 0);
      Object.assign(pen.context, { strokeStyle: colours.line, lineWidth: 1 });
      pen.context.stroke();
      pen.dial(cx, cy, radius, cosine);
      pen.text(`${shown(degreesOf(cosine), 0)}°`, cx, cy + 12 * scale, { size: isNarrow ? 11 : 12, align: "center", bold: layer === last });
      pen.spot(cx - radius - 4, cy - radius - 4, radius * 2 + 8, radius + 24, { hint: `Layer ${layer}: cosine ${shownCosine(cosine)} with its own layer 0, an angle of ${shown(degreesOf(cosine), 0)}°` });
    }
  },

  pool(path, area) {
    const { pen, numbers, facts, state } = path, { colours, scale } = pen, { isNarrow } = area, last = facts.blocks, count = facts.tokens.length;
    const x = area.x + 14 * scale, strips = isNarrow ? x + 76 : x + 4 * scale, stripWidth = pen.narrow(96 * scale), width = isNarrow ? 288 : pen.cells(facts.dim, Math.min(area.width * 0.64, area.width - 220 * scale)), left = isNarrow ? area.x + 24 : area.x + area.width - width - 66 * scale, knot = left - 26 * scale, top = isNarrow ? area.y(count - 1) + area.pitch : area.top + 8 * scale;
    const taken = facts.weights ? facts.weights.filter((weight) => weight > 0).length : count;
    const how = { mean: `last layer, each × 1/${taken}`, cls: "last layer, the first token", max: "last layer, the largest", last: "last layer, the last token" }[facts.pooling];
    pen.text(how, strips, area.head, { size: 12, colour: colours.quiet });
    drawRests(path, area, strips);
    eachToken(path, (token) => {
      const y = area.y(token), height = Math.min(18 * scale, area.pitch * 0.7), counts = !facts.weights || facts.weights[token] > 0;
      if (isNarrow) pen.text(facts.tokens[token].piece, x, y, { bold: token === state.token, colour: token === state.token ? colours.accent : colours.text, most: 72 });
      pen.strip(`layer ${last} ${token}`, () => numbers.layer(last, token), facts.dim, strips, y - height / 2, stripWidth, height, { alpha: counts ? 1 : 0.15, frame: frameOf(path, token), name: `${quoted(path, token)}, last layer`, token, press: choose(path, { token }) });
      if (!isNarrow && counts) path.appear(0.5, 5, () => {
        const isChosen = token === state.token;
        pen.curve(strips + stripWidth + 4, y, knot, top + 39 * scale, isChosen ? 3 * scale : 1.2 * scale, isChosen ? colours.accent : colours.quiet, isChosen ? 1 : 0.4);
      });
    });
    if (!isNarrow) path.appear(0.5, 5, () => pen.stroke([[knot, top + 39 * scale], [left - 4 * scale, top + 39 * scale]], colours.quiet, 1.2 * scale));
    const names = { mean: `mean of ${several(taken, "token")}`, cls: "vector of the first token", max: `largest of ${several(count, "token")}, cell by cell`, last: "vector of the last token" };
    // The steps after pooling, and what every vector goes through before vectors are compared.
    const chain = (which, owner) => [
      { key: `${which} pooled`, label: which === "first" ? names[facts.pooling] : facts.pooling === "mean" ? `mean of ${several(facts.second.weighted, "token")}` : names[facts.pooling].replace(/of \d+ tokens/, "of its tokens"), values: () => numbers.pooled(which),
        more: facts.pooling === "mean" ? (at) => { const size = which === "first" ? taken : facts.second.weighted; return ` ≈ ${shown(numbers.pooled(which)[at] * size, 3)} ÷ ${size}, the sum of this cell in all tokens`; } : undefined },
      ...facts.steps.map((name, number) => ({ key: `${which} step ${number}`, sign: "→", label: name, count: numbers.row(`${numbers.mode}.${which}.step.${number}`).length, values: () => numbers.row(`${numbers.mode}.${which}.step.${number}`) })),
      { key: `${which} unit`, sign: "→", label: owner, sub: which === "first" ? ["the same, made to length 1", "made to length 1", "length 1"] : [], count: numbers.vector(which).length, values: () => numbers.unit(which) },
    ];
    const first = chain("first", "sentence vector"), each = isNarrow ? 60 : Math.min(84 * scale, (area.bottom - top - 130 * scale) / (2 * first.length));
    stack(path, left, top, each * first.length, first, { width, of: 6, from: 1, isNarrow });
    if (!facts.second) return;
    const below = top + each * first.length + 14 * scale;
    path.appear(3, 6, () => {
      pen.stroke([[left - 24 * scale, below], [left + width, below]], colours.line);
      pen.text("Second sentence", left, below + 16 * scale, { size: 12, colour: colours.quiet });
      pen.text(facts.second.text, left, below + 36 * scale, { size: 15, bold: true, most: area.x + area.width - left - 8 * scale });
      const height = isNarrow ? 45 : 46 * scale, tokens = facts.second.pieces;
      pen.strip("second layer", () => numbers.row(`${numbers.mode}.second.layer`), facts.dim, left, below + 50 * scale, width, height, { rows: tokens.length, name: "second sentence, last layer", pieces: tokens });
      if (!isNarrow) pen.text(several(tokens.length, "token"), left + width + 6 * scale, below + 50 * scale + height / 2, { size: 12, colour: colours.quiet });
    });
    stack(path, left, below + (isNarrow ? 104 : 102 * scale), each * first.length, chain("second", "its sentence vector"), { width, of: 6, from: 4, isNarrow });
  },

  compare(path, area) {
    const { pen, numbers, facts } = path, { colours, scale } = pen, { isNarrow } = area;
    if (!facts.second) {
      pen.lines("A cosine needs two sentences. Add a second one in the bar at the top of the page.", area.x + 24 * scale, area.top + (isNarrow ? 24 : 60 * scale), area.width - 48 * scale, { size: 15, colour: colours.quiet });
      return;
    }
    const count = numbers.vector("first").length, width = isNarrow ? 288 : besideNotes(path, area, count), x = area.x + (isNarrow ? 24 : 46 * scale), cosine = numbers.similarity();
    const first = numbers.unit("first"), second = numbers.unit("second"), noteWidth = area.x + area.width - x - width - 84 * scale, full = area.bottom - area.top;
    stack(path, x, area.top, isNarrow ? 116 : Math.max(110 * scale, full * 0.25), [
      { key: "first unit", label: `“${facts.text}”`, most: area.x + area.width - x - 8 * scale, count, values: () => first, note: "Both have length 1: small numbers, faint colours." },
      { key: "second unit", sign: "×", label: `“${facts.second.text}”`, most: area.x + area.width - x - 8 * scale, count, values: () => second },
    ], { width, noteWidth, of: 4, isBare: true, isNarrow });
    const products = numbers.once("products", () => first.map((value, at) => value * second[at])), sums = numbers.once("sums", () => { let sum = 0; return products.map((value) => (sum += value)); });
    const top = area.top + (isNarrow ? 136 : Math.max(126 * scale, full * 0.29)), height = isNarrow ? 90 : full * 0.3, low = Math.min(0, ...sums), high = Math.max(0.01, ...sums), y = (value) => top + 22 * scale + ((high - value) / (high - low)) * (height - 22 * scale);
    const done = path.progress(2, 4);
    path.appear(2, 4, () => {
      pen.text(pen.fitting(["= add up the products, cell by cell", "= add up the products"], width - (isNarrow ? 60 : 0), { bold: true }), x, top, { bold: true });
      pen.stroke([[x, y(0)], [x + width, y(0)]], colours.line);
      pen.stroke([[x, y(0)], ...Array.from(sums, (value, at) => [x + ((at + 1) / count) * width, y(value)]).filter((_, at) => (at + 1) / count <= done)], colours.accent, 2);
      pen.text("0", x - 8 * scale, y(0), { size: 12, colour: colours.quiet, align: "right" });
      if (isNarrow) pen.text(shownCosine(cosine), x + width, top, { size: 15, bold: true, colour: colours.accent, align: "right" });
      else pen.text(shownCosine(cosine), x + width + 10 * scale, y(cosine), { size: 15, bold: true, colour: colours.accent });
      pen.spot(x, top + 14 * scale, width, height, { course: { x, width, products, sums, first, second } });
      if (path.state.cell?.count === count) {
        const middle = x + ((path.state.cell.at + 0.5) / count) * width;
        pen.stroke([[middle, top + 18 * scale], [middle, top + height + 4 * scale]], colours.text);
      }
    });
    const above = total(products.filter((value) => value > 0)), below = total(products.filter((value) => value < 0)), rest = missing([above, below], cosine, 2);
    if (isNarrow || noteWidth > 120 * scale) path.appear(2, 4, () => {
      const left = isNarrow ? x : x + width + 74 * scale, right = isNarrow ? x + width : left + noteWidth;
      let at = isNarrow ? top + height + 22 : top + Math.max(height * 0.46, 66 * scale);
      const line = (words, value, isLast = false) => {
        pen.text(words, left, at, { size: 12.5, colour: colours.quiet });
        pen.text(value, right, at, { mono: !isLast, bold: isLast, align: "right", colour: isLast ? colours.accent : colours.text });
        at += 22 * scale;
      };
      line(`${products.filter((value) => value > 0).length} cells agree`, signed(above));
      line(`${products.filter((value) => value < 0).length} disagree`, shown(below));
      if (rest) line("rounding", signed(rest));
      line("together", shownCosine(cosine), true);
      if (isNarrow) return;
      const radius = 46 * scale, cx = left + 14 * scale, cy = top + 24 * scale;
      pen.dial(cx, cy, radius * 0.55, cosine, radius * 1.4);
      pen.text(`${shown(degreesOf(cosine), 0)}° apart`, cx, cy + 15 * scale, { size: 13.5, bold: true });
    });
    const ruler = isNarrow ? top + height + 156 : area.top + full * 0.86, length = isNarrow ? 288 : Math.min(area.width - 92 * scale, 560 * scale), at = (value) => x + ((Math.max(-0.2, value) + 0.2) / 1.2) * length, range = facts.unrelated;
    path.appear(3, 4, () => {
      pen.text(shownCosine(cosine), at(cosine), ruler - 34 * scale, { size: 30, bold: true, colour: colours.accent, align: "center" });
      if (range && numbers.mode === "all") pen.box(at(range[0]), ruler - 8 * scale, at(range[2]) - at(range[0]), 16 * scale, { round: 3, fill: colours.line });
      pen.stroke([[at(-0.2), ruler], [at(1), ruler]], colours.quiet);
      for (const value of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
        pen.stroke([[at(value), ruler - 3], [at(value), ruler + 3]], colours.quiet);
        pen.text(value === 0 || value === 1 ? String(value) : value.toFixed(1), at(value), ruler + 18 * scale, { size: 12, align: "center", colour: colours.quiet });
      }
      pen.context.beginPath();
      pen.context.arc(at(cosine), ruler, 7 * scale, 0, 7);
      Object.assign(pen.context, { fillStyle: colours.accent, strokeStyle: colours.ground, lineWidth: 2 });
      pen.context.fill();
      pen.context.stroke();
      pen.text("the same direction", at(1), ruler + 36 * scale, { size: 12, align: "right", colour: colours.quiet });
      if (range && numbers.mode === "all") pen.text("grey: unrelated texts (90\u00a0% of pairs)", at(-0.2), ruler + 36 * scale + (isNarrow ? 16 : 0), { size: 12, colour: colours.quiet });
      pen.spot(at(-0.2), ruler - 14, length, 28, { hint: `Cosine ${shown(cosine, 3)}.${range ? ` Half of unrelated pairs have less than ${shown(range[1])}.` : ""}` });
    });
  },
};

// What a piece is, in a few wordings, the longest first.
function pieceNote(facts, place, first) {
  const { special, goesOn, text, piece, id, unknown } = facts.tokens[place];
  if (unknown) return ["not in the vocabulary: lost to the model", "not in the vocabulary", "unknown"];
  if (special) return place ? ["added: the end"] : ["added: the start"];
  if (goesOn) return ["goes on with a word", "goes on"];
  if (first.get(id) < place) return [`the same as piece ${first.get(id)}`, `as piece ${first.get(id)}`];
  if (text !== piece && text.toLowerCase() === piece) return ["lower case: capitals are dropped", "lower case: no capitals", "lower case"];
  if (/^[^\p{L}\p{N}]+$/u.test(text)) return ["punctuation"];
  return facts.tokens[place + 1]?.goesOn ? ["the beginning of a word", "begins a word"] : ["a word"];
}

// The dot product of the chosen token's query with one key, term by term.
// Returns where the lines below it end.
function oneMatch(path, { x, width, top, height, token, block, head, partner, isNarrow, foot, end = x + width, most = Infinity }) {
  const { pen, numbers, facts, state } = path, { colours, scale } = pen, count = facts.headSize;
  const products = numbers.products(block, head, token, partner), sum = total(products), score = numbers.scores(block, head, token)[partner];
  stack(path, x, top, height, [
    { key: `query ${block} ${head} ${token}`, count, label: "query", sub: [`of ${named(path, token)}, ${facts.dim} → ${count}`, `of ${named(path, token)}`], frame: 2, name: `query: the token's ${facts.dim} numbers made into ${count} by a learnt matrix`, values: () => numbers.ofHead("queries", block, head, token) },
    { key: `key ${block} ${head} ${partner}`, count, label: "× key", sub: [`of ${named(path, partner)}, ${facts.dim} → ${count}`, `of ${named(path, partner)}`], name: `key: the token's ${facts.dim} numbers made into ${count} by another learnt matrix`, values: () => numbers.ofHead("keys", block, head, partner) },
    { key: `products ${block} ${head} ${token} ${partner}`, count, label: "= products", sub: [`${count} of them`, String(count)], values: () => products, more: (at) => ` ≈ ${productOf(numbers.ofHead("queries", block, head, token)[at], numbers.ofHead("keys", block, head, partner)[at], 3)}` },
  ], { width, isBare: true, isNarrow: true });
  let y = foot;
  const line = (words, value, isLast = false) => {
    const look = { size: isLast ? 15 : 13, bold: isLast, mono: !isLast };
    pen.text(words, x, y, { bold: isLast, colour: isLast ? colours.text : colours.quiet, most: end - x - pen.widthOf(value, look) - 6 * scale });
    pen.text(value, end, y, { ...look, align: "right", colour: isLast ? colours.accent : colours.text });
    y += (isNarrow ? 18 : 19) * scale;
  };
  const above = total(products.filter((value) => value > 0)), below = total(products.filter((value) => value < 0));
  // So many digits that each line gives the next one. Of large matches the largest is taken off first, which changes no share.
  const scores = numbers.scores(block, head, token).filter((other) => other !== -Infinity), off = Math.max(...scores) < 9 ? 0 : Math.max(...scores);
  const power = Math.exp(score - off), powers = total(scores.map((other) => Math.exp(other - off))), powerDigits = enough([power, powers], (one, all) => (100 * one) / all, 0, Math.max(0, 2 - Math.floor(Math.log10(powers))));
  let digits = score === -Infinity ? 2 : enough([score, off], (match, less) => Math.exp(match - less), powerDigits);
  while (digits < 6 && enough([sum], (value) => value * facts.scale, digits, digits) > digits) digits++;
  const rest = missing([above, below], sum, digits);
  line("above zero", signed(above, digits));
  line("below zero", signed(below, digits));
  if (rest) line("rounding", signed(rest, digits));
  line("sum", shown(sum, digits));
  line(scaleName(facts), shown(sum * facts.scale, digits));
  const terms = numbers.terms(block, head, token, partner);
  for (const [name, value] of terms) line(`+ ${name}`, signed(value, digits));
  if (score === -Infinity) {
    line("out of sight", "hidden", true);
    return y;
  }
  if (terms.length) {
    const left = missing([sum * facts.scale, ...terms.map(([, value]) => value)], score, digits);
    if (left) line("rounding", signed(left, digits));
    line("match", shown(score, digits));
  }
  line(off ? `e^(match − ${shown(off, digits)})` : "e^match", shown(power, powerDigits));
  line("÷ sum of rows", shown(powers, powerDigits));
  line("share", percent(numbers.weights(block, head, token)[partner]), true);
  if (isNarrow) return y;
  y += 4 * scale;
  if (y + 3 * 17 * scale > most) return y; // no room above the heads
  const notes = { size: 12, colour: colours.quiet };
  if (state.cell?.count === count) {
    const [query, key] = [numbers.ofHead("queries", block, head, token)[state.cell.at], numbers.ofHead("keys", block, head, partner)[state.cell.at]];
    pen.lines(`cell ${state.cell.at}: ${productOf(query, key, 2)} ≈ ${shown(query * key)}`, x, y, end - x, notes);
  } else
    pen.lines(`${facts.positions.includes("rotary") ? "Query and key are turned by their places first. " : ""}Point at a row for its match. A share shows where, not why.`, x, y, end - x, notes);
  return y;
}

// The way round a part of the block: what came in is kept, and meets what was made of it.
function residual(path, x, from, to, part) {
  const { pen } = path, { context, colours, scale } = pen, left = x - 34 * scale, [top, bottom] = [from.y + from.height / 2, to.y + to.height / 2], round = 8 * scale;
  context.beginPath();
  context.moveTo(x - 5, top);
  context.lineTo(left + round, top);
  context.quadraticCurveTo(left, top, left, top + round);
  context.lineTo(left, bottom - round);
  Object.assign(context, { strokeStyle: colours.accent, lineWidth: 1.5 * scale });
  context.stroke();
  context.beginPath();
  context.arc(left, bottom, round, 0, 7);
  context.fillStyle = colours.panel;
  context.fill();
  context.stroke();
  pen.text("+", left, bottom, { size: 14, align: "center", colour: colours.accent, bold: true });
  pen.spot(left - 10 * scale, top, 20 * scale, bottom - top + 10 * scale, { hint: `The residual: what came in goes round ${part} and is added to what that made of it.` });
}

const CLOSED = {
  pieces: (path, area) => {
    eachToken(path, (token) => chip(path, token, area.x, area.y(token), area.width, { pitch: area.pitch }));
    eachRest(path, (rest) => {
      path.pen.text(`${rest[1] - rest[0] + 1} more`, area.x + area.width / 2, area.y(rest[0]), { size: 12, align: "center", colour: path.pen.colours.quiet });
      restSpot(path, rest, area.x, area.y(rest[0]), area.width);
    });
  },
  zero: (path, area) => stripRows(path, area, "layer 0", (token) => path.numbers.layer(0, token), "layer 0", path.pen.narrow(area.width)),
  look(path, area) {
    const { pen, numbers, state: { token, block, head } } = path;
    const shares = numbers.hasBlock(block) ? numbers.weights(block, head, token) : numbers.took(block, token);
    byRow(path, area, shares).forEach(([weight, y]) => weight > 0 && pen.curve(area.x, area.y(token), area.x + area.width, y, thickness(path, weight, 0.75), pen.colours.accent, fade(weight)));
    eachRest(path, (rest) => { // where lines to the tokens out of the window end
      const [y, words] = [area.y(rest[0]) + (rest[0] === 0 ? -12 : 12) * pen.scale, `${rest[1] - rest[0] + 1} more`];
      restSpot(path, rest, area.x, y, pen.text(words, area.x + area.width, y, { size: 11, align: "right", colour: pen.colours.quiet }));
    });
  },
  take(path, area) {
    const { numbers, state: { block } } = path;
    if (numbers.hasBlock(block)) stripRows(path, area, `after ${block}`, (token) => numbers.step("after_attention", block, token), `block ${block}, after attention`, path.pen.narrow(area.width));
    else eachToken(path, (token) => path.pen.text("…", area.x + area.width / 2, area.y(token), { align: "center", colour: path.pen.colours.quiet }));
  },
  alone: (path, area) => {
    const layer = path.state.block + 1;
    stripRows(path, area, `layer ${layer}`, (token) => path.numbers.layer(layer, token), `layer ${layer}`, path.pen.narrow(area.width));
  },
  blocks(path, area) {
    const { pen, facts } = path, height = Math.min(28 * pen.scale, area.pitch * 0.75), last = facts.blocks;
    eachToken(path, (token) => pen.strip(`all layers ${token}`, () => allLayers(path, token), facts.dim, area.x, area.y(token) - height / 2, pen.narrow(area.width), height, { rows: last + 1, frame: frameOf(path, token), name: `${quoted(path, token)}, layers 0 to ${last}, one below the other`, token }));
  },
  pool(path, area) {
    const { pen, numbers, facts, state } = path, { colours, scale } = pen, [first, second] = twoHeights(path, area), left = area.x + 32 * scale, width = pen.narrow(area.width - 32 * scale);
    eachToken(path, (token) => {
      if (facts.weights && !facts.weights[token]) return;
      const isChosen = token === state.token;
      pen.curve(area.x, area.y(token), left - 3, first, isChosen ? 3 * scale : 1, isChosen ? colours.accent : colours.quiet, isChosen ? 1 : 0.45);
    });
    for (const [which, y] of [["first", first], ["second", second]]) {
      if (which === "second" && !facts.second) continue;
      pen.strip(`${which} unit`, () => numbers.unit(which), numbers.vector(which).length, left, y - 11 * scale, width, 22 * scale, { name: `vector of the ${which} sentence` });
      pen.text(which, left, y - 22 * scale, { size: 12, colour: colours.quiet });
    }
  },
  compare(path, area) {
    const { pen, numbers, facts } = path, { colours, scale } = pen, [first, second] = twoHeights(path, area), middle = (first + second) / 2, x = area.x + 26 * scale;
    if (!facts.second) return void pen.text("2nd sentence?", area.x + area.width / 2, middle, { size: 12, align: "center", colour: colours.quiet });
    for (const y of [first, second]) pen.curve(area.x - 8 * scale, y, x - 8 * scale, middle, 1.5 * scale, colours.quiet, 0.6);
    pen.text(shownCosine(numbers.similarity()), x - 2 * scale, middle, { size: 18, bold: true });
    pen.text("cosine", x - 2 * scale, middle + 20 * scale, { size: 12, colour: colours.quiet });
    if (path.state.stop === "pool") return undefined; // which has its vectors there, and the second sentence in words
    const said = facts.second.text.length > 72 ? `${facts.second.text.slice(0, 71)}…` : facts.second.text;
    pen.lines(`“${said}”`, area.x - 53 * scale, second + 30 * scale, area.width + 48 * scale, { size: 12, colour: colours.quiet });
    return undefined;
  },
};

const twoHeights = (path, area) => [0.34, 0.72].map((part) => area.top + part * (area.foot - area.top));
function allLayers(path, token) {
  const { facts, numbers } = path, all = new Float32Array((facts.blocks + 1) * facts.dim);
  for (let layer = 0; layer <= facts.blocks; layer++) all.set(numbers.layer(layer, token), layer * facts.dim);
  return all;
}

// Below each stop: the shape of what stands in it.
function shapes(path) {
  const { facts: { tokens, dim, blocks }, state: { head } } = path, all = `${tokens.length} × ${dim}`;
  return { pieces: several(tokens.length, "piece"), zero: all, look: `head ${head}`, take: all, alone: all, blocks: `${blocks + 1} × ${all}`, pool: `1 × ${dim}`, compare: "1 number" };
}
