// What pictures of our own are drawn with: Start, and where one word looks. Text is set with textContent only.
const SVG = "http://www.w3.org/2000/svg";
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // larger type on a projector

function svgElement(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function element(tag, name = "", text = undefined) {
  const node = document.createElement(tag);
  node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

const label = (x, y, text, more = {}) => svgElement("text", { x, y, "font-size": 13 * rem(), ...more }, text);

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, size, weight, root) {
  ruler.font = `${weight} ${size * rem()}px ${getComputedStyle(root).fontFamily}`;
  return ruler.measureText(text).width;
}

// A picture of the size of its box, which says in words what it shows.
const picture = (width, height, said) => svgElement("svg", { width, height, role: "img", "aria-label": said });

// The numbers of a picture for whoever cannot see it: a table that is read and not shown.
function valuesTable(caption, names, rows) {
  const table = element("table"), box = element("div", "read");
  table.append(element("caption", "", caption));
  for (const [place, row] of [names, ...rows].entries()) {
    const line = element("tr");
    line.append(...row.map((cell, column) => element(place && column ? "td" : "th", "", cell)));
    for (const head of line.querySelectorAll("th")) head.scope = place ? "row" : "col";
    table.append(line);
  }
  box.append(table);
  return box;
}

// Draws again whenever a root changes its width. One observer a root: only the last cleanup of a component is called.
function drawAtEachWidth(root, draw) {
  let width = 0;
  root.bertInternalsObserver?.disconnect();
  root.bertInternalsObserver = new ResizeObserver(() => {
    if (root.clientWidth === width || !root.clientWidth) return;
    width = root.clientWidth;
    draw();
  });
  root.bertInternalsObserver.observe(root);
}

// A curve from a word to one of the tokens that it looks at, as thick as its weight.
function lookCurve(fromX, fromY, toX, toY, weight, isStrong) {
  const bend = (fromX + toX) / 2;
  return svgElement("path", {
    d: `M${fromX} ${fromY}C${bend} ${fromY} ${bend} ${toY} ${toX} ${toY}`,
    fill: "none",
    stroke: isStrong ? "var(--st-primary-color)" : "var(--grey)",
    "stroke-width": Math.max(0.6, 13 * rem() * weight).toFixed(1),
    opacity: isStrong ? 1 : weight < 0.03 ? 0.35 : 0.6,
  });
}

// The word from which curves start: a chip with its left edge at x = 0 and its middle at y; returns [chip, its width].
function wordChip(text, y, most, root) {
  const u = rem();
  let shown = text;
  while (shown.length > 4 && widthOf(shown, 14, 600, root) > most) shown = `${shown.slice(0, -2)}…`;
  const width = widthOf(shown, 14, 600, root) + 20 * u, group = svgElement("g");
  group.append(svgElement("rect", { x: 0, y: y - 15 * u, width, height: 30 * u, rx: 7 * u, fill: "var(--st-primary-color)" }));
  const style = "fill: var(--st-background-color)";
  group.append(label(width / 2, y + 5 * u, shown, { "text-anchor": "middle", "font-size": 14 * u, "font-weight": 600, style }));
  return [group, width];
}
