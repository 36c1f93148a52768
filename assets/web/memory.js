// Keeps in this browser what a session would lose with its end: marks of hits, and which files were uploaded. What an earlier
// session has left is sent once, so that the page can offer it; until a person has answered, nothing is written over it.
const KEY = "bertInternalsMemory";
let session = null; // whose page this is: a browser that comes back too late gets a new one, without loading the page again
let isSent = false;
let isOurs = false; // what is stored was written by this session

export default function ({ data, setStateValue }) {
  if (data.session !== session) {
    session = data.session;
    isSent = isOurs = false;
  }
  const stored = kept();
  if (stored !== null && !isOurs && !data.answered) {
    if (!isSent) setStateValue("found", stored);
    isSent = true;
    return;
  }
  if (data.text === stored || (data.text === "" && stored === null)) return;
  isOurs = true;
  keep(data.text);
}

function kept() {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(text) {
  try {
    if (text === "") window.localStorage.removeItem(KEY);
    else window.localStorage.setItem(KEY, text);
  } catch {
    console.info("This browser allows no storage: marks and uploads last as long as the session.");
  }
}
