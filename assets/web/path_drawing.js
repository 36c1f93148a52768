// The whole path: what its stops are drawn with, on one canvas. Colours come from the theme's variables.
const SOFT = 0.06, FULL = 3; // a cell's colour is asinh(x / SOFT), full at ± FULL, the same for every vector
const MOST_IMAGES = 3000;
const LIGHT = { below: [169, 89, 12], zero: [247, 245, 241], above: [4, 118, 108] };
const DARK = { below: [237, 166, 90], zero: [50, 60, 72], above: [79, 205, 184] };
const MONO = "ui-monospace, 'Cascadia Code', Consolas, Menlo, 'DejaVu Sans Mono', monospace";

const reach = Math.asinh(FULL / SOFT);
const placeOf = (value) => Math.max(-1, Math.min(1, Math.asinh(value / SOFT) / reach)); // on the scale, −1 to 1

class Pen {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.images = new Map();
    this.spots = []; // what can be pointed at or pressed
    this.texts = []; // what is written, for the test that reads it
    this.alpha = 1;
    this.scale = 1;
    this.type = 1; // how much larger letters are than the drawing: on a projector
    this.prefix = ""; // of the keys of images: what they are made of changes with it
  }

  // Read the colours of the theme; what was drawn in others is forgotten.
  recolour() {
    const style = getComputedStyle(this.canvas), read = (name) => style.getPropertyValue(name).trim();
    const ground = read("--st-background-color");
    this.context.fillStyle = ground || "#ffffff";
    const isDark = /^#[0-9a-f]{6}$/.test(this.context.fillStyle)
      && [1, 3, 5].reduce((sum, at) => sum + parseInt(this.context.fillStyle.slice(at, at + 2), 16), 0) < 384;
    this.colours = {
      ...(isDark ? DARK : LIGHT), ground, isDark, text: read("--st-text-color"), accent: read("--st-primary-color"),
      quiet: read("--path-quiet"), line: read("--path-line"), panel: read("--path-panel"),
    };
    this.font = style.fontFamily;
    this.images.clear();
  }

  resize(width, height, scale, type = 1) {
    this.ratio = devicePixelRatio || 1;
    Object.assign(this, { width, height, scale, type });
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  begin() {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.spots = [];
    this.texts = [];
    this.alpha = 1;
  }

  // Draw something with a part of the opacity it would have.
  faded(alpha, draw) {
    const before = this.alpha;
    this.alpha *= alpha;
    if (this.alpha > 0.01) {
      this.context.globalAlpha = this.alpha;
      draw();
    }
    this.alpha = before;
    this.context.globalAlpha = before;
  }

  spot(x, y, width, height, what) {
    if (this.alpha > 0.6) this.spots.push({ x, y, width, height, ...what });
  }

  text(words, x, y, { size = 13, bold = false, mono = false, align = "left", colour = this.colours.text, alpha = 1, most = Infinity } = {}) {
    const { context } = this, pixels = size * this.scale * this.type;
    context.font = `${bold ? 700 : 400} ${pixels}px ${mono ? MONO : this.font}`;
    let written = words, width = context.measureText(written).width;
    while (width > most && written.length > 1) {
      words = words.slice(0, -1);
      written = `${words}…`;
      width = context.measureText(written).width;
    }
    Object.assign(context, { textAlign: align, textBaseline: "middle", fillStyle: colour, globalAlpha: this.alpha * alpha });
    context.fillText(written, x, y);
    context.globalAlpha = this.alpha;
    const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
    if (this.alpha > 0.9) this.texts.push({ text: written, x: left, y: y - pixels / 2, width, height: pixels });
    return width;
  }

  // The first of several wordings that has room; none if none has.
  fitting(forms, most, look) {
    return [forms].flat().find((words) => this.widthOf(words, look) <= most) ?? "";
  }

  widthOf(words, { size = 13, bold = false, mono = false } = {}) {
    this.context.font = `${bold ? 700 : 400} ${size * this.scale * this.type}px ${mono ? MONO : this.font}`;
    return this.context.measureText(words).width;
  }

  // Words in lines of at most this width, the first at y (or their middle there); returns their height.
  lines(words, x, y, width, { size = 12.5, centred = false, ...look } = {}) {
    this.context.font = `400 ${size * this.scale * this.type}px ${this.font}`;
    const lines = [];
    for (const word of words.split(" ")) {
      const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
      if (lines.length && this.context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    const height = size * 1.38 * this.scale * this.type;
    lines.forEach((line, number) => this.text(line, x, y + (number - (centred ? (lines.length - 1) / 2 : 0)) * height, { size, ...look }));
    return lines.length * height;
  }

  box(x, y, width, height, { round = 6, fill = null, stroke = null, dash = [], thick = 1, alpha = 1 } = {}) {
    const { context } = this;
    context.globalAlpha = this.alpha * alpha;
    context.beginPath();
    context.roundRect(x, y, width, height, round * this.scale);
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    if (stroke) {
      context.setLineDash(dash);
      Object.assign(context, { strokeStyle: stroke, lineWidth: thick });
      context.stroke();
      context.setLineDash([]);
    }
    context.globalAlpha = this.alpha;
  }

  stroke(points, colour, thick = 1, alpha = 1) {
    const { context } = this;
    context.beginPath();
    points.forEach(([x, y], number) => (number ? context.lineTo(x, y) : context.moveTo(x, y)));
    Object.assign(context, { strokeStyle: colour, lineWidth: thick, globalAlpha: this.alpha * alpha });
    context.stroke();
    context.globalAlpha = this.alpha;
  }

  curve(x, y, toX, toY, thick, colour, alpha) {
    const { context } = this, middle = (x + toX) / 2;
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(middle, y, middle, toY, toX, toY);
    Object.assign(context, { strokeStyle: colour, lineWidth: thick, globalAlpha: this.alpha * alpha });
    context.stroke();
    context.globalAlpha = this.alpha;
  }

  // The part of a circle between the direction to the right and a cosine, as a dial: both arms and the opening between.
  dial(x, y, radius, cosine, arm = radius) {
    const { context, colours, scale } = this, angle = Math.acos(Math.min(1, Math.max(-1, cosine)));
    context.beginPath();
    context.moveTo(x, y);
    context.arc(x, y, radius, -angle, 0);
    context.closePath();
    Object.assign(context, { fillStyle: colours.accent, globalAlpha: this.alpha * 0.2 });
    context.fill();
    context.globalAlpha = this.alpha;
    this.stroke([[x + arm, y], [x, y], [x + arm * Math.cos(angle), y - arm * Math.sin(angle)]], colours.accent, 2 * scale);
  }

  // The width of so many cells in CSS pixels, at most `most`: whole device pixels for each, or for a few neighbours together,
  // where that leaves little room unused.
  cells(count, most) {
    const pixels = most * this.ratio, each = Math.floor(pixels / count);
    let shared = 2; // cells of one place
    while (!each && Math.ceil(count / shared) > pixels) shared++;
    const whole = each ? count * each : Math.ceil(count / shared);
    return (whole < pixels * 0.7 && !each ? Math.floor(pixels) : whole) / this.ratio;
  }

  // The width of a strip in a narrow column: one in which as many cells as most vectors divide into have whole pixels.
  narrow(most) {
    const widths = [24, 32, 48, 64, 96, 128, 192].filter((width) => width <= most);
    return widths.length ? widths[widths.length - 1] : most;
  }

  colour(value, out, at) {
    const place = placeOf(value), { below, zero, above } = this.colours, end = place < 0 ? below : above;
    const part = Math.abs(place) ** (this.colours.isDark ? 0.9 : 1.25); // on a dark ground small differences of light are hard to see
    for (let channel = 0; channel < 3; channel++) out[at + channel] = zero[channel] + (end[channel] - zero[channel]) * part;
    out[at + 3] = 255;
  }

  // A vector as coloured cells, or several below one another; each cell the strongest of so many neighbours.
  image(key, values, count, rows, neighbours) {
    const id = `${this.prefix} ${key} ${neighbours}`;
    if (this.images.has(id)) return this.images.get(id);
    const width = Math.ceil(count / neighbours), sheet = document.createElement("canvas"), numbers = values();
    sheet.width = width;
    sheet.height = rows;
    const context = sheet.getContext("2d"), pixels = context.createImageData(width, rows);
    for (let row = 0; row < rows; row++)
      for (let cell = 0; cell < width; cell++) {
        let strongest = 0;
        for (let at = cell * neighbours; at < Math.min(count, (cell + 1) * neighbours); at++)
          if (Math.abs(numbers[row * count + at]) > Math.abs(strongest)) strongest = numbers[row * count + at];
        this.colour(strongest, pixels.data, 4 * (row * width + cell));
      }
    context.putImageData(pixels, 0, 0);
    if (this.images.size > MOST_IMAGES) this.images.clear();
    this.images.set(id, sheet);
    return sheet;
  }

  strip(key, values, count, x, y, width, height, { rows = 1, alpha = 1, frame = 0, ...what } = {}) {
    const { context, ratio } = this, pixels = Math.round(width * ratio), least = Math.max(1, Math.ceil(count / pixels - 0.01));
    let neighbours = least; // of the next few, one that gives each cell whole pixels
    while (neighbours < least * 4 && pixels % Math.ceil(count / neighbours)) neighbours++;
    if (pixels % Math.ceil(count / neighbours)) neighbours = least;
    [x, y, height] = [Math.round(x * ratio) / ratio, Math.round(y * ratio) / ratio, Math.round(height)];
    const image = this.image(key, values, count, rows, neighbours);
    context.globalAlpha = this.alpha * alpha;
    context.imageSmoothingEnabled = false; // a blurred cell would be another number's colour
    context.drawImage(image, x, y, width, height);
    context.globalAlpha = this.alpha;
    if (frame) this.box(x - 1.5, y - 1.5, width + 3, height + 3, { round: 0, stroke: this.colours.accent, thick: frame });
    this.spot(x, y, width, height, { cells: { values, count, rows, neighbours }, ...what });
  }
}

// The scale of all strips, drawn into a canvas of 240 x 1 and a line of numbers below it.
function drawScale(pen, canvas, line) {
  const context = canvas.getContext("2d"), pixels = context.createImageData(240, 1);
  for (let at = 0; at < 240; at++) pen.colour(SOFT * Math.sinh((at / 119.5 - 1) * reach), pixels.data, 4 * at);
  context.putImageData(pixels, 0, 0);
  line.replaceChildren(...[-3, -0.3, 0, 0.3, 3].map((value) => {
    const mark = document.createElement("span");
    mark.textContent = String(value).replace("-", "−");
    mark.style.left = `${4 + (placeOf(value) + 1) * 46}%`;
    return mark;
  }));
}
