// Sends this tab's mark: a random UUID that is made here and kept for this tab only, over a reload but not after it is
// closed. No cookie, and nothing that another site, tab or day could know again.
const KEY = "bertInternalsVisitor";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
let mark = null;

export default function ({ data, setStateValue }) {
  if (!data.known) setStateValue("mark", (mark ??= kept() ?? made()));
}

function kept() {
  try {
    const text = window.sessionStorage.getItem(KEY);
    return UUID.test(text) ? text : null;
  } catch {
    return null;
  }
}

function made() {
  // Not crypto.randomUUID, which browsers have only over https and on the own machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40; // version 4, and the variant of RFC 9562
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const made = digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  try {
    window.sessionStorage.setItem(KEY, made);
  } catch {
    console.info("This browser allows no storage: after a reload the server knows none of this tab's answers.");
  }
  return made;
}
