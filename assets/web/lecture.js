// The pictures of a lecture in their order. A picture is moved by its dots: dragged, or with ↑ and ↓. Text is only ever set with
// textContent. Reports "ordered" (the number of each picture, in the new order), "opened" and "removed" (a number).
export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".lecture");
  const focused = parentElement.activeElement ?? parentElement.getRootNode().activeElement;
  const handled = focused?.classList?.contains("dots") ? list.moved : undefined;
  const make = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
  const order = () => [...list.children].map((item) => Number(item.dataset.number));
  const report = (number) => {
    list.moved = order().indexOf(number);
    if (order().some((one, place) => one !== place)) setTriggerValue("ordered", order());
  };
  const button = (className, text, label, action) => {
    const made = make("button", className, text);
    made.type = "button";
    made.title = label;
    made.setAttribute("aria-label", label);
    made.onclick = action;
    return made;
  };
  list.replaceChildren(...data.pictures.map((picture, number) => {
    const item = make("li", number === data.now ? "now" : "");
    item.dataset.number = number;
    const dots = button("dots", "⠿", `Move picture ${number + 1}: ${picture.title}`, () => {});
    dots.onkeydown = (event) => {
      const beside = { ArrowUp: item.previousElementSibling, ArrowDown: item.nextElementSibling }[event.key];
      if (!beside) return;
      event.preventDefault();
      if (event.key === "ArrowUp") item.after(beside);
      else item.before(beside);
      report(number);
    };
    dots.onpointerdown = (event) => {
      dots.setPointerCapture(event.pointerId);
      item.classList.add("dragged");
    };
    dots.onpointermove = ({ clientY }) => {
      if (!item.classList.contains("dragged")) return;
      const above = item.previousElementSibling, below = item.nextElementSibling;
      const middle = (element) => element.getBoundingClientRect().top + element.offsetHeight / 2;
      // The others move: what is taken out of the page and put back loses the pointer.
      if (above && clientY < middle(above)) item.after(above);
      else if (below && clientY > middle(below)) item.before(below);
    };
    dots.onpointerup = dots.onpointercancel = () => {
      if (!item.classList.contains("dragged")) return;
      item.classList.remove("dragged");
      report(number);
    };
    const open = button("open", "", `Show picture ${number + 1}: ${picture.title}`, () => setTriggerValue("opened", number));
    const title = make("b", "", picture.title);
    const head = make("span", "head");
    head.append(title, make("small", "", [picture.place, picture.model].filter(Boolean).join(" · ")));
    open.append(head);
    if (picture.says) open.append(make("span", "says", picture.says));
    item.append(dots, make("span", "number", number + 1), open,
      button("star", "★", `Take picture ${number + 1} out: ${picture.title}`, () => setTriggerValue("removed", number)));
    return item;
  }));
  if (handled !== undefined) list.children[handled]?.querySelector(".dots").focus();
}
