// Elements: identity, visibility, kind, name and state. Runs in an isolated world; it reads the page and
// leaves nothing in it.

const NAME_LENGTH = 100;
const REF_START = "\u0001";
const REF_END = "\u0002";

const entries = new Map(); // number -> {node, kind, name, pending}
const numbers = new WeakMap(); // element -> number
const closedRoots = new WeakMap(); // host -> closed shadow root, when the debugger handed it over
let lastNumber = 0;

function mark(element, kind, name) {
  let number = numbers.get(element);
  if (number === undefined) {
    number = ++lastNumber;
    numbers.set(element, number);
    entries.set(number, { node: new WeakRef(element), kind, name, pending: name });
  } else {
    const entry = entries.get(number);
    entry.kind = kind;
    entry.pending = name;
  }
  return REF_START + kind + number + REF_END;
}

// Bidirectional controls and tag characters are shown as code points; zero-width ones are dropped. Private
// use characters are icons of fonts.
const ODD = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ue000-\uf8ff\ufeff]|[\u{e0000}-\u{e007f}\u{f0000}-\u{10ffff}]/gu;

function clean(text) {
  return text.replace(ODD, (odd) => {
    const code = odd.codePointAt(0);
    const shown = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    const tag = code >= 0xe0000 && code <= 0xe007f;
    return shown || tag ? `\\u{${code.toString(16)}}` : "";
  });
}

// Text that looks like one of our own references is marked as text.
function escapeRefs(text) {
  return text.includes("[") ? text.replace(/\[(?=[abcefistr]\d)/g, "\\[") : text;
}

function collapse(text) {
  return clean(text.replace(/\s+/g, " "));
}

function clip(text, length) {
  return text.length > length ? `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, "")}…` : text;
}

function shadowOf(element) {
  return element.shadowRoot || closedRoots.get(element) || null;
}

function childrenOf(node) {
  if (node.nodeType === 1) {
    const shadow = shadowOf(node);
    if (shadow) return shadow.childNodes;
    if (node.localName === "slot") {
      const assigned = node.assignedNodes({ flatten: true });
      return assigned.length ? assigned : node.childNodes;
    }
  }
  return node.childNodes;
}

const SKIPPED = new Set([
  "script", "style", "noscript", "template", "head", "meta", "link", "base", "title", "datalist", "source",
  "track", "param", "colgroup", "col", "area", "map",
]);

// Why the text of an element cannot be seen although it is laid out, or null.
function concealed(element, style) {
  if (Number(style.opacity) < 0.05) return "opacity";
  if (parseFloat(style.fontSize) < 3) return "tiny";
  if (parseFloat(style.textIndent) < -400) return "offscreen";
  const position = style.position;
  const placed = position === "absolute" || position === "fixed";
  const moved = style.transform !== "none";
  if (placed || moved || position === "relative" || style.overflowX !== "visible") {
    const box = element.getBoundingClientRect();
    if (placed && /^rect\(/.test(style.clip) && box.width <= 2 && box.height <= 2) return "clipped";
    if (/inset\((50|100)%/.test(style.clipPath)) return "clipped";
    const clips = style.overflowX !== "visible" && style.overflowY !== "visible";
    if (clips && (box.width <= 1 || box.height <= 1)) return "clipped";
    if (moved && box.width < 1 && box.height < 1) return "clipped";
    if (box.width > 0 && box.height > 0) {
      if (box.right + scrollX <= 0 || box.bottom + scrollY <= 0) return "offscreen";
    }
  }
  return null;
}

function colour(text) {
  const parts = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(text);
  return parts && [Number(parts[1]), Number(parts[2]), Number(parts[3]), parts[4] === undefined ? 1 : Number(parts[4])];
}

// The colour behind an element: its own, or that of what it stands in; null when it cannot be known.
function background(style, outer) {
  if (style.backgroundImage !== "none") return null;
  const own = colour(style.backgroundColor);
  if (!own) return null;
  return own[3] === 0 ? outer : own[3] >= 0.9 ? own : null;
}

function sameColour(style, behind) {
  const front = colour(style.color);
  if (!front) return false;
  if (front[3] < 0.05) return style.webkitTextFillColor === style.color;
  if (!behind) return false;
  return Math.abs(front[0] - behind[0]) + Math.abs(front[1] - behind[1]) + Math.abs(front[2] - behind[2]) < 12;
}

const ROLES = {
  button: "b", link: "a", menuitem: "b", menuitemcheckbox: "c", menuitemradio: "c", tab: "b", option: "b",
  checkbox: "c", radio: "c", switch: "c", textbox: "i", searchbox: "i", combobox: "i", spinbutton: "i",
  slider: "i", treeitem: "b",
};

const FIELD_ROLES = new Set(["textbox", "searchbox", "combobox", "spinbutton", "slider"]);

// The kind of a control by what it is: a link, b button, c checkbox, i field, s select; null for the rest.
function kindOf(element) {
  switch (element.localName) {
    case "a":
      if (element.hasAttribute("href")) return "a";
      break;
    case "button":
    case "summary":
      return "b";
    case "input": {
      const type = element.type;
      if (type === "hidden") return null;
      if (type === "checkbox" || type === "radio") return "c";
      return /^(button|submit|reset|image)$/.test(type) ? "b" : "i";
    }
    case "textarea":
      return "i";
    case "select":
      return "s";
  }
  const role = (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();
  if (ROLES[role]) return ROLES[role];
  if (element.isContentEditable && !element.parentElement?.isContentEditable) return "i";
  return null;
}

// Whether an element that is no control by kind reacts to clicks, as far as that can be seen.
function isClickable(element, style, outerPointer) {
  if (element.hasAttribute("onclick")) return true;
  if (style.cursor === "pointer" && !outerPointer) return element.localName !== "label";
  const index = element.getAttribute("tabindex");
  return index !== null && Number(index) >= 0 && !["body", "html", "iframe", "dialog", "pre"].includes(element.localName);
}

function roleOf(element, kind) {
  const role = (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();
  if (role) return role;
  switch (kind) {
    case "a": return "link";
    case "b": return "button";
    case "c": return element.type === "radio" ? "radio" : "checkbox";
    case "s": return "combobox";
    case "f": return "frame";
    case "i": return element.type === "search" ? "searchbox" : element.type === "number" ? "spinbutton" : "textbox";
    default: return "element";
  }
}

// The text that can be seen inside an element, in one line and bounded.
function textInside(element, limit) {
  let text = "";
  const visit = (node) => {
    if (text.length > limit) return;
    if (node.nodeType === 3) {
      text += collapse(node.data);
    } else if (node.nodeType === 1 && !SKIPPED.has(node.localName)) {
      if (node.localName === "img") {
        text += ` ${collapse(node.alt || "")} `;
        return;
      }
      if (node.localName === "svg") {
        text += ` ${collapse(node.querySelector("title")?.textContent || node.getAttribute("aria-label") || "")} `;
        return;
      }
      if (node !== element) {
        const style = getComputedStyle(node);
        if (style.display === "none" || style.visibility !== "visible" || concealed(node, style)) return;
        if (!style.display.startsWith("inline")) text += " ";
      }
      for (const child of childrenOf(node)) visit(child);
    }
  };
  visit(element);
  return text.replace(/\s+/g, " ").trim();
}

function textOfIds(element, attribute) {
  const list = element.getAttribute(attribute);
  if (!list) return "";
  const root = element.getRootNode();
  const parts = list.trim().split(/\s+/).slice(0, 8).map((id) => root.getElementById?.(id)?.textContent || "");
  return collapse(parts.join(" ")).trim();
}

function labelText(element) {
  const labels = element.labels;
  if (!labels || !labels.length) return "";
  const parts = [];
  for (const label of labels) {
    let text = "";
    const visit = (node) => {
      if (node === element || text.length > NAME_LENGTH * 2) return;
      if (node.nodeType === 3) text += node.data;
      else if (!/^(select|textarea|script|style)$/.test(node.localName || "")) node.childNodes.forEach(visit);
    };
    visit(label);
    parts.push(collapse(text).trim());
  }
  return parts.join(" ").trim();
}

// A name for people, by the usual order: labels by reference, aria-label, label elements, own text, title,
// placeholder.
function nameOf(element, kind) {
  const given = textOfIds(element, "aria-labelledby") || collapse(element.getAttribute("aria-label") || "").trim();
  if (given) return clip(given, NAME_LENGTH);
  const tag = element.localName;
  let name = "";
  if (kind === "i" || kind === "s" || kind === "c") name = labelText(element);
  if (!name && tag === "input" && kind === "b") {
    const usual = { submit: "Submit", reset: "Reset", image: "Submit" }[element.type] || "";
    name = element.value || element.alt || usual;
  }
  const isField = kind === "i" || kind === "s" || /^(input|textarea|select)$/.test(tag);
  if (!name && !isField) name = textInside(element, NAME_LENGTH);
  if (!name) name = element.getAttribute("title") || element.getAttribute("placeholder") || element.getAttribute("aria-placeholder") || "";
  if (!name && kind === "a") name = (element.getAttribute("href") || "").split(/[?#]/)[0].replace(/\/+$/, "").split("/").pop();
  if (!name && isField) name = element.name || element.id || "";
  return clip(collapse(name).trim(), NAME_LENGTH);
}

// What a field holds, for people; nothing of a password.
function valueOf(element) {
  if (element.localName === "select") {
    return [...element.selectedOptions].slice(0, 10).map((option) => collapse(option.label).trim()).join(", ");
  }
  if (element.localName === "input" || element.localName === "textarea") {
    if (element.type === "password") return element.value ? "•••" : "";
    if (element.type === "file") return [...element.files].map((file) => collapse(file.name)).join(", ");
    return clean(element.value.slice(0, 4000));
  }
  const now = element.getAttribute("aria-valuetext") || element.getAttribute("aria-valuenow");
  return now !== null && now !== undefined ? collapse(now) : textInside(element, 4000);
}

function isChecked(element) {
  if (element.localName === "input") return element.checked;
  return element.getAttribute("aria-checked") === "true";
}

function isDisabled(element) {
  return element.matches(":disabled") || element.getAttribute("aria-disabled") === "true";
}

function statesOf(element) {
  const states = [];
  if (isDisabled(element)) states.push("disabled");
  if (element.required || element.getAttribute("aria-required") === "true") states.push("required");
  if (element.readOnly || element.getAttribute("aria-readonly") === "true") states.push("readonly");
  if (element.getAttribute("aria-invalid") === "true") states.push("invalid");
  const expanded = element.localName === "summary" && element.parentElement?.localName === "details"
    ? String(element.parentElement.open) : element.getAttribute("aria-expanded");
  if (expanded === "true") states.push("open");
  if (expanded === "false") states.push("closed");
  if (element.getAttribute("aria-selected") === "true") states.push("selected");
  if (element.getAttribute("aria-pressed") === "true") states.push("pressed");
  const current = element.getAttribute("aria-current");
  if (current && current !== "false") states.push("current");
  return states;
}
