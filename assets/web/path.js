// The whole path: one row for each token through all stops. Reports "want" with the names of arrays that are missing, "place"
// with [stop, token, block, head, only left] when a person rests there, and "open" with a stop whose own view is asked for; "second" where a second sentence is.
// Where it is asked to, it reports "drawn" once, when the first picture is there.
const MOVE = 620, REVEAL = 2600, STAY = 8000, LONGEST_STAY = 21000, LOOK = 3000, READ_WORD = 240, REST = 700, ANSWERED = 15000; // milliseconds
const LEAST_ROW = 22, MOST_ROWS = 24; // pixels of a row; rows
const LOW = 480; // pixels of height of a phone that lies on its side
const STACKED = 820; // pixels of width below which the stops stand below one another
const CLOSED_WIDTH = { pieces: 80, zero: 68, look: 54, take: 58, alone: 60, blocks: 82, pool: 76, compare: 80 };
const LARGE_LETTERS = 1.2; // on a projector, where the drawing has as much room as the screen is high
const CROWDED = new Set(["alone", "pool", "compare"]); // opened, they have no room for larger letters
const GAP = 12, CLOSED_HEIGHT = 34;

// Where a person was on each path, by its id, and what the server said then: the view may be built anew below the same path.
const places = (globalThis.bertInternalsPlaces ??= new Map());

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

class WholePath {
  constructor(root) {
    this.root = root;
    this.page = location.pathname;
    this.find = (selector) => root.querySelector(selector);
    this.pen = new Pen(this.find(".stage canvas"));
    this.state = { stop: "pieces", token: 0, block: 0, head: 0, left: false, partner: null, cell: null, hovered: null, first: null };
    this.moving = { at: 0, from: 0, since: 0, arrived: 0 };
    this.reveal = 1;
    this.isPlaying = false;
    this.frames = []; // milliseconds of script for each, for the test of speed
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.listen();
  }

  // ---- what the server sent
  receive(data, report) {
    this.report = report;
    const { facts, arrays } = unpack(data), store = keep({ facts, arrays }), isNew = facts.id !== this.facts?.id;
    this.facts = facts;
    if (isNew) {
      this.numbers = new Numbers(facts, store);
      this.usual = new Numbers(facts, store);
      this.pen.images.clear();
      this.controls();
    }
    const place = JSON.stringify(facts.place), was = places.get(facts.id);
    if (isNew) [this.said, this.reported] = [null, []]; // what the server said last, and what it was told without an answer yet
    const isSent = this.isSent(place);
    if (isNew && was?.[0] === place) {
      [this.lastPlace, this.state] = was;
      this.moving.at = this.stopAt();
    } else if (isSent || isNew) {
      this.lastPlace = place;
      const [stop, token, block, head, left] = facts.place;
      this.state = { ...this.state, stop: facts.stops.includes(stop) ? stop : facts.stops[0], token: clamp(token, 0, facts.tokens.length - 1), block: clamp(block, 0, Math.max(0, facts.blocks - 1)), head: clamp(head, 0, Math.max(0, facts.heads - 1)), left, partner: null, cell: null, first: null };
      this.moving.at = this.stopAt();
    }
    this.recolour();
    this.ask();
    this.resize();
    if (arrays.length) this.warm();
  }

  // Whether the server sends to another place: not where it says again what it said before, or what it was told from here, since
  // an answer may come after further moves.
  isSent(place) {
    const before = this.said, late = performance.now() - ANSWERED;
    this.reported = this.reported.filter((told) => told.at > late);
    const number = this.reported.findIndex((told) => told.place === place);
    this.said = place;
    this.reported.splice(0, number + 1);
    return number < 0 && place !== before && place !== this.lastPlace;
  }

  get mode() {
    return this.state.left ? "left" : "all";
  }

  // Ask for the arrays that the state needs; what is there is drawn meanwhile.
  ask() {
    const { facts, numbers, state } = this, wanted = [];
    if (!numbers.has(`${this.mode}.layers`)) wanted.push(this.mode);
    if (facts.blocks && !numbers.has(`${this.mode}.${state.block}.queries`)) wanted.push(`${this.mode}.${state.block}`);
    if (numbers.has(`${this.mode}.layers`)) numbers.mode = this.mode;
    this.pen.prefix = numbers.mode;
    if (wanted.length && !facts.opened) this.report("want", wanted);
  }

  usualSimilarity() {
    return this.usual.has("all.first.vector") ? this.usual.similarity() : null;
  }

  // ---- state
  stopAt() {
    return this.facts.stops.indexOf(this.state.stop);
  }

  set(changes, isByHand = true) {
    if (isByHand && this.isPlaying) this.play(false);
    const block = changes.block ?? this.state.block;
    if (this.facts.opened && !this.facts.opened.includes(block)) {
      this.open("look", block); // where every block can be opened
      return;
    }
    const before = this.state.stop;
    Object.assign(this.state, changes);
    if (["token", "head", "block", "left"].some((name) => name in changes)) this.state.partner = null;
    if ("token" in changes) this.state.first = null;
    if (this.state.stop !== before) {
      this.state.cell = null;
      this.hideHint();
      Object.assign(this.moving, { from: this.moving.at, since: performance.now() });
      if (this.isStacked || this.isCalm) Object.assign(this.moving, { at: this.stopAt(), arrived: performance.now() });
      this.reveal = this.isPlaying && !this.isCalm ? 0 : 1;
    }
    this.ask();
    if (this.isStacked) this.resize();
    this.say();
    this.redraw();
    if (this.isStacked && this.state.stop !== before) this.bringIntoView();
    this.remember();
    clearTimeout(this.resting);
    if (!this.isPlaying) this.resting = setTimeout(() => this.reportPlace(), REST);
  }

  // On Start, what its field holds unsent goes along.
  open(stop, block) {
    const typed = window.bertInternalsTyped?.();
    this.report("open", [stop, this.state.token, block, this.state.head, ...(typed ? [typed] : [])]);
  }

  // The stop's question with all that fits below it; on a phone the keys stay at the bottom of the screen, where they were.
  bringIntoView() {
    const [player, say, tokens, stage] = [".player", ".say", ".tokens", ".stage"].map(this.find), top = (element) => element.getBoundingClientRect().top;
    if (!this.isStacked && top(say) >= 0 && stage.getBoundingClientRect().bottom + player.offsetHeight <= innerHeight) return;
    (tokens.clientHeight && top(tokens) < top(say) ? tokens : say).scrollIntoView({ block: "start" });
    if (this.isStacked && player.getBoundingClientRect().bottom < innerHeight - 1) player.scrollIntoView({ block: "end" });
  }

  // On a phone the page follows what appears while it plays, until somebody scrolls.
  follow() {
    if (!this.isPlaying || !this.isStacked || this.isScrolled) return;
    const { offsetTop, offsetHeight } = this.find(".here"), front = this.find(".front");
    Object.assign(front.style, { top: `${offsetTop + (offsetHeight - 1) * this.reveal}px`, scrollMarginBottom: `${this.find(".player").offsetHeight + 4}px` });
    front.scrollIntoView({ block: "nearest" });
  }

  // How long a stop stays while it plays: so long that its words can be read and its picture looked at.
  stay() {
    return clamp(LOOK + READ_WORD * this.find(".say").textContent.split(/\s+/).length, STAY, LONGEST_STAY);
  }

  reportPlace() {
    const { stop, token, block, head, left } = this.state, place = [stop, token, block, head, left];
    if (JSON.stringify(place) === this.lastPlace || !this.root.isConnected || this.facts.opened) return;
    if (location.pathname !== this.page) return; // which is being left: an answer would remove what comes in its place
    this.lastPlace = JSON.stringify(place);
    this.reported.push({ place: this.lastPlace, at: performance.now() });
    this.remember();
    this.report("place", place);
  }

  remember() {
    places.set(this.facts.id, [this.lastPlace, { ...this.state, partner: null, cell: null, hovered: null, first: null }]);
  }

  // One stop on or back; false where there is no further one.
  step(by) {
    const stop = this.facts?.stops[this.stopAt() + by];
    if (stop) this.set({ stop });
    return Boolean(stop);
  }

  play(isOn) {
    clearTimeout(this.waiting);
    clearTimeout(this.following);
    this.isPlaying = isOn;
    if (isOn) {
      const { stops } = this.facts;
      if (this.stopAt() === stops.length - 1) this.set({ stop: stops[0] }, false);
      this.reveal = this.isCalm ? 1 : 0;
      this.moving.arrived = performance.now();
      const wait = (next) => {
        this.isScrolled = false;
        this.waiting = setTimeout(next, this.stay());
        if (this.isCalm) this.following = setTimeout(() => this.follow(), this.stay() / 2);
      };
      const next = () => {
        if (!this.isPlaying || !this.root.isConnected) return;
        if (this.stopAt() === stops.length - 1) {
          this.play(false);
          return;
        }
        this.set({ stop: stops[this.stopAt() + 1] }, false);
        wait(next);
      };
      this.bringIntoView();
      wait(next);
    } else {
      this.reveal = 1;
      this.resting = setTimeout(() => this.reportPlace(), REST);
    }
    this.say();
    this.redraw();
  }

  // How far the part number `at` of `of` has appeared, while it plays: 0 to 1.
  progress(at, of) {
    return clamp(this.reveal * (of + 0.6) - at, 0, 1);
  }

  appear(at, of, draw) {
    this.pen.faded(this.progress(at, of), draw);
  }

  // ---- words and controls
  controls() {
    const { facts } = this, button = (words, name, press) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = words;
      made.setAttribute("aria-label", name);
      made.onclick = press;
      return made;
    };
    const choices = (place, count, name, what) => {
      const box = this.find(`.${place}`);
      box.hidden = !count;
      const many = count > 12 || this.isStacked, list = box.querySelector("select"), row = box.querySelector(".row");
      list.hidden = !many;
      row.hidden = many;
      const each = Array.from({ length: count }, (_, number) => number);
      list.replaceChildren(...each.map((number) => new Option(String(number), String(number))));
      list.onchange = () => this.set({ [what]: Number(list.value) });
      row.replaceChildren(...(many ? [] : each.map((number) => button(String(number), `${name} ${number}`, () => this.set({ [what]: number })))));
    };
    choices("blocks", facts.blocks, "Block", "block");
    choices("heads", facts.heads, "Head", "head");
    this.find(".tokens").replaceChildren(...facts.tokens.map((token, place) => {
      const made = button(token.piece, `Piece ${place}: ${token.piece}`, () => this.set({ token: place }));
      made.classList.toggle("special", token.special);
      return made;
    }));
    const slider = this.find("input");
    slider.max = facts.stops.length;
    this.find(".marks").replaceChildren(...facts.stops.map((stop, number) => {
      const mark = document.createElement("li");
      mark.textContent = number + 1;
      mark.title = this.nameOf(stop);
      return mark;
    }));
    const left = this.find(".left");
    left.hidden = !facts.blocks || Boolean(facts.opened);
    left.disabled = !facts.canLookLeft;
    left.title = facts.canLookLeft ? "Each token may look only at itself and at tokens before it, as in GPT. This model was not trained so." : facts.whyNotLeft;
    this.find(".legend").hidden = false;
  }

  nameOf(stop) {
    return this.facts.names[stop];
  }

  say() {
    if (!this.numbers.hasMode()) return;
    const { state, facts } = this, [question, line, finding] = WORDS[state.stop](this), name = quoted(this, state.token);
    const head = this.find("h3"), at = question.indexOf(name);
    const mark = (words) => Object.assign(document.createElement("b"), { textContent: words });
    head.replaceChildren(...(at < 0 ? [question] : [question.slice(0, at), mark(name), question.slice(at + name.length)]));
    this.find(".line").textContent = line + (this.numbers.mode === "left" && ["look", "take", "blocks"].includes(state.stop) ? " (The model was trained to look both ways.)" : "");
    this.find(".found").replaceChildren(...finding.map((part) => (part.strong ? mark(part.strong) : part)));
    const more = this.find(".more"), view = facts.more[state.stop];
    more.hidden = !view;
    more.textContent = view ? `${view}${state.left ? " (where each token sees all)" : ""}` : "";
    this.find(".second").hidden = state.stop !== "compare" || Boolean(facts.second);
    const slider = this.find("input");
    slider.value = this.stopAt() + 1;
    slider.setAttribute("aria-valuetext", `${this.stopAt() + 1} of ${facts.stops.length}: ${this.nameOf(state.stop)}`);
    this.find(".left").setAttribute("aria-checked", state.left);
    // Before a piece looks at others it acts on nothing; once on, it can be seen and turned off.
    this.find(".left").style.visibility = ["pieces", "zero"].includes(state.stop) && !state.left ? "hidden" : "";
    // On a phone a choice stands where its effect is seen.
    this.find(".blocks").classList.toggle("aside", !["look", "take", "alone", "blocks"].includes(state.stop));
    this.find(".heads").classList.toggle("aside", !(state.stop === "take" || (state.stop === "look" && this.isStacked))); // beside each other the small pictures choose
    for (const [place, chosen] of [["blocks", state.block], ["heads", state.head], ["tokens", state.token]]) {
      const box = this.find(`.${place}`);
      (box.querySelector(".row") ?? box).childNodes.forEach((each, number) => each.setAttribute("aria-pressed", number === chosen));
      const list = box.querySelector("select");
      if (list) list.value = String(chosen);
    }
    const tokens = this.find(".tokens"), chosen = tokens.children[state.token];
    if (chosen && tokens.clientWidth) tokens.scrollLeft = chosen.offsetLeft - tokens.offsetLeft - tokens.clientWidth / 2 + chosen.offsetWidth / 2;
    const play = this.find(".play");
    play.setAttribute("aria-label", this.isPlaying ? "Pause" : "Play");
    play.classList.toggle("playing", this.isPlaying);
    this.find(".text").replaceChildren(...facts.stops.map((stop) => {
      const [asked, explained, found] = WORDS[stop](this), item = document.createElement("li");
      item.textContent = `${asked}${/[.?!]$/.test(asked) ? "" : "."} ${explained} ${plain(found)}`;
      return item;
    }));
    if (this.find("details").open) this.table();
  }

  table() {
    const [titles, ...rows] = TABLES[this.state.stop](this), made = (tag, words) => Object.assign(document.createElement(tag), { textContent: words });
    const line = (cells, tag) => {
      const row = document.createElement("tr");
      row.append(...cells.map((words) => made(tag, words)));
      return row;
    };
    this.find("table").replaceChildren(line(titles, "th"), ...rows.map((row) => line(row, "td")));
  }

  // ---- layout
  recolour() {
    this.pen.recolour();
    drawScale(this.pen, this.find(".legend canvas"), this.find(".legend div"));
  }

  resize() {
    if (!this.numbers?.hasMode()) return; // its arrays are still on their way
    // On a phone that lies on its side, what a stop says stands beside its picture.
    this.root.classList.toggle("beside", innerHeight <= LOW && this.root.clientWidth > 600 && this.root.clientWidth <= STACKED);
    const stage = this.find(".stage"), width = stage.clientWidth;
    if (!width) return;
    const wasStacked = this.isStacked;
    this.isStacked = width <= STACKED;
    this.root.classList.toggle("stacked", this.isStacked);
    if (wasStacked !== this.isStacked) this.controls();
    const count = this.facts.tokens.length;
    let height, scale = 1, letters = 1;
    if (this.isStacked) {
      this.arrangeRows(Math.min(count, MOST_ROWS));
      height = this.openHeight() + CLOSED_HEIGHT * (this.facts.stops.length - 1) + 6;
      this.moving.at = this.stopAt();
      Object.assign(this.find(".here").style, { top: `${CLOSED_HEIGHT * this.stopAt()}px`, height: `${this.openHeight()}px` });
    } else {
      // On a projector what stands above the drawing is larger, and so is the drawing.
      const type = parseFloat(getComputedStyle(document.documentElement).fontSize) / 21.6, isLarge = type > 0.9, isBare = "bare" in document.documentElement.dataset;
      if (isLarge) letters = LARGE_LETTERS;
      // On a low one the style sheet says what else takes of its height, and how low the drawing may be.
      const [taken, least] = ["--path-else", "--path-least"].map((name) => parseFloat(getComputedStyle(this.root).getPropertyValue(name)));
      const room = isLarge ? clamp(innerHeight - (isBare ? 385 : 560) * type, 490 * type, 1000 * type) : clamp(innerHeight - (taken || 432), least || 468, 1000);
      scale = clamp(Math.min(width / (isLarge ? 1050 : 1200), room / (isLarge ? 520 : 600)), 0.85, 2.4);
      const most = Math.floor((room - 132 * scale) / LEAST_ROW);
      this.arrangeRows(Math.min(count, MOST_ROWS, most));
      height = clamp(132 * scale + this.rows.length * 42 * scale, Math.min(room, 500 * scale), room);
    }
    this.pen.resize(width, height, scale, letters);
    this.say();
    this.redraw();
  }

  // Which tokens have a row: all, or the chosen one, those that it looks at and takes from most, and so many around it or from
  // `state.first` on, with a row for each run of others.
  arrangeRows(most) {
    const { facts: { tokens }, state: { token, block, head, first }, numbers } = this, count = tokens.length;
    const always = new Set([token, ...(numbers.hasBlock(block) ? [largest(numbers.weights(block, head, token)), largest(numbers.took(block, token), token)] : [])]);
    this.mostRows = most;
    for (this.shownRows = Math.min(count, most); ; this.shownRows--) {
      const from = clamp(first ?? token - (this.shownRows >> 1), 0, count - this.shownRows);
      this.rows = [];
      for (let place = 0; place < count; place++) {
        const rest = this.rows[this.rows.length - 1]?.rest;
        if (always.has(place) || (place >= from && place < from + this.shownRows)) this.rows.push({ token: place });
        else if (rest) rest[1] = place;
        else this.rows.push({ rest: [place, place] });
      }
      if (this.rows.length <= most || this.shownRows < 2) break;
    }
    this.rowOf = new Map();
    this.rows.forEach((row, number) => (row.rest ? tokensOf(row.rest) : [row.token]).forEach((each) => this.rowOf.set(each, number)));
  }

  // Give rows to some tokens that have none; the chosen one stays.
  show(rest) {
    this.state.first = rest[1] < this.state.token ? Math.max(0, rest[1] - this.shownRows + 1) : rest[0];
    this.resize();
  }

  openHeight() {
    const rows = this.rows.length, wide = this.facts.terms.length ? 60 : 0;
    return 44 + { pieces: rows * 27 + 24, zero: 360, look: rows * 26 + 456 + wide, take: rows * 26 + 344, alone: 420, blocks: rows * 26 + 100, pool: rows * 24 + (this.facts.second ? 400 : 160) + 120 * this.facts.steps.length, compare: this.facts.second ? 470 : 120 }[this.state.stop];
  }

  // ---- drawing
  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    this.frame = 0;
    if (!this.root.isConnected || !this.numbers?.hasMode()) return;
    const goal = this.stopAt();
    let isMoving = false;
    if (this.moving.at !== goal) {
      const part = clamp((now - this.moving.since) / MOVE, 0, 1), eased = part < 0.5 ? 4 * part ** 3 : 1 - (2 - 2 * part) ** 3 / 2;
      this.moving.at = part >= 1 ? goal : this.moving.from + (goal - this.moving.from) * eased;
      if (part >= 1) this.moving.arrived = now;
      isMoving = true;
    } else if (this.reveal < 1) {
      this.reveal = clamp((now - this.moving.arrived) / (this.isStacked ? this.stay() * 0.7 : REVEAL), 0, 1);
      isMoving = true;
    }
    const begun = performance.now();
    this.draw();
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 2000) this.frames.shift();
    if (!this.isCalm) this.follow();
    if (isMoving) this.redraw();
  }

  draw() {
    if (!this.isStacked && this.facts.tokens.length > this.rows.filter((row) => !row.rest).length) this.arrangeRows(this.mostRows);
    this.pen.begin();
    if (this.isStacked) this.drawStacked();
    else this.drawWide();
    if (this.facts.asksWhenDrawn && !globalThis.bertInternalsDrawn) {
      globalThis.bertInternalsDrawn = true;
      requestAnimationFrame(() => {
        performance.mark("first picture"); // on the screen by now; `make bench` reads when that was
        this.report("drawn", true);
      });
    }
    if (!this.find(".tip").hidden) this.placeHint();
    this.pen.canvas.dataset.drawn = `${this.state.stop} ${this.numbers.mode} ${this.state.token} ${this.facts.blocks && !this.numbers.hasBlock(this.state.block) ? "loading" : this.state.block}`;
  }

  // What each stop is drawn with is made while nothing else happens, so that no frame of a movement has to.
  warm(number = 0) {
    if (!window.requestIdleCallback || this.isStacked || number >= this.facts.stops.length) return;
    requestIdleCallback(() => {
      if (!this.root.isConnected || this.isStacked || !this.numbers.hasMode() || !this.rows) return;
      if (!this.isPlaying && this.moving.at === this.stopAt()) {
        const { state, moving } = this;
        this.state = { ...state, stop: this.facts.stops[number] };
        this.moving = { ...moving, at: number };
        this.draw();
        [this.state, this.moving] = [state, moving];
        this.draw();
      }
      this.warm(number + 1);
    });
  }

  title(stop, number, x, y, isOpen) {
    const { pen } = this, { context, colours, scale } = pen, radius = 9.5 * scale;
    context.beginPath();
    context.arc(x + radius, y, radius, 0, 7);
    Object.assign(context, { fillStyle: isOpen ? colours.accent : colours.ground, strokeStyle: isOpen ? colours.accent : colours.line, lineWidth: 1 });
    context.fill();
    context.stroke();
    pen.text(String(number + 1), x + radius, y + 0.5, { size: 11.5, bold: true, align: "center", colour: isOpen ? colours.ground : colours.quiet });
    pen.text(this.nameOf(stop), x + radius * 2 + 4 * scale, y, { size: 12.5, bold: isOpen, colour: isOpen ? colours.text : colours.quiet });
    pen.spot(x - 4, y - 15 * scale, 80 * scale, 30 * scale, { hint: `Stop ${number + 1}: ${this.facts.hints[stop]}`, press: choose(this, { stop }) });
  }

  drawWide() {
    const { pen, state, facts } = this, { width, height, scale, colours } = pen, { stops } = facts;
    const top = 54 * scale, foot = height - 78 * scale, pitch = (foot - top) / this.rows.length, y = (token) => top + pitch * (this.rowOf.get(token) + 0.5);
    const closed = stops.map((stop) => CLOSED_WIDTH[stop] * scale * (1 + (pen.type - 1) / 2)), gap = GAP * scale, pad = 6 * scale;
    const extra = width - 2 * pad - gap * (stops.length - 1) - total(closed), open = stops.map((_, number) => clamp(1 - Math.abs(this.moving.at - number), 0, 1));
    let x = pad;
    const columns = closed.map((each, number) => {
      const column = { x, width: each + extra * open[number] };
      x += column.width + gap;
      return column;
    });
    this.columns = columns;
    // The row of the chosen token, and of the one that is pointed at, through all stops that have rows.
    const band = Math.max(...stops.map((stop, number) => (stop === "pool" || stop === "compare" ? 0 : columns[number].x + columns[number].width)));
    for (const [token, colour, alpha] of [[state.token, colours.accent, colours.isDark ? 0.2 : 0.11], [state.hovered, colours.text, colours.isDark ? 0.1 : 0.05]])
      if (token !== null && (colour === colours.accent || token !== state.token)) pen.box(0, y(token) - pitch / 2 + 1, band + 6 * scale, pitch - 2, { round: 8, fill: colour, alpha });
    const [look, alone] = [stops.indexOf("look"), stops.indexOf("alone")];
    if (look >= 0) this.bracket(columns[look].x, columns[alone].x + columns[alone].width);
    stops.forEach((stop, number) => {
      const column = columns[number], part = open[number];
      if (part > 0.02) {
        pen.box(column.x - 5 * scale, 36 * scale, column.width + 10 * scale, height - 38 * scale, { round: 10, fill: colours.panel, alpha: Math.min(1, part * 1.5) });
        if (["pieces", "look", "blocks"].includes(stop)) pen.box(column.x - 5 * scale, y(state.token) - pitch / 2 + 1, column.width + 10 * scale, pitch - 2, { round: 0, fill: colours.accent, alpha: part * (colours.isDark ? 0.2 : 0.11) });
      }
      const area = { y, pitch, foot, isNarrow: false };
      if (part < 0.5) pen.faded(1 - part * 2, () => {
        if (number) pen.spot(column.x, top - 8 * scale, column.width, height - top, { hint: `Stop ${number + 1}: ${this.facts.hints[stop]}. Click to open.`, press: choose(this, { stop }) });
        CLOSED[stop](this, { ...area, x: column.x, width: closed[number], top, bottom: height });
        pen.text(shapes(this)[stop], column.x, foot + 16 * scale, { size: 12, colour: colours.quiet, most: closed[number] + gap - 4 });
      });
      if (part > 0.4) pen.faded(Math.min(1, (part - 0.4) / 0.55), () => {
        pen.context.save();
        pen.context.beginPath();
        pen.context.rect(column.x - 5 * scale, 0, column.width + 10 * scale, height);
        pen.context.clip();
        const letters = pen.type;
        if (CROWDED.has(stop)) pen.type = 1;
        OPEN[stop](this, { ...area, x: column.x, width: column.width, top: top + 6 * scale, head: 46 * scale, bottom: height - 6 * scale });
        pen.type = letters;
        pen.context.restore();
      });
      this.title(stop, number, column.x, 24 * scale, part > 0.5);
    });
  }

  bracket(left, right) {
    const { pen, state } = this, { colours, scale } = pen, y = 7 * scale, middle = (left + right) / 2;
    // The blocks before the one that is opened are not drawn: they are named first, where a reader comes from layer 0.
    const isWide = right - left > 240 * scale, before = !state.block || !isWide ? "" : state.block > 1 ? `blocks 0 to ${state.block - 1}, then ` : "block 0, then ";
    const words = `${before}block ${state.block}${isWide ? ", opened" : ""}`;
    const half = pen.text(words, middle, y, { size: 13, colour: before ? colours.text : colours.quiet, align: "center" }) / 2 + 8 * scale;
    pen.stroke([[left, y + 6 * scale], [left, y], [middle - half, y]], colours.line);
    pen.stroke([[middle + half, y], [right, y], [right, y + 6 * scale]], colours.line);
  }

  drawStacked() {
    const { pen, facts, state } = this, { width, colours } = pen;
    let y = 0;
    facts.stops.forEach((stop, number) => {
      const isOpen = stop === state.stop, height = isOpen ? this.openHeight() : CLOSED_HEIGHT, top = y;
      if (isOpen) {
        pen.box(0, top, width, height - 6, { round: 10, fill: colours.panel });
        const pitch = stop === "pieces" ? 27 : stop === "pool" ? 24 : 26;
        OPEN[stop](this, { x: 8, width: width - 16, top: top + 48, head: top + 46, bottom: top + height - 12, pitch, y: (token) => top + 58 + pitch * (this.rowOf.get(token) + 0.5), isNarrow: true });
      } else {
        pen.stroke([[8, top + height - 3], [width - 8, top + height - 3]], colours.line);
        this.mini(stop, width - 200, top + 16, 192);
      }
      pen.spot(0, top, width, isOpen ? 40 : height, { press: choose(this, { stop }) });
      this.title(stop, number, 10, top + (isOpen ? 22 : 16), isOpen);
      y += height;
    });
  }

  // A closed stop on a phone: the chosen token's own.
  mini(stop, x, y, width) {
    const { pen, numbers, facts, state: { token, block, head } } = this, { colours } = pen;
    const strip = (key, values, count = facts.dim, rows = 1) => pen.strip(key, values, count, x, y - 8, width, 16, { rows });
    if (stop === "pieces") chip(this, token, x + width - 110, y, 110, { pitch: 30, size: 13 });
    else if (stop === "zero") strip(`layer 0 ${token}`, () => numbers.layer(0, token));
    else if (stop === "look") {
      const shares = numbers.hasBlock(block) ? numbers.weights(block, head, token) : numbers.took(block, token);
      shares.forEach((share, key) => pen.box(x + (key * width) / shares.length, y + 9 - Math.max(1, share * 18), Math.max(1, width / shares.length - 2), Math.max(1, share * 18), { round: 0, fill: colours.accent, alpha: fade(share) }));
    } else if (stop === "take" && numbers.hasBlock(block)) strip(`after ${block} ${token}`, () => numbers.step("after_attention", block, token));
    else if (stop === "alone") strip(`layer ${block + 1} ${token}`, () => numbers.layer(block + 1, token));
    else if (stop === "blocks") strip(`all layers ${token}`, () => allLayers(this, token), facts.dim, facts.blocks + 1);
    else if (stop === "pool") strip("first unit", () => numbers.unit("first"), numbers.vector("first").length);
    else if (stop === "compare") pen.text(facts.second ? `cosine ${shownCosine(numbers.similarity())}` : "add a sentence", x + width, y, { align: "right", bold: true });
  }

  // ---- pointing
  spotAt(event, isWanted) {
    const frame = this.pen.canvas.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
    const spot = this.pen.spots.findLast((each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height && isWanted(each));
    return { spot, x, y };
  }

  point(event) {
    const { spot, x, y } = this.spotAt(event, () => true);
    let hint = spot?.hint, cell = null, { partner } = this.state;
    if (spot?.cells) {
      const { values, count, rows, neighbours } = spot.cells, numbers = values(), columns = Math.ceil(count / neighbours);
      const row = clamp(Math.floor(((y - spot.y) / spot.height) * rows), 0, rows - 1), column = clamp(Math.floor(((x - spot.x) / spot.width) * columns), 0, columns - 1);
      let at = column * neighbours;
      for (let other = at; other < Math.min(count, (column + 1) * neighbours); other++) if (Math.abs(numbers[row * count + other]) > Math.abs(numbers[row * count + at])) at = other;
      const isOne = rows > 1 && spot.name?.endsWith("neurons");
      const whose = spot.pieces ? `“${spot.pieces[row]}” of the ${spot.name}` : rows > 1 && !isOne ? `${spot.name ?? ""}: layer ${row}` : spot.name ?? "";
      hint = `${whose ? `${whose}, ` : ""}${isOne ? "neuron" : "cell"} ${isOne ? row * count + at : at}: ${shown(numbers[row * count + at], 3)}${neighbours > 1 ? ` (${neighbours} cells share this place; the strongest is shown)` : ""}${spot.more ? spot.more(at) : ""}`;
      cell = { count, at };
    }
    if (spot?.course) {
      const { products, sums, first, second } = spot.course, at = clamp(Math.floor(((x - spot.course.x) / spot.course.width) * sums.length), 0, sums.length - 1);
      hint = `the sum from cell 0 to cell ${at}: ${shown(sums[at], 3)}; cell ${at} gives ${productOf(first[at], second[at], 4)} ≈ ${shown(products[at], 4)}`;
      cell = { count: sums.length, at };
    }
    if (this.state.stop === "look" && spot) partner = spot.partner ?? spot.token ?? partner;
    const hovered = spot?.token ?? null;
    if (cell?.at !== this.state.cell?.at || cell?.count !== this.state.cell?.count || partner !== this.state.partner || hovered !== this.state.hovered) {
      Object.assign(this.state, { cell, partner, hovered });
      this.redraw();
    }
    this.pen.canvas.style.cursor = this.spotAt(event, (each) => each.press).spot ? "pointer" : "default";
    if (hint) this.showHint(hint, x, y);
    else this.hideHint();
  }

  // A finger chooses a cell or a match, as a mouse does by pointing. Returns whether that is all it does.
  touch(event) {
    const { spot } = this.spotAt(event, () => true), isMatch = this.state.stop === "look" && spot?.partner !== undefined;
    if (this.isPlaying && (isMatch || spot?.cells || spot?.course)) this.play(false);
    if (isMatch || spot?.cells || spot?.course) this.point(event);
    else this.state.cell = null;
    if (isMatch || this.state.cell === null) this.hideHint(); // what it says of a match stands below
    this.redraw();
    return isMatch;
  }

  showHint(words, x, y) {
    const tip = this.find(".tip");
    tip.textContent = words;
    tip.hidden = false;
    this.hintAt = [x, y];
    this.placeHint();
  }

  // Near what is pointed at, where it covers the fewest words, and numbers least of all.
  placeHint() {
    const tip = this.find(".tip"), { offsetWidth: width, offsetHeight: height } = tip, [x, y] = this.hintAt, { texts } = this.pen;
    const right = Math.max(4, this.find(".stage").clientWidth - width - 4), common = (one, size, other, length) => Math.max(0, Math.min(one + size, other + length) - Math.max(one, other));
    let least = Infinity;
    for (const top of [y - height - 14, y + 22, y - height - 44, y + 52])
      for (const left of [x + 14, x - width / 2, x - width - 14].map((each) => clamp(each, 4, right))) {
        const covered = top < -60 ? 1e9 : total(texts.map((each) => common(left, width, each.x, each.width) * common(top, height, each.y, each.height) * (/\d/.test(each.text) ? 9 : 1)));
        if (covered >= least) continue;
        least = covered;
        Object.assign(tip.style, { left: `${left}px`, top: `${top}px` });
      }
  }

  hideHint() {
    this.find(".tip").hidden = true;
  }

  listen() {
    const { canvas } = this.pen, press = (selector, act) => (this.find(selector).onclick = act);
    canvas.onpointerdown = (event) => (this.isTouched = event.pointerType === "touch");
    canvas.onpointermove = (event) => this.facts && event.pointerType !== "touch" && this.point(event);
    canvas.onpointerleave = (event) => {
      if (event.pointerType === "touch") return; // what a finger chose stays
      this.hideHint();
      Object.assign(this.state, { cell: null, partner: null, hovered: null });
      this.redraw();
    };
    canvas.onclick = (event) => {
      if (this.isTouched && this.touch(event)) return;
      const { spot, x } = this.spotAt(event, (each) => each.press);
      spot?.press(x);
    };
    for (const kind of ["wheel", "touchmove"]) this.root.addEventListener(kind, () => (this.isScrolled = true), { passive: true });
    press(".left", () => {
      this.set({ left: !this.state.left }, false); // without ending what plays
      if (this.isStacked) this.bringIntoView(); // to what it changes
    });
    press(".before", () => this.step(-1));
    press(".after", () => this.step(1));
    press(".play", () => this.play(!this.isPlaying));
    press(".more", () => this.open(this.state.stop, this.state.block));
    press(".save", () => this.save());
    press(".second", () => this.report("second", true));
    this.find("input").oninput = (event) => this.set({ stop: this.facts.stops[Number(event.target.value) - 1] });
    this.find("details").ontoggle = () => this.find("details").open && this.table();
    this.root.onkeydown = (event) => this.key(event);
    // A change of the theme's variables runs this transition, which is how the canvas learns of it.
    this.find(".probe").ontransitionend = () => {
      if (!this.facts) return;
      this.recolour();
      this.redraw();
    };
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.facts || /^(SELECT|SUMMARY)$/.test(event.target.tagName)) return;
    const { facts, state } = this, around = (value, count) => (value + count) % count;
    const act = {
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      ArrowDown: () => this.set({ token: around(state.token + 1, facts.tokens.length) }), ArrowUp: () => this.set({ token: around(state.token - 1, facts.tokens.length) }),
      PageDown: () => facts.blocks && this.set({ block: around(state.block + 1, facts.blocks) }), PageUp: () => facts.blocks && this.set({ block: around(state.block - 1, facts.blocks) }),
      ".": () => facts.heads && this.set({ head: around(state.head + 1, facts.heads) }), ",": () => facts.heads && this.set({ head: around(state.head - 1, facts.heads) }),
      Home: () => this.set({ stop: facts.stops[0] }), End: () => this.set({ stop: facts.stops[facts.stops.length - 1] }),
      Enter: () => (state.stop === "blocks" ? this.set({ stop: "look" }) : this.step(1)), " ": () => this.play(!this.isPlaying),
      Escape: () => this.isPlaying && this.play(false),
      l: () => facts.canLookLeft && this.set({ left: !state.left }),
    }[event.key];
    const isOwn = /^( |Enter)$/.test(event.key) && event.target.tagName === "BUTTON"; // a button's own keys
    if (!act || isOwn) return;
    this.hideHint();
    if (act() !== false) event.preventDefault(); // at the ends a projector goes on (walk.js)
  }

  // The picture with its question and finding; null while stops are played.
  picture() {
    if (this.isPlaying) return null;
    this.moving.at = this.stopAt();
    this.draw(); // whole, also where a part was still to appear
    const { pen, facts } = this, { ratio, colours, font } = pen, space = 96, sheet = document.createElement("canvas"), context = sheet.getContext("2d");
    sheet.width = pen.canvas.width;
    sheet.height = pen.canvas.height + space * ratio;
    Object.assign(context, { fillStyle: colours.ground });
    context.fillRect(0, 0, sheet.width, sheet.height);
    context.drawImage(pen.canvas, 0, space * ratio);
    context.scale(ratio, ratio);
    const [question, , finding] = WORDS[this.state.stop](this);
    for (const [words, size, y, weight, colour] of [[question, 22, 28, 700, colours.text], [plain(finding), 15, 54, 600, colours.text], [`“${facts.text}” · ${facts.model} · brown cells are below zero, green ones above`, 13, 78, 400, colours.quiet]]) {
      Object.assign(context, { font: `${weight} ${size}px ${font}`, fillStyle: colour });
      context.fillText(words, 12, y, pen.width - 24);
    }
    return sheet;
  }

  // The same as a PNG.
  save() {
    if (this.isPlaying) this.play(false);
    this.picture().toBlob((blob) => {
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `path-${this.stopAt() + 1}-${this.state.stop}.png` });
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".path");
  const path = (root.bertInternalsPath ??= new WholePath(root));
  root.bertInternalsPicture = () => path.picture();
  path.receive(data, setTriggerValue);
  window.bertInternalsStops = { root, step: (by) => path.step(by) }; // for the arrow keys on a projector (walk.js)
  // This function runs again whenever the data change, and only its last cleanup is called: one observer at a time.
  root.bertInternalsObserver?.disconnect();
  root.bertInternalsWindow?.abort();
  root.bertInternalsWindow = new AbortController();
  let resized = 0; // also where the window changes and the drawing's width does not, as when controls are hidden
  window.addEventListener("resize", () => {
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => root.isConnected && path.facts && path.resize());
  }, { signal: root.bertInternalsWindow.signal });
  root.bertInternalsObserver = new ResizeObserver(() => {
    if (root.clientWidth === path.lastWidth) return;
    path.lastWidth = root.clientWidth;
    path.resize();
  });
  root.bertInternalsObserver.observe(root);
  return () => {
    root.bertInternalsObserver.disconnect();
    root.bertInternalsWindow.abort();
    if (window.bertInternalsStops?.root === root) delete window.bertInternalsStops;
  };
}
