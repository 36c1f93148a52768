// Two buttons at the top of every page: copy its address, and change between light and dark.
// They are on every page, so rules for the whole page are set here too.
let isDarkOnServer = false; // for which colours the page was drawn
let recoloured = () => {}; // lets the server draw it anew
let nameTheme = () => {}; // names the colours that the button would choose
let tellScreen = () => {}; // tells the server how large a projector is
let offerColours = () => {}; // shows the button where there is a menu by which the colours are changed
let changing = null; // the change of colours that is under way: a second press would close the menu before it is drawn
const MENU = '[data-testid="stMainMenuButton"]';
export default function ({ data, parentElement, setTriggerValue }) {
  if (!window.bertInternalsRules) {
    window.bertInternalsRules = true;
    oneEntryPerVisit();
    typedBeforeClicked();
    scrolledByKeyboard();
    drawnInNewColours();
    listOfPagesCloses();
    markTerms(data.glossary);
    let resized = 0;
    window.addEventListener("resize", () => {
      clearTimeout(resized);
      resized = setTimeout(() => tellScreen(), 400);
    });
  }
  // The type of a projector grows half as fast as a large window (main.py), and figures as fast; in a small one both are smaller.
  tellScreen = () => {
    const type = parseFloat(getComputedStyle(document.documentElement).fontSize) / (1.35 * 16), factor = Math.round((type < 1 ? type : 2 * type - 1) * 100) / 100;
    if (data.screen !== null && factor >= 0.75 && factor <= 2 && Math.abs(factor - data.screen) > 0.02) setTriggerValue("screen", factor);
  };
  tellScreen();
  isDarkOnServer = data.isDark;
  sameColoursAboveThePage();
  recoloured = () => setTriggerValue("recoloured", true);
  // They changed before this listened, or the run that drew the page began before them.
  if ((colourScheme() === "dark") !== isDarkOnServer) looking = setTimeout(() => lookAtColours(Date.now() + LONGEST_LOOK), BETWEEN_LOOKS);
  const [link, theme] = parentElement.querySelectorAll("button");
  const text = link.querySelector(".text");
  text.textContent = data.link.label;
  link.disabled = !data.link.enabled;
  link.title = data.link.hint;
  link.setAttribute("aria-label", data.link.label);
  link.onclick = async () => {
    text.textContent = (await copied(window.location.href)) ? "Copied" : "Use the address bar";
    setTimeout(() => (text.textContent = data.link.label), 2500);
  };
  nameTheme = () => {
    theme.title = `${otherColours()} colours`;
    theme.setAttribute("aria-label", theme.title);
  };
  nameTheme();
  theme.onclick = () => (changing ??= changeColours().finally(() => (changing = null)));
  offerColours = () => (theme.hidden = !document.querySelector(MENU));
  offerColours();
}

// Where the names of views are wider than the screen, they scroll sideways: the chosen one comes into sight, once.
let shown = [];
function showChosen() {
  const chosen = [...document.querySelectorAll(':is(.st-key-view_names, .st-key-view_choices) [role="radiogroup"] [aria-checked="true"]')];
  const inSight = (name) => {
    const row = name.closest('[role="radiogroup"]').getBoundingClientRect(), box = name.getBoundingClientRect();
    return box.left >= row.left - 1 && box.right <= row.right + 1;
  };
  for (const name of chosen.filter((each) => !shown.includes(each))) {
    const row = name.closest('[role="radiogroup"]').getBoundingClientRect(), box = name.getBoundingClientRect();
    name.closest('[role="radiogroup"]').scrollLeft += box.left - row.left - (row.width - box.width) / 2;
  }
  // What is not laid out yet cannot be scrolled: the next change of the page tries again.
  shown = chosen.filter((name) => shown.includes(name) || inSight(name));
}

// Streamlit gives a link to the first page no address, which then is that of the page on which it stands.
function nameStart() {
  const links = document.querySelectorAll('a[data-testid="stPageLink-NavLink"][href=""]');
  for (const link of links) link.setAttribute("href", new URL(".", window.location.href).pathname);
}

// A long table scrolls in a box of its own. Whoever has no mouse reaches it with the Tab key, and scrolls it with the arrows.
function scrolledByKeyboard() {
  const boxes = '[data-testid="stVerticalBlock"][overflow="auto"]:not([tabindex])';
  const mark = () => {
    document.querySelectorAll(boxes).forEach((box) => box.setAttribute("tabindex", "0"));
    showChosen();
    nameStart();
    offerColours();
  };
  let isPlanned = false;
  new MutationObserver(() => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => {
      isPlanned = false;
      mark();
    });
  }).observe(document.body, { childList: true, subtree: true });
  mark();
}

// On a phone the list of pages covers the page: it closes when one was chosen in it. On one that lies on its side it would
// take a third of the page, and is closed from the beginning.
function listOfPagesCloses() {
  const low = matchMedia("(max-height: 480px)"), isOpen = () => document.querySelector('[data-testid="stSidebar"]')?.dataset.collapsed === "false";
  const close = () => setTimeout(() => isOpen() && document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click(), 0);
  window.addEventListener("click", (event) => {
    const isChosen = event.target.closest?.('[data-testid="stSidebarNavLink"]') && (low.matches || matchMedia("(max-width: 767px)").matches);
    if (isChosen) close();
  });
  low.addEventListener("change", () => low.matches && close());
  if (low.matches) close();
}

const otherColours = () => (colourScheme() === "dark" ? "Light" : "Dark");
const colourScheme = () => getComputedStyle(document.querySelector(".stApp") ?? document.body).colorScheme;

// What opens above the page, as a popover, stands beside the app in the document: light-dark() of the style sheet asks the root.
function sameColoursAboveThePage() {
  document.documentElement.style.colorScheme = colourScheme();
  nameTheme();
}

// The system's colours can change while a page is open, and Streamlit's follow them unless a person has chosen, on a slow
// machine after seconds. What the server has drawn does not, so it is told; it learns of the new colours with the run.
const BETWEEN_LOOKS = 300; // milliseconds
const BETWEEN_TELLINGS = 10000; // a run that is told again begins again
const LONGEST_LOOK = 60000;
let looking = null; // the next look
let told = 0; // when the server was last told

function lookAtColours(end) {
  clearTimeout(looking);
  sameColoursAboveThePage();
  const isTold = (colourScheme() === "dark") === isDarkOnServer;
  if (!isTold && Date.now() - told > BETWEEN_TELLINGS) {
    told = Date.now();
    recoloured();
  }
  const isSystems = (colourScheme() === "dark") === matchMedia("(prefers-color-scheme: dark)").matches;
  if ((!isTold || !isSystems) && Date.now() < end) looking = setTimeout(() => lookAtColours(end), BETWEEN_LOOKS);
}

function drawnInNewColours() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => lookAtColours(Date.now() + LONGEST_LOOK));
}

// Over plain http from another machine browsers have no clipboard, so a selection is copied instead.
async function copied(address) {
  try {
    await navigator.clipboard.writeText(address);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = address;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

// By Streamlit's own menu, which the style sheet hides. Streamlit keeps the choice under the address at which the app was
// loaded, and reads it only then: we keep it for every page, as links in new tabs. An embedded page has no menu, and no button.
async function changeColours() {
  const name = otherColours();
  const paths = [...document.querySelectorAll("[data-testid=stSidebarNav] a, [data-testid=stTopNavLink]")]
    .filter((link) => link.href)
    .map((link) => new URL(link.href).pathname);
  for (const path of new Set([window.location.pathname, ...paths])) {
    window.localStorage.setItem(`stActiveTheme-${path}-v2`, JSON.stringify(name));
  }
  const menu = document.querySelector(MENU), item = `[data-testid="stMainMenuItem-theme-${name}"]`;
  if (!document.querySelector(item)) menu?.click();
  for (let wait = menu ? MENU_WAIT : 0; wait > 0 && !document.querySelector(item); wait -= POLL) await new Promise((done) => setTimeout(done, POLL));
  if (!document.querySelector(item)) return window.location.reload();
  document.querySelector(item).click();
  menu.click();
  await new Promise((done) => setTimeout(done, 0));
  told = 0; // a person's choice is told at once
  lookAtColours(Date.now() + LONGEST_LOOK);
}

// One press of a person adds at most one entry to the history. Streamlit adds more: one when a page opens and another when
// the page writes its settings into the address, which belong to one visit. And before a page that a button opens, it adds
// up to two entries of the page that is left: one without settings, and one with the new page's settings, which are not
// its own. Each of them replaces the entry before it, until the person does something again.
// This file can arrive after the first press, which the browser remembers.
const visit = {
  isNew: !navigator.userActivation?.hasBeenActive,
  written: null, // the settings that the page has written since the last press
  isScrolled: false, // by the person, since the last press
};

function oneEntryPerVisit() {
  const push = window.history.pushState.bind(window.history);
  window.history.pushState = (state, title, url) => {
    const next = new URL(url ?? "", window.location.href), here = viewOf(window.location);
    const isSamePage = next.pathname === window.location.pathname;
    const isOfOneVisit = isSamePage && (visit.isNew || visit.written !== null);
    const isTooEarly = !isSamePage && (visit.written === "" || visit.written === next.search);
    if (isOfOneVisit || isTooEarly) window.history.replaceState(state, title, url);
    else push(state, title, url);
    if (!visit.isScrolled && viewOf(next) !== here) document.querySelector(".stMain")?.scrollTo({ top: 0, behavior: "instant" });
    visit.written = isSamePage ? next.search : null;
    if (!isSamePage) visit.isNew = true;
  };
  for (const type of ["pointerdown", "keydown"]) window.addEventListener(type, pressed, { capture: true });
  for (const type of ["wheel", "touchmove"]) window.addEventListener(type, () => (visit.isScrolled = true), { capture: true, passive: true });
}

// A view that opens is read from its beginning; Streamlit keeps the page where the one before was scrolled to.
const viewOf = ({ pathname, search }) => `${pathname} ${new URLSearchParams(search).get("v") ?? ""}`;

function pressed(event) {
  visit.isNew = false;
  visit.written = null;
  visit.isScrolled = event.type === "keydown" && !["Enter", " "].includes(event.key);
}

// Streamlit sends what was typed a moment after the field is left, but a page change at once. The page change then came
// first, and the text, sent with the name of the old page, took the person back. And of two runs that begin together,
// the one for the text can tell the other its page. So a click on a page's link waits until all that is due has been
// sent, and until the server has drawn the sentences that were typed, but not for ever. On Start, where a sentence is sent
// with the Enter key, a click that leaves the page sends it (start_field.js); so does one of the buttons below the picture.
const LEAVES_START = ":is(.st-key-start_to_path, .st-key-start_cards) .stButton button";
const TEXT_WAIT = 3000, LINK_WAIT = 2000, MENU_WAIT = 2000, POLL = 20; // milliseconds

function typedBeforeClicked() {
  const follow = (event) => {
    const link = event.target.closest?.(`a[href], ${LEAVES_START}`), isLink = link?.matches("a");
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link?.target === "_blank";
    if (!event.isTrusted || !link || opensElsewhere || (isLink && link.origin !== window.location.origin)) return;
    const isSent = window.bertInternalsSendTyped?.();
    if (!isLink && !isSent) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const key = link.closest('[class*="st-key-"]')?.className.match(/st-key-\S+/)[0];
    const same = isLink ? `a[href="${CSS.escape(link.getAttribute("href"))}"]` : `.${key} button`;
    const clicked = performance.now();
    const open = () => {
      const now = performance.now();
      const shown = link.isConnected ? link : document.querySelector(same); // the page may just draw its links anew
      const isSaved = !(now - window.bertInternalsUnsaved?.since < TEXT_WAIT);
      if (isSaved && shown) {
        visit.written = null; // what was typed before belongs to the page that is left
        shown.click();
      } else if (now - clicked < TEXT_WAIT + LINK_WAIT) setTimeout(open, POLL);
    };
    setTimeout(open, 0);
  };
  window.addEventListener("click", follow, { capture: true });
}
