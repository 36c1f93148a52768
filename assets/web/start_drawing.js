// What the parts of Start draw with. Text is set with textContent only.
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
