// Two buttons at the top of every page: copy its address, and change between light and dark.
// They are on every page, so two rules for the whole page are set here too.
export default function ({ data, parentElement }) {
  if (!window.bertInternalsRules) {
    window.bertInternalsRules = true;
    oneEntryPerVisit();
    typedBeforeClicked();
  }
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
  theme.title = data.theme.hint;
  theme.setAttribute("aria-label", data.theme.hint);
  theme.onclick = () => changeTheme(data.theme.other, data.theme.pages);
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

// Streamlit keeps its theme per page address and reads it when the app loads. The address restores the page.
function changeTheme(name, pages) {
  const base = window.location.pathname.replace(/[^/]*$/, "");
  for (const page of pages) window.localStorage.setItem(`stActiveTheme-${base}${page}-v2`, JSON.stringify(name));
  window.location.reload();
}

// Streamlit adds one entry to the history when a page opens, and another when the page writes its settings into the
// address. Until the person does something on the page, the second belongs to the same visit and replaces the first.
function oneEntryPerVisit() {
  const visit = { isNew: true };
  const push = window.history.pushState.bind(window.history);
  window.history.pushState = (state, title, url) => {
    const isSamePage = new URL(url ?? "", window.location.href).pathname === window.location.pathname;
    if (isSamePage && visit.isNew) window.history.replaceState(state, title, url);
    else push(state, title, url);
    if (!isSamePage) visit.isNew = true;
  };
  for (const type of ["pointerdown", "keydown"]) {
    window.addEventListener(type, () => (visit.isNew = false), { capture: true });
  }
}

// Streamlit sends what was typed a moment after the field is left, but a page change at once. The page change then
// came first, and the text, sent with the name of the old page, took the person back. So a click on a page's link waits
// until everything that is due has been sent.
function typedBeforeClicked() {
  const follow = (event) => {
    const link = event.target.closest?.("a[href]");
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link?.target === "_blank";
    if (!event.isTrusted || !link || opensElsewhere || link.origin !== window.location.origin) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const same = `a[href="${CSS.escape(link.getAttribute("href"))}"]`;
    const open = (tries) => {
      const shown = link.isConnected ? link : document.querySelector(same); // the page may just draw its links anew
      if (shown) shown.click();
      else if (tries > 0) setTimeout(() => open(tries - 1), 50);
    };
    setTimeout(() => open(40), 0);
  };
  window.addEventListener("click", follow, { capture: true });
}
