// The two pictures of Start that need no model. A link reports "open" with the picture's name and what the field holds unsent.
const STEP = 1100; // milliseconds between two layers that are played

function senseMark(kind, hue, scale, text) {
  const edge = { stroke: "var(--st-background-color)", "stroke-width": 1.2 };
  const shape = kind
    ? svgElement("path", { d: "M-6 -6h12v12h-12z", transform: `scale(${scale})`, fill: hue, ...edge })
    : svgElement("circle", { r: 6.5 * scale, fill: hue, ...edge });
  const mark = svgElement("g", {}, shape);
  if (text) mark.append(svgElement("title", {}, text));
  return mark;
}

function put(mark, x, y) {
  mark.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
  return mark;
}

// Where the marks of a layer stand in a panel; those that would cover each other stand side by side.
function places(points, panel, scale) {
  const found = [];
  for (const [x, y] of points) {
    const left = panel.x + panel.width / 2 + x * (panel.width / 2 - 28 * scale);
    const top = panel.y + panel.height / 2 - y * (panel.height / 2 - 20 * scale);
    let tried = 0, free;
    do {
      free = [left + Math.ceil(tried / 2) * 13 * scale * (tried % 2 ? 1 : -1), top];
      tried += 1;
    } while (tried < 9 && found.some((other) => Math.hypot(other[0] - free[0], other[1] - free[1]) < 10 * scale));
    found.push(free);
  }
  return found;
}

// Draws the first layer and the last one beside each other; returns what moves the right panel to another layer.
function drawSenses(box, senses) {
  const width = box.clientWidth, height = box.clientHeight, u = rem(), narrow = width < 440 * u;
  const scale = (narrow ? 0.72 : 1) * u, gap = (narrow ? 12 : 20) * u, top = 26 * u, below = (narrow ? 46 : 28) * u;
  const size = { width: (width - gap) / 2, height: height - top - below, y: top };
  const svg = picture(width, height, senses.says);
  const last = senses.maps.length - 1;
  const nameOf = (layer) => (narrow ? senses.layers[layer].short : senses.layers[layer].name);
  const panels = [0, last].map((layer, number) => {
    const panel = { ...size, x: number * (size.width + gap) };
    const name = label(panel.x, 15 * u, nameOf(layer));
    const share = label(panel.x + panel.width, 15 * u, senses.layers[layer].share, { "font-size": 15 * u, "font-weight": 600, "text-anchor": "end", class: "num" });
    const frame = { x: panel.x + 0.5, y: panel.y + 0.5, width: panel.width - 1, height: panel.height, rx: 8, fill: "none", stroke: "var(--line)" };
    svg.append(svgElement("rect", frame), name, share);
    const marks = senses.labels.map((kind, row) => senseMark(kind, senses.hues[kind], scale, senses.sentences[row]));
    places(senses.maps[layer], panel, scale).forEach((at, row) => svg.append(put(marks[row], ...at)));
    return { panel, name, share, marks };
  });
  const y = narrow ? height - 26 * u : height - 8 * u;
  let x = 9 * u;
  senses.names.forEach((name, kind) => {
    svg.append(put(senseMark(kind, senses.hues[kind], u), x, y - 5 * u), label(x + 13 * u, y, name));
    x += 37 * u + widthOf(name, 13, 400, box);
  });
  svg.append(label(narrow ? 0 : width, height - (narrow ? 4 : 8) * u, senses.unit, { "font-size": 12 * u, "text-anchor": narrow ? "start" : "end", class: "soft" }));
  const shares = senses.layers.map((layer) => [layer.name, layer.share]);
  box.replaceChildren(svg, valuesTable(senses.says, ["", senses.unit], shares));
  const moved = panels[1];
  return (layer) => {
    moved.name.textContent = nameOf(layer);
    moved.share.textContent = senses.layers[layer].share;
    places(senses.maps[layer], moved.panel, scale).forEach((at, row) => {
      moved.marks[row].classList.add("moves");
      put(moved.marks[row], ...at);
    });
  };
}

function drawPairs(box, blindness) {
  const pairs = element("div", "pairs");
  for (const [number, pair] of blindness.pairs.entries()) {
    const block = element("div", "pair");
    block.style.setProperty("--c", number ? "var(--blue)" : "var(--orange)");
    const second = element("p");
    for (const part of pair.second) second.append(part.new ? element("mark", "", part.text) : part.text);
    block.append(element("small", "", pair.name), element("p", "", pair.first), second, element("strong", "", pair.shown));
    pairs.append(block);
  }
  box.replaceChildren(pairs);
  return pairs;
}

function drawFailures(box, blindness) {
  if (!box.clientWidth) return; // on a phone it is not shown
  const pairs = drawPairs(box, blindness), u = rem();
  const width = box.clientWidth, height = Math.max(110 * u, box.clientHeight - pairs.offsetHeight - 10 * u);
  const names = blindness.strips.map((strip) => strip.name);
  const left = 16 * u + Math.max(...names.map((name) => widthOf(name, 12.5, 400, box)));
  const at = (cosine) => left + cosine * (width - 14 * u - left);
  const svg = picture(width, height, blindness.strip);
  svg.style.marginTop = `${10 * u}px`;
  const axis = height - 20 * u;
  for (const tick of blindness.ticks) {
    svg.append(svgElement("path", { d: `M${at(tick)} 2V${axis}`, stroke: "var(--hair)" }));
    svg.append(label(at(tick), height - 5 * u, String(tick), { "text-anchor": "middle", "font-size": 12 * u, class: "soft" }));
  }
  blindness.strips.forEach((strip, number) => {
    const y = Math.round(axis * (number ? 0.72 : 0.27)), colour = number ? "var(--blue)" : "var(--orange)";
    svg.append(label(0, y + 4 * u, strip.name, { "font-size": 12.5 * u }));
    for (const cosine of strip.cosines)
      svg.append(svgElement("path", { d: `M${at(cosine)} ${y - 8 * u}v${16 * u}`, stroke: colour, "stroke-width": 2, opacity: 0.6 }));
    svg.append(svgElement("circle", { cx: at(strip.shown), cy: y, r: 6 * u, fill: colour, stroke: "var(--st-background-color)", "stroke-width": 2 }));
  });
  svg.append(label(0, height - 5 * u, blindness.unit, { "font-size": 12 * u, class: "soft" }));
  box.append(svg);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".start");
  const [senses, failures] = ["senses", "failures"].map((name) => root.querySelector(`.${name}`));
  for (const [card, of] of [[senses, data.senses], [failures, data.blindness]]) {
    card.querySelector("h2").textContent = of.says;
    const link = card.querySelector(".link");
    link.textContent = of.link;
    link.onclick = () => setTriggerValue("open", [of.key, window.bertInternalsTyped?.() ?? ""]);
    card.querySelector(".draw").onclick = link.onclick;
    card.querySelector(".draw").style.cursor = "pointer";
  }
  failures.querySelector(".said").textContent = data.blindness.strip;
  const play = senses.querySelector(".play");
  const last = data.senses.maps.length - 1;
  let moveTo = () => {};
  const stop = () => {
    clearInterval(root.bertInternalsTimer);
    root.bertInternalsTimer = null;
    play.textContent = data.senses.play;
  };
  play.onclick = () => {
    if (root.bertInternalsTimer) {
      stop();
      return moveTo(last);
    }
    let layer = 0;
    moveTo(layer);
    play.textContent = data.senses.stop;
    root.bertInternalsTimer = setInterval(() => {
      moveTo(++layer);
      if (layer >= last) stop();
    }, STEP);
  };
  const draw = () => {
    stop();
    senses.querySelector(".draw").replaceChildren(); // what was drawn before must not hold the row open
    drawFailures(failures.querySelector(".draw"), data.blindness);
    moveTo = drawSenses(senses.querySelector(".draw"), data.senses); // as high as the other card leaves it
  };
  draw();
  drawAtEachWidth(root, draw);
  return () => {
    stop();
    root.bertInternalsObserver.disconnect();
  };
}
