// Keeps in this browser what a session would lose with its end: marks of hits, and which files were uploaded. Each session has an
// entry of its own, so that two tabs do not write over each other. What sessions without a live tab have left is sent, the
// oldest first, so that the page can offer it; it stays until a person has answered.
const PREFIX = "bertInternalsMemory"; // without a dot and an id behind it: the one entry of earlier versions
const REFRESH = 20_000; // milliseconds between two signs of life of a tab
const ALIVE = 150_000; // milliseconds without one until a tab counts as closed: timers of a hidden tab run once a minute
let session = null; // whose page this is: a browser that comes back too late gets a new one, without loading the page again
let key = null; // of this session's entry
let own = ""; // what it holds
let offered = []; // the keys of the entries that were sent
let dropped = 0; // entries of other sessions that made room for this one's
let timer = null;

export default function ({ data, setStateValue }) {
  try {
    if (data.session !== session) {
      begin(data.session);
      drop(data.most, setStateValue); // an open tab writes again what another has dropped: together it can be too much
      offered = entries()
        .filter((entry) => entry.key !== key && (entry.closed || Date.now() - entry.time > ALIVE))
        .map((entry) => entry.key);
    }
    if (!data.answered && !data.has) {
      // Once for a session, and again where a page without this part has made the server forget it.
      const left = entries().filter((entry) => offered.includes(entry.key));
      if (left.length) setStateValue("found", left.map((entry) => entry.text));
    }
    if (data.answered) {
      offered.forEach((each) => window.localStorage.removeItem(each));
      offered = [];
    }
    if (data.text === own) return;
    own = data.text;
    drop(data.most, setStateValue);
    write();
  } catch {
    console.info("This browser allows no storage: marks and uploads last as long as the session.");
  }
}

function begin(newSession) {
  if (key !== null) write(true); // the session before it has ended
  session = newSession;
  key = `${PREFIX}.${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`;
  own = "";
  dropped = 0;
  if (timer !== null) return;
  timer = window.setInterval(() => signOfLife(), REFRESH);
  window.addEventListener("pagehide", () => signOfLife(true));
  window.addEventListener("pageshow", () => signOfLife());
}

function signOfLife(closed = false) {
  try {
    write(closed);
  } catch {
    // Said when something was to be kept.
  }
}

function write(closed = false) {
  if (own === "") window.localStorage.removeItem(key);
  else window.localStorage.setItem(key, JSON.stringify({ time: Date.now(), closed, text: own }));
}

// All entries, the oldest first.
function entries() {
  const found = [];
  for (const each of Object.keys(window.localStorage)) {
    if (each === PREFIX) found.push({ key: each, time: 0, closed: true, text: window.localStorage.getItem(each) });
    if (!each.startsWith(`${PREFIX}.`)) continue;
    try {
      const { time, closed, text } = JSON.parse(window.localStorage.getItem(each));
      if (typeof time === "number" && typeof text === "string") found.push({ key: each, time, closed: closed === true, text });
    } catch {
      window.localStorage.removeItem(each); // nothing that this page has written
    }
  }
  return found.sort((one, other) => one.time - other.time);
}

// Makes room, and says for how many entries there was none.
function drop(most, setStateValue) {
  const more = makeRoom(most);
  dropped += more;
  if (more) setStateValue("dropped", dropped);
}

// Drops the oldest entries of other sessions until all take at most so many bytes; how many.
function makeRoom(most) {
  const others = entries().filter((entry) => entry.key !== key);
  const bytes = (text) => new TextEncoder().encode(text).length;
  let size = bytes(own) + others.reduce((sum, entry) => sum + bytes(entry.text), 0);
  let count = 0;
  for (const entry of others) {
    if (size <= most) break;
    window.localStorage.removeItem(entry.key);
    size -= bytes(entry.text);
    count += 1;
  }
  return count;
}
