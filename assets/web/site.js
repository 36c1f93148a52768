// A page of a site without a server: it draws stored figures with the parts that the dashboard draws with, and goes from state to
// state of a view. Data stand in scripts, which can be read from a folder too. What a part reports either leads to a stored
// state or to another page, or the page says that it needs the running dashboard.
(() => {
  "use strict";
  const { parts = {}, page } = globalThis.bertInternalsSite, stored = (globalThis.bertInternalsData ??= {});
  const main = document.querySelector(".drawn"), choices = document.querySelector(".choices"), toast = document.querySelector(".toast");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const hosts = new Map(); // of each part that is drawn, by its name and number: it stays when the state changes
  const chunks = new Map(); // arrays of the whole path, by name
  let content = null, numbers = null, shown = -1, plots = [];

  async function bytesOf(name) {
    const text = atob(stored[name]), bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    delete stored[name];
    return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  }

  async function unpacked(name) {
    const data = await bytesOf(name), length = new DataView(data.buffer).getUint32(0, true);
    return [JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length))), data.subarray(4 + length)];
  }

  // The script of a file, which gives its data a name; it is there at once where the page has it already.
  const file = (name) =>
    new Promise((done, failed) => {
      if (stored[name]) return done();
      const script = document.createElement("script");
      script.src = `files/${name}.js`;
      script.onload = () => done();
      script.onerror = () => failed(new Error(`${script.src} is missing`));
      document.head.append(script);
    });

  function chunk(name) {
    if (!chunks.has(name)) chunks.set(name, file(name).then(() => unpacked(name)));
    return chunks.get(name);
  }

  // Plotly is kept as data are: packed it takes less than half the room. It runs when a page draws its first plot.
  let library = null;
  async function readPlotly() {
    await file("plotly");
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(await bytesOf("plotly"));
    document.head.append(script);
    return globalThis.Plotly;
  }

  // The facts of a path with the arrays of some chunks, as the server would send them.
  async function path(facts, names) {
    const found = await Promise.all(names.map(chunk)), arrays = {}, bodies = [];
    let at = 0;
    for (const [head, body] of found) {
      for (const [name, of] of Object.entries(head.arrays)) arrays[name] = { ...of, at: of.at + at / 4 };
      bodies.push(body);
      at += body.length;
    }
    const text = new TextEncoder().encode(JSON.stringify({ ...facts, arrays })), all = new Uint8Array(4 + text.length + at);
    new DataView(all.buffer).setUint32(0, text.length, true);
    all.set(text, 4);
    let to = 4 + text.length;
    for (const body of bodies) {
      all.set(body, to);
      to += body.length;
    }
    return all;
  }

  function joined(places) {
    const all = new Uint8Array(places.reduce((sum, [, size]) => sum + size, 0));
    let to = 0;
    for (const [at, size] of places) {
      all.set(numbers.subarray(at, at + size), to);
      to += size;
    }
    return all;
  }

  function say(text) {
    toast.textContent = text;
    toast.classList.add("seen");
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => toast.classList.remove("seen"), 5000);
  }

  // What a part reports: a state, a page, or what is not stored.
  function answer(figure, host, name, value) {
    if (figure.part === "path" && name === "want") {
      const names = value.map((of) => `path-${of}`);
      path(figure.facts, names.filter((of) => figure.later.includes(of))).then((data) => host.run(data));
      return;
    }
    const key = `${figure.part}.${name}`, known = content.says[key];
    if (content.quiet.includes(key)) return;
    const found = known?.[String(value)] ?? known?.[String([].concat(value)[0])];
    if (typeof found === "number") return show(found, host);
    if (typeof found === "string") {
      const isPlace = figure.part === "path" && found.startsWith(page.path);
      return void (location.href = isPlace ? `${found}#${[].concat(value).join(",")}` : found);
    }
    say(page.dashboard);
  }

  function part(box, figure, number) {
    const key = `${figure.part} ${number}`;
    let host = hosts.get(key);
    if (!host) {
      const element = document.createElement("div"), made = parts[figure.part], root = element.attachShadow({ mode: "open" });
      const style = document.createElement("style"), inside = document.createElement("div");
      style.textContent = `:host { display: block; } ${made.css}`;
      inside.innerHTML = made.html;
      root.append(style, inside);
      host = { element, root };
      hosts.set(key, host);
    }
    const hadFocus = host.element === document.activeElement;
    host.run = (data) => {
      host.data = data;
      parts[figure.part].run({ data, parentElement: host.root, key, setTriggerValue: (name, value) => answer(figure, host, name, value), setStateValue() {} });
    };
    box.replaceChildren(host.element);
    if (figure.part === "path") {
      const place = location.hash.slice(1).split(",");
      if (figure.takesPlace && figure.facts.stops.includes(place[0]) && place.length === 4)
        figure.facts.place = [place[0], ...place.slice(1).map(Number), false];
      path(figure.facts, figure.first).then((data) => host.run(data));
    } else host.run(figure.bytes ? joined(figure.bytes) : figure.data);
    if (hadFocus) host.root.querySelector('[aria-pressed="true"]')?.focus();
  }

  function template() {
    const colours = getComputedStyle(document.documentElement), of = (name) => colours.getPropertyValue(name).trim();
    const axis = { gridcolor: of("--grid"), zerolinecolor: of("--grid"), linecolor: of("--grid"), automargin: true };
    const font = { color: of("--st-text-color"), family: of("--st-font") };
    return { layout: { font, title: { font: { weight: 600 } }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", xaxis: axis, yaxis: axis, hoverlabel: { bgcolor: of("--st-secondary-background-color"), bordercolor: of("--grid"), font }, colorway: ["#2B7BBA", "#C97F00", "#0E9A73", "#D9542B"] } };
  }

  async function plot(box, figure) {
    const Plotly = await (library ??= readPlotly());
    if (!box.isConnected) return;
    const config = { displaylogo: false, responsive: true, displayModeBar: false };
    const inside = box.firstChild ?? box.appendChild(document.createElement("div")), isNew = !inside.on;
    await Plotly.react(inside, structuredClone(figure.data), { ...structuredClone(figure.layout), template: template() }, config);
    if (isNew) inside.on("plotly_click", () => say(page.dashboard));
  }

  // A figure in the picture's place once that has a width: in a folded part it has none.
  const waiting = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      if (!contentRect.width) continue;
      waiting.unobserve(target);
      plot(target, target.bertInternalsFigure);
    }
  });

  function show(number, host = null) {
    const state = content.states[number], isFirst = shown < 0;
    shown = number;
    if (!isFirst || number !== content.first) main.innerHTML = state.markup;
    plots = [];
    const seen = {};
    const boxes = [...main.querySelectorAll("[data-figure]")];
    // The part that was used is drawn first: it has the focus.
    for (const box of boxes) {
      const figure = state.figures[Number(box.dataset.figure)];
      if (figure.part === "plot") {
        box.bertInternalsFigure = figure;
        plots.push(box);
        waiting.observe(box);
      } else part(box, figure, (seen[figure.part] = (seen[figure.part] ?? 0) + 1));
    }
    if (host && !host.root.activeElement) host.root.querySelector('[aria-pressed="true"]')?.focus({ preventScroll: true });
    for (const choice of choices?.querySelectorAll("button") ?? []) choice.setAttribute("aria-pressed", String(Number(choice.dataset.state) === number));
    const chosen = choices?.querySelector('[aria-pressed="true"]');
    if (chosen) choices.scrollLeft = chosen.offsetLeft - (choices.clientWidth - chosen.offsetWidth) / 2;
    if (!isFirst) document.querySelector(".live").textContent = main.querySelector(".finding")?.textContent ?? "";
  }

  choices?.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (chosen) show(Number(chosen.dataset.state));
  });
  choices?.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], all = [...choices.querySelectorAll("button")];
    const next = all[all.indexOf(event.target) + step];
    if (!step || !next) return;
    event.preventDefault();
    next.focus();
    next.click();
  });
  dark.addEventListener("change", () => {
    for (const box of plots) if (box.firstChild) plot(box, box.bertInternalsFigure);
    for (const host of hosts.values()) if (host.data) host.run(host.data);
  });
  const menu = document.querySelector(".menu");
  menu.addEventListener("click", () => {
    const isOpen = document.body.classList.toggle("open");
    menu.setAttribute("aria-expanded", String(isOpen));
  });

  if (!globalThis.DecompressionStream) {
    toast.textContent = "This browser is too old for the pictures: they need one of 2023 or later.";
    toast.classList.add("seen");
    return;
  }
  unpacked(page.name).then(([read, body]) => {
    [content, numbers] = [read, body];
    show(content.first);
    document.documentElement.dataset.drawn = "yes"; // for the test
  });
})();
