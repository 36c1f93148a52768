// The stops of the whole path in one line; the one that the open view treats is lit. Reports "opened" with a stop's key.
export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".path-strip");
  list.replaceChildren(...data.stops.map(({ key, name, hint }, number) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.title = hint;
    button.append(Object.assign(document.createElement("i"), { textContent: number + 1 }), name);
    if (key === data.lit) button.setAttribute("aria-current", "step");
    button.onclick = () => setTriggerValue("opened", key);
    item.append(button);
    return item;
  }));
  const lit = list.querySelector("[aria-current]");
  if (lit) list.scrollLeft = lit.offsetLeft - list.offsetLeft - list.clientWidth / 2 + lit.offsetWidth / 2;
}
