// Copies the page's address. Over plain http from another machine browsers have no clipboard, so a
// selection is copied instead.
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const label = button.querySelector("span");
  label.textContent = data.label;
  button.disabled = !data.enabled;
  button.title = data.hint;
  button.onclick = async () => {
    const address = window.location.href;
    let copied = false;
    try {
      await navigator.clipboard.writeText(address);
      copied = true;
    } catch {
      const field = document.createElement("textarea");
      field.value = address;
      document.body.append(field);
      field.select();
      copied = document.execCommand("copy");
      field.remove();
    }
    label.textContent = copied ? "Link copied" : "Copy it from the address bar";
    setTimeout(() => (label.textContent = data.label), 2500);
  };
}
