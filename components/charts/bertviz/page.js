// What stands around bertviz's own code in its page. Before it: the data turned back into the arrays it expects,
// and require.js' two calls. After each of its drawings: labels that fit, the true numbers, and a keyboard.
// Text is only ever set with textContent.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page").textContent);
  const vis = document.getElementById("vis");
  const note = document.getElementById("note");
  const all = page.tokens.length;
  // SVG lines drawn at most in one go: Chromium takes about 50 microseconds for each, more with every change.
  const LINES = { head: 40000, model: 20000, neuron: 8000 }[page.view];

  // The head view is as wide as its zoom makes it; the others shrink with their frame.
  const room = page.view === "head" ? Math.max(1, (window.innerWidth - 16) / 340) : Infinity;
  const zoom = Math.min(page.zoom, room);
  document.body.style.setProperty("--zoom", zoom);

  // --- data -----------------------------------------------------------------------------------------------------
  function bytesOf(id) {
    const text = atob(document.getElementById(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  // [block][head][row][column] as plain arrays: bertviz maps rows to rows, which typed arrays would make numbers.
  function nested(columns, value) {
    let at = 0;
    const row = () => {
      const values = new Array(columns);
      for (let i = 0; i < columns; i++) values[i] = value(at++);
      return values;
    };
    return page.blocks.map(() => page.heads.map(() => page.tokens.map(row)));
  }

  function weights() {
    const bytes = bytesOf("weights");
    return nested(all, (i) => bytes[i] / 255);
  }

  function vectors(name) {
    const values = new Int8Array(bytesOf(name).buffer);
    const scales = new Float32Array(bytesOf(`${name}-scales`).buffer);
    return nested(page.dim, (i) => values[i] * scales[Math.floor(i / page.dim)]);
  }

  const attn = weights();
  const queries = page.view === "neuron" ? vectors("queries") : null;
  const keys = page.view === "neuron" ? vectors("keys") : null;
  // The attention of the head on display in per cent, rounded once: of the rounded weights some would be others.
  const percents = page.view === "neuron" ? bytesOf("percents") : null;
  const scores = page.view === "neuron" ? new Float32Array(bytesOf("scores").buffer) : null; // its q · k
  const each = (blocks, change) => blocks && blocks.map((heads) => heads.map(change));
  // What is seen through one filter: rows of the tokens on the left, columns of those on the right.
  const through = (left, right) => ({
    left_text: page.tokens.slice(...left),
    right_text: page.tokens.slice(...right),
    attn: each(attn, (matrix) => matrix.slice(...left).map((row) => row.slice(...right))),
    queries: each(queries, (rows) => rows.slice(...left)),
    keys: each(keys, (rows) => rows.slice(...right)),
  });
  const attention = { all: through([0, all], [0, all]) };
  if (page.second_start !== null) {
    const [a, b] = [[0, page.second_start], [page.second_start, all]];
    Object.assign(attention, { aa: through(a, a), ab: through(a, b), ba: through(b, a), bb: through(b, b) });
  }
  // The neuron view in one line of columns: token, query, key, product, their sum, token. In a frame as narrow as a phone's the
  // columns are narrower and the type larger, so that all of them are seen at once and can be read; of the queries only the
  // one of the token on display is seen, above the keys. `beside`: from the queries' column to that of the keys.
  const isNarrow = page.view !== "head" && window.innerWidth < 640;
  const sizes = isNarrow
    ? { heading: 17, text: 17, vector: 96, token: 66, share: 46, row: all <= 20 ? 36 : 26, gap: 9, step: 66, arrow: 11, top: 64, beside: 0 }
    : { heading: 16, text: 15, vector: 168, token: 120, share: 46, row: 26, gap: 25, step: 125, arrow: 70, top: 42, beside: 205.5 };
  // In a narrow frame the model view has at most so many heads in a row: a finger can meet each.
  const across = isNarrow ? Math.min(6, page.heads.length) : page.heads.length;
  document.body.classList.toggle("narrow", isNarrow);
  // The head view's squares: on a touch screen large enough for a finger, in as many rows as they need.
  if (page.view === "head") {
    sizes.square = matchMedia("(pointer: coarse)").matches ? Math.ceil(34 / zoom) : 20;
    const rows = Math.ceil(page.heads.length / Math.floor(340 / sizes.square));
    sizes.across = Math.ceil(page.heads.length / rows);
    sizes.top = 10 + sizes.square * rows;
  }
  window.bertviz_params = {
    sizes,
    attention,
    default_filter: page.filter,
    root_div_id: "bertviz",
    display_mode: page.dark ? "dark" : "light",
    bidirectional: true,
    include_layers: page.blocks,
    include_heads: page.heads,
    total_heads: page.total_heads,
    // The head view names blocks by their number, the neuron view by their place in what is sent.
    layer: page.view === "neuron" ? page.blocks.indexOf(page.block) : page.block,
    head: page.head === null ? 0 : page.heads.indexOf(page.head),
    heads: page.head === null ? null : [page.heads.indexOf(page.head)],
    writeShares,
  };

  // --- fewer lines ----------------------------------------------------------------------------------------------
  let leftOut = ""; // of the drawing just made
  let ofCells = ""; // of the model view's pictures
  let ofWeak = ""; // of the head view's hidden lines
  const isWider = () => document.documentElement.scrollWidth > window.innerWidth + 8;
  const write = () => {
    const sideways = isWider() ? "Swipe sideways to see all of this view." : "";
    note.textContent = [sideways, ofCells, leftOut, ofWeak].filter(Boolean).join(" ");
  };
  const level = (weight) => Math.round(weight * 255);

  // Which weights of these rows get a line: none of weight 0, which nobody sees, and of the rest the strongest.
  // The answer counts, so ask once for each weight, in their order.
  function strongest(rows) {
    const count = new Array(256).fill(0);
    for (const row of rows) for (const weight of row) count[level(weight)]++;
    const visible = count.slice(1).reduce((sum, value) => sum + value, 0);
    let lowest = 256;
    let room = LINES;
    while (lowest > 1 && count[lowest - 1] <= room) room -= count[--lowest];
    if (lowest === 1) return (weight) => level(weight) > 0;
    // Of the level that no longer fits whole, every n-th line, so that an even haze does not look like nothing.
    const every = Math.ceil(count[lowest - 1] / room);
    const drawn = LINES - room + (room && Math.ceil(count[lowest - 1] / every));
    leftOut = `The ${drawn.toLocaleString("en")} strongest of ${visible.toLocaleString("en")} lines are drawn.`;
    let met = 0;
    return (weight) => level(weight) >= lowest || (room > 0 && level(weight) === lowest - 1 && met++ % every === 0);
  }

  // The selection with holes for lines that are left out: d3 passes over them and keeps the others' numbers.
  function thinned(selection, rows) {
    const keep = strongest(rows);
    const kept = (node) => (keep(node.__data__) ? node : undefined);
    const groups = selection._groups.map((group) => Array.from(group, kept));
    return new selection.constructor(groups, selection._parents);
  }

  // A cell of the model view as a picture: bertviz draws a line for each pair of tokens, 2.4 million for 144 heads
  // at 128 tokens. Takes the attributes that bertviz would give to the lines, and draws when the cell is in sight.
  function picture(parents, rows) {
    const set = {};
    const frame = parents[0].parentNode.querySelector(".attn_background");
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => +frame.getAttribute(name));
    cells.set(frame, {
      draw() {
        const holder = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
        const canvas = document.createElement("canvas");
        const sharp = Math.min(window.devicePixelRatio || 1, 2);
        Object.entries({ x, y, width, height }).forEach(([name, value]) => holder.setAttribute(name, value));
        [canvas.width, canvas.height] = [Math.ceil(width * sharp), Math.ceil(height * sharp)];
        // Opaque: very faint strokes on a clear canvas add up to another hue.
        const pen = canvas.getContext("2d", { alpha: false });
        pen.fillStyle = getComputedStyle(document.body).backgroundColor;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.scale(sharp, sharp);
        pen.translate(-x, -y);
        pen.lineWidth = set["stroke-width"];
        const colour = colourOf(...frame.id.match(/\d+/g).map(Number)) || set.stroke;
        frame.setAttribute("stroke", colour); // while it is opened
        pen.strokeStyle = colour;
        const keep = strongest(rows);
        rows.forEach((row, place) => {
          const line = { parentNode: parents[place] }; // what bertviz asks for its row
          const startY = set.y1.call(line);
          row.forEach((weight, column) => {
            if (!keep(weight)) return;
            pen.globalAlpha = set["stroke-opacity"].call(line, weight);
            pen.beginPath();
            pen.moveTo(set.x1, startY);
            pen.lineTo(set.x2, set.y2.call(line, weight, column));
            pen.stroke();
          });
        });
        holder.append(canvas);
        frame.after(holder);
        this.drawn = holder;
        if (leftOut) ofCells = `Of each cell, the ${LINES.toLocaleString("en")} strongest lines are drawn.`;
        leftOut = "";
        write();
      },
      drop() {
        this.drawn?.remove(); // 144 canvases of 128 tokens would be 160 MB
        this.drawn = null;
      },
    });
    sight.observe(frame);
    const recorder = { attr: (name, value) => ((set[name] = value), recorder) };
    return recorder;
  }
  // The model view's colour of a head, by the places of block and head in what is sent; bertviz's own has no meaning.
  const colourOf = (block, head) => page.colours && page.colours[block][head];
  const cells = new WeakMap();
  const waiting = new Set(); // pictures to draw, a few at a time, so that the page answers in between
  const drawSome = () => {
    const start = performance.now();
    for (const cell of waiting) {
      waiting.delete(cell);
      cell.draw();
      if (performance.now() - start > 15) break;
    }
    if (waiting.size) setTimeout(drawSome);
  };
  const sight = new IntersectionObserver(
    (changes) => {
      const idle = !waiting.size;
      for (const { target, isIntersecting } of changes) {
        const cell = cells.get(target);
        if (isIntersecting && !cell.drawn) waiting.add(cell);
        if (!isIntersecting) {
          waiting.delete(cell);
          cell.drop();
        }
      }
      if (idle) drawSome();
    },
    { rootMargin: "200px" },
  );

  const append = d3.selection.prototype.append;
  d3.selection.prototype.append = function (name) {
    const parent = this._parents[0];
    const ofWeights =
      (name === "line" || name === "path" || parent?.classList?.contains("vector-highlight-group")) &&
      typeof this._groups[0]?.[0]?.__data__ === "number";
    if (!ofWeights) return append.call(this, name);
    const rows = this._parents.map((element) => element.__data__);
    if (page.view === "model" && !parent.parentNode.classList.contains("detail")) return picture(this._parents, rows);
    return append.call(thinned(this, rows), name);
  };
  // d3 has ten; with them alone the eleventh head looks like the first.
  let colours = [...d3.schemeCategory10, "#e8b500", "#00796b", "#5b6bc0", "#f0027f", "#6a9a1f", "#a65628"];
  if (page.dark) {
    const lighter = (colour) => ((colour.l += (1 - colour.l) * 0.35), colour.hex()); // made for white paper
    colours = colours.map((colour) => lighter(d3.hsl(colour)));
  }
  // A head keeps its colour when others are left out; the model view looks up the block's number itself.
  d3.schemeCategory10 = page.view === "head" ? page.heads.map((head) => colours[head % colours.length]) : colours;

  // --- labels and keyboard ----------------------------------------------------------------------------------------
  const find = (selector) => [...vis.querySelectorAll(selector)];
  const tell = (element, type) => element.dispatchEvent(new MouseEvent(type, { view: window }));

  function describe(element, role, name) {
    element.setAttribute("role", role);
    element.setAttribute("aria-label", name);
  }

  // Long tokens are cut, then narrowed a little; the whole token shows on hover.
  function fit(text, width) {
    const whole = text.textContent;
    const natural = text.getComputedTextLength();
    if (natural <= width) return;
    if (natural > 1.35 * width) {
      const letters = [...whole];
      text.textContent = `${letters.slice(0, Math.floor((letters.length * 1.3 * width) / natural)).join("")}…`;
    }
    text.setAttribute("textLength", width);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = whole;
    text.append(title);
  }

  // One tab stop for a group: arrows move in it, Enter presses.
  function group(items, columns, press, enter, leave) {
    items.forEach((item, i) => {
      item.setAttribute("tabindex", i ? -1 : 0);
      item.addEventListener("keydown", (event) => {
        const across = { ArrowRight: i + 1, ArrowLeft: i - 1, ArrowDown: i + columns, ArrowUp: i - columns };
        const next = items[{ ...across, Home: 0, End: items.length - 1 }[event.key]];
        if (next) {
          items.forEach((other) => other.setAttribute("tabindex", other === next ? 0 : -1));
          next.focus();
        } else if (press && (event.key === "Enter" || event.key === " ")) {
          press(item, i, event.shiftKey);
        } else return;
        event.preventDefault();
      });
      if (enter) item.addEventListener("focus", () => enter(item));
      if (leave) item.addEventListener("blur", () => leave(item));
    });
  }

  // Hides the lines of less than page.least, but for the strongest of each token and head, and says how many are drawn. A line
  // of a head that is switched off is transparent and does not count. Pointing at a token shows its weak lines too.
  function hideWeak() {
    let [drawn, weak] = [0, 0];
    const on = find("#attention .headAttention").filter((head) => +head.querySelector("line")?.getAttribute("stroke-opacity") > 0);
    const most = on.length === 1 ? Math.max(...[...on[0].querySelectorAll("line")].map((line) => line.__data__)) : 0;
    for (const token of find("#attention .tokenAttention")) {
      const lines = [...token.querySelectorAll("line")], strongest = Math.max(...lines.map((line) => line.__data__));
      for (const line of lines) {
        const isWeak = line.__data__ < page.least && line.__data__ < strongest;
        line.classList.toggle("weak", isWeak);
        const isOn = +line.getAttribute("stroke-opacity") > 0;
        if (isOn) [drawn, weak] = [drawn + !isWeak, weak + isWeak];
        // Of a head alone the strongest line has the full colour, and the others in proportion.
        line.style.strokeOpacity = isOn && most ? line.__data__ / most : "";
      }
    }
    const least = Math.round(100 * page.least), [shown, all] = [drawn, drawn + weak].map((count) => count.toLocaleString("en"));
    ofWeak = weak ? `${shown} of ${all} lines are drawn: those of ${least} % or more and each token's strongest.` : "";
  }

  function dressHeads(svg) {
    hideWeak();
    find("#left text, #right text").forEach((text) => fit(text, 102));
    for (const side of ["left", "right"]) {
      const tokens = find(`#${side} > g:nth-child(2) > g`);
      tokens.forEach((token, i) => describe(token, "img", `token ${i}: ${token.__data__}`));
      const leave = (token) => tell(token.closest(`#${side}`), "mouseleave");
      group(tokens, 1, null, (token) => tell(token, "mouseover"), leave);
    }
    const squares = [...svg.querySelectorAll(":scope > g:last-of-type > rect")];
    const state = (square) => {
      const off = !square.getAttribute("fill").startsWith("#"); // bertviz lightens a head that is off: rgb(...)
      square.classList.toggle("off", off);
      square.setAttribute("aria-checked", String(!off));
    };
    squares.forEach((square, i) => {
      describe(square, "checkbox", `Head ${page.heads[i]}`);
      state(square);
      square.setAttribute("x", sizes.square * (i % sizes.across));
      square.setAttribute("y", sizes.square * Math.floor(i / sizes.across));
      new MutationObserver(() => {
        state(square);
        hideWeak();
        write();
      }).observe(square, { attributeFilter: ["fill"] });
      const number = append.call(d3.select(square.parentNode), "text").text(page.heads[i]).node();
      number.setAttribute("x", +square.getAttribute("x") + sizes.square / 2);
      number.setAttribute("y", +square.getAttribute("y") + sizes.square / 2 + 4);
      number.classList.add("number");
      number.setAttribute("aria-hidden", "true");
    });
    const beside = sizes.square * sizes.across + 8;
    if (squares.length > 1 && beside <= 340 - 92) {
      const said = append.call(d3.select(squares[0].parentNode), "text").text("heads: press to add").node();
      said.setAttribute("x", beside);
      said.setAttribute("y", sizes.square / 2 + 4);
      said.classList.add("squares");
    }
    if (page.told) {
      const head = find("#attention .headAttention")[page.heads.indexOf(page.head)];
      const [query, key] = page.told;
      head?.querySelector(`.tokenAttention[left-token-index="${query}"] line[right-token-index="${key}"]`)?.classList.add("told");
    }
    const columns = squares.length > sizes.across ? sizes.across : 1;
    group(squares, columns, (square, i, alone) => tell(square, alone ? "dblclick" : "click"));
    // Several rows of squares, and what is said of hidden lines, need more room than the dashboard, which does not know the
    // frame's width, has given.
    write();
    const frame = window.frameElement;
    const missing = document.documentElement.scrollHeight - window.innerHeight;
    const left = window.innerHeight - document.body.scrollHeight; // where the frame is narrower than the dashboard supposed
    if (frame && (sizes.top > 30 || ofWeak) && missing > 0) give(frame, window.innerHeight + missing);
    else if (frame && left > 40) give(frame, document.body.scrollHeight);
  }

  // Another height for this frame, and for the place that the dashboard keeps for it.
  function give(frame, height) {
    frame.style.height = frame.parentElement.style.height = `${height}px`;
    frame.parentElement.style.flex = "none";
  }

  function dressModel(svg) {
    find(".detail text.token:not([textLength])").forEach((text) => fit(text, 74));
    const opened = find("text.detail")[0]?.textContent.match(/\d+/g).map(Number);
    const colour = opened && colourOf(page.blocks.indexOf(opened[0]), page.heads.indexOf(opened[1]));
    if (colour) find("rect.detail, .detail line").forEach((line) => line.setAttribute("stroke", colour));
    if (isNarrow && opened) unfold(svg, page.blocks.indexOf(opened[0]) * page.heads.length + page.heads.indexOf(opened[1]));
    const regions = find(".attn_background").map((frame) => frame.parentNode.lastElementChild);
    if (!regions[0] || regions[0].hasAttribute("role")) return; // only a detail was opened or closed
    regions.forEach((region, i) => {
      const [block, head] = [Math.floor(i / page.heads.length), i % page.heads.length];
      describe(region, "button", `Block ${page.blocks[block]}, head ${page.heads[head]}`);
      region.classList.add("cell");
    });
    group(regions, across, (region) => tell(region, "click"));
    if (isNarrow) fold(svg, regions);
    nameEnds(svg, regions[across - 1]);
  }

  // The first and the last token, once, beside the ends of the lines of the last head in the first row, where they have room.
  function nameEnds(svg, region) {
    const { right_text: names } = attention[page.filter], named = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "g"));
    const tile = region.parentNode.getBoundingClientRect(), drawn = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / drawn.width;
    const [top, bottom] = [tile.top, tile.bottom].map((edge) => (edge - drawn.top) * scale);
    named.classList.add("ends");
    [[names[0], top + 15], [names.at(-1), bottom - 7]].forEach(([name, y]) => {
      const text = append.call(d3.select(named), "text").text(name).node();
      text.setAttribute("x", (tile.right - drawn.left) * scale - 2);
      text.setAttribute("y", y);
    });
    if (named.getBoundingClientRect().right > innerWidth || bottom - top < 40 || names.length < 2) named.remove();
  }

  // Lays the heads of each block into rows of `across`, below the block's name, with each head's number above it.
  function fold(svg, regions) {
    const [left, top, label, named] = [26, 22, 18, 24], number = (item, name) => +item.getAttribute(name);
    const [width, height] = [number(regions[0], "width"), number(regions[0], "height") + label];
    const rows = Math.ceil(page.heads.length / across), ofBlock = rows * height + named;
    const above = (block) => top + block * ofBlock + named; // the first row, with its numbers
    regions.forEach((region, i) => {
      const [block, head] = [Math.floor(i / page.heads.length), i % page.heads.length];
      const x = left + width * (head % across), y = above(block) + height * Math.floor(head / across) + label;
      region.parentNode.setAttribute("transform", `translate(${x - number(region, "x")} ${y - number(region, "y")})`);
      const name = append.call(d3.select(svg), "text").text(page.heads[head]).node();
      for (const [key, value] of Object.entries({ x: x + width / 2, y: y - 4, "text-anchor": "middle" })) name.setAttribute(key, value);
    });
    const [heads, ...others] = [...svg.querySelectorAll(":scope > text")], last = page.heads.length;
    others.slice(0, last).forEach((text) => text.remove()); // the numbers of one row of all heads
    heads.setAttribute("x", left + (across * width) / 2);
    const middle = above(page.blocks.length / 2) - named;
    others[last].setAttribute("y", middle);
    others[last].setAttribute("transform", `rotate(270, 0, ${middle})`);
    page.blocks.forEach((block, place) => {
      const name = others[last + 1 + place];
      name.textContent = `block ${block}`;
      for (const [key, value] of Object.entries({ x: left + 8, y: above(place) - 6, dy: 0, "text-anchor": "start" })) name.setAttribute(key, value);
    });
    const [drawnWidth, drawnHeight] = [left + across * width + 44, above(page.blocks.length) - named]; // with room for `nameEnds`
    svg.setAttribute("viewBox", `0 0 ${drawnWidth} ${drawnHeight}`);
    svg.setAttribute("width", drawnWidth);
    svg.setAttribute("height", drawnHeight); // both, since they give the drawing its proportions
  }

  // An opened head of folded rows: below its small picture, and in larger type.
  function unfold(svg, opened) {
    const larger = 1.4, frame = find("rect.detail")[0], size = svg.viewBox.baseVal;
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => +frame.getAttribute(name));
    const cell = find(".cell")[opened].getBoundingClientRect(), drawn = svg.getBoundingClientRect();
    const scale = size.width / drawn.width, within = (place, most) => Math.max(0, Math.min(place, most));
    const toX = within((cell.left + cell.width / 2 - drawn.left) * scale - (larger * width) / 2, size.width - larger * width);
    const toY = within((cell.bottom - drawn.top) * scale + 4, size.height - larger * height);
    for (const part of svg.querySelectorAll(":scope > .detail"))
      part.setAttribute("transform", `translate(${toX - larger * x} ${toY - larger * y}) scale(${larger})`);
  }

  function dressNeurons() {
    find("#leftText .token").forEach((text) => fit(text, sizes.token - (isNarrow ? 4 : 34))); // room for the plus sign
    find("#rightText .token").forEach((text) => fit(text, sizes.token - 12));
    find("#heading > text")[4].textContent = "attention"; // bertviz names it after the last step, the softmax
    addShares();
    placeHeadings();
    hintAtPlus();
    const tokens = { expanded: find("#expanded #leftText > g"), collapsed: find("#collapsed #leftText > g") };
    for (const [name, other] of [["expanded", "collapsed"], ["collapsed", "expanded"]]) {
      tokens[name].forEach((token, i) => describe(token, "button", `token ${i}: ${token.__data__}`));
      const press = (token, i) => {
        tell(token.lastElementChild, "click"); // the plus or minus sign
        tokens[other][i].focus();
      };
      // The vectors of the last token stay: the numbers can be looked at without holding the pointer over the token.
      const leave = name === "collapsed" ? (token) => tell(token, "mouseleave") : null;
      group(tokens[name], 1, press, (token) => tell(token, "mouseover"), leave);
    }
    window.addEventListener("mouseleave", (event) => event.target.closest?.("#expanded") && event.stopPropagation(), true);
    keyboardFirst();
  }

  // The attention of the token on display, in per cent, at the right of each key; bertviz alone shades it.
  function addShares() {
    find("#expanded #rightText > g").forEach((group) => {
      const box = group.querySelector(".highlight");
      const share = append.call(d3.select(group), "text").node();
      share.classList.add("share");
      share.setAttribute("x", +box.getAttribute("x") + sizes.token + sizes.share - 2);
      share.setAttribute("y", +group.querySelector(".token").getAttribute("y") + sizes.text);
      share.setAttribute("font-size", `${sizes.text}px`);
      const score = append.call(d3.select(group), "text").node(); // beside its square
      score.classList.add("score");
      score.setAttribute("x", +box.getAttribute("x") - sizes.step + (isNarrow ? 51 : 44));
      score.setAttribute("y", share.getAttribute("y"));
    });
    const step = append.call(d3.select(find("#expanded")[0]), "text").text(`${page.step} →`).node();
    step.classList.add("step");
    step.setAttribute("x", +find("#expanded #rightText .highlight")[0].getAttribute("x") + (isNarrow ? sizes.token + sizes.share : 2));
    step.setAttribute("y", isNarrow ? 24 : find("#heading > text")[4].getAttribute("y"));
  }

  function writeShares(query) {
    const start = page.second_start ?? 0;
    const [left, right] = { aa: [0, 0], ab: [0, start], ba: [start, 0], bb: [start, start] }[page.filter] || [0, 0];
    const at = (left + query) * all + right;
    find("#expanded #rightText .share").forEach((text, key) => (text.textContent = `${percents[at + key]} %`));
    const said = (value) => value.toFixed(1).replace(/^-0\.0$/, "0.0").replace("-", "−");
    find("#expanded #rightText .score").forEach((text, key) => (text.textContent = said(scores[at + key])));
    find("#expanded #queries .vector").forEach((vector, number) => {
      vector.classList.toggle("chosen", number === query);
      if (isNarrow) vector.setAttribute("transform", `translate(0 ${2 - sizes.top - number * sizes.row})`);
    });
  }

  // bertviz's headings are made for other columns.
  function placeHeadings() {
    const left = (selector) => Math.min(...find(selector).map((item) => +item.getAttribute("x")));
    const columns = ["#queries", "#keys", "#product"].map((id) => left(`${id} .vectorborder`) + sizes.vector / 2);
    const centres = [...columns, left(".dotproduct") + (isNarrow ? sizes.row + 51 : sizes.row) / 2];
    ["query q", "key k", "q × k", "q · k"].forEach((name, i) => {
      const heading = find("#heading > text")[i];
      heading.textContent = name;
      heading.setAttribute("x", centres[i]);
      heading.style.textAnchor = "middle";
    });
    if (isNarrow) {
      const query = find("#heading > text")[0]; // left of its vector
      query.setAttribute("x", 33);
      query.setAttribute("y", 24);
    }
    const placeholder = find("#placeholder")[0];
    placeholder.setAttribute("x", columns[2] - sizes.vector / 2);
  }

  // What to do where the vectors were, after they were closed.
  function hintAtPlus() {
    const lines = isNarrow ? ["+ beside a token shows its vectors"] : ["Point at a token and click +", "to see its vectors again."];
    lines.forEach((line, i) => {
      const hint = append.call(d3.select("#collapsed"), "text").text(line).node();
      hint.classList.add("hint");
      hint.setAttribute("x", isNarrow ? 0 : 500);
      hint.setAttribute("y", isNarrow ? 24 : 80 + 24 * i);
    });
  }

  // The browser reports that the pointer is over a token also when the tokens moved under a pointer that rests. While the
  // keyboard is used, that must not show another token than the focused one. Once the mouse moves, it decides again.
  function keyboardFirst() {
    let isByKeyboard = false, x = null, y = null;
    const pointed = (event) => {
      if (!event.isTrusted) return;
      const moved = x !== null && (event.screenX !== x || event.screenY !== y);
      [x, y] = [event.screenX, event.screenY];
      if (moved && isByKeyboard) {
        isByKeyboard = false;
        const token = event.target.closest?.("#leftText > g");
        if (token) tell(token, "mouseover"); // it may have been under the pointer all the time
      } else if (isByKeyboard) event.stopPropagation();
    };
    for (const type of ["mousemove", "mouseover", "mouseout", "mouseleave"]) window.addEventListener(type, pointed, true);
    window.addEventListener("keydown", () => (isByKeyboard = true), true);
    window.addEventListener("focusin", (event) => (isByKeyboard ||= event.target.matches(":focus-visible")));
    window.addEventListener("mousedown", () => (isByKeyboard = false), true);
  }

  // The neuron view opens with the vectors of one token, as if a person had pointed at its plus sign.
  function openToken() {
    const tokens = (part) => find(`#${part} #leftText > g`);
    const token = (part) => tokens(part)[Math.min(page.opened, tokens(part).length - 1)];
    tell(token("collapsed"), "mouseover");
    tell(token("collapsed").lastElementChild, "click");
    tell(token("expanded"), "mouseover");
  }

  const dress = { head: dressHeads, model: dressModel, neuron: dressNeurons }[page.view];
  const drawings = new MutationObserver(() => {
    const svg = vis.querySelector("svg");
    if (!svg) return;
    const isNew = !svg.hasAttribute("role");
    if (isNew) {
      // A new drawing, not only a cell that was opened. Two views have a fixed width: in a narrower frame they shrink.
      ofCells = "";
      if (page.view === "model") svg.setAttribute("viewBox", `0 0 970 ${svg.getAttribute("height")}`);
      if (page.view === "neuron") {
        const width = 2 * sizes.token + sizes.share + 2 * sizes.vector + 3 * sizes.gap + sizes.beside + sizes.row + sizes.step + 4;
        svg.setAttribute("viewBox", `0 0 ${width} ${sizes.row * all + sizes.top + 8}`);
      }
    }
    drawings.observe(svg, { childList: true });
    describe(svg, "group", document.title);
    dress(svg);
    // In a narrow frame the drawing is lower than the dashboard, which does not know the frame's width, has given it room for.
    const frame = page.view !== "head" && window.frameElement, end = Math.ceil(svg.getBoundingClientRect().bottom + window.scrollY) + 24;
    if (frame && (isNarrow || end < window.innerHeight)) give(frame, end);
    if (isNew && page.view === "neuron") openToken();
    write();
    leftOut = "";
  });
  drawings.observe(vis, { childList: true });
  // Where the window becomes narrow or wide, as a phone that is turned does, all is drawn anew, in the height it had at first.
  window.addEventListener("resize", () => {
    const frame = window.frameElement;
    if (!frame || page.view === "head" || !window.innerWidth || window.innerWidth < 640 === isNarrow) return;
    Object.assign(frame.parentElement.style, { height: "", flex: "" });
    frame.style.height = "";
    location.reload();
  });

  window.require = { config() {} };
  window.requirejs = (names, start) => start(jQuery, d3);
})();
