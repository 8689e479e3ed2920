// Finding an element again, and what acting on it needs. An element is only ever the one that was shown.

// What was shown to the model becomes what an element is expected to be.
function commit(shown) {
  for (const number of shown) {
    const entry = entries.get(number);
    if (entry) entry.name = entry.pending;
  }
  // Elements that are gone and were never shown need no entry.
  if (entries.size > 50000) {
    for (const [number, entry] of entries) if (!entry.node.deref()) entries.delete(number);
  }
}

function isLive(element) {
  return element.isConnected && element.ownerDocument === document;
}

function describe(element, kind) {
  return `${roleOf(element, kind)} ${JSON.stringify(nameOf(element, kind))}`;
}

// The element of a number, or why it is not the one that was shown.
function resolve(number) {
  const entry = entries.get(number);
  const element = entry?.node.deref();
  if (!entry || !element || !isLive(element)) {
    return { stale: "gone", was: entry ? entry.name : "", near: entry ? nearest(entry) : [] };
  }
  const name = nameOf(element, entry.kind);
  if (name !== entry.name && entry.kind !== "i" && entry.kind !== "s" && entry.kind !== "f") {
    return { stale: "changed", was: entry.name, now: name, near: nearest(entry) };
  }
  return { element, entry, name };
}

// Elements of the same name that are there now.
function nearest(entry) {
  const near = [];
  for (const [number, other] of entries) {
    const element = other.node.deref();
    if (other === entry || !element || !isLive(element)) continue;
    if (other.pending && entry.name && other.pending === entry.name && other.kind === entry.kind) near.push(number);
    if (near.length === 3) break;
  }
  return near;
}

function boxOf(element) {
  const boxes = [...element.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
  const inView = boxes.find((box) => box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth);
  return inView || boxes[0] || null;
}

// What stands for a control on the page: a hidden checkbox is clicked by its label.
function targetOf(element, kind) {
  const style = getComputedStyle(element);
  const unseen = !boxOf(element) || Number(style.opacity) < 0.05 || style.visibility !== "visible" || concealed(element, style);
  if (kind === "c" && unseen && element.labels?.length) return element.labels[0];
  return element;
}

function deepHit(x, y) {
  let hit = document.elementFromPoint(x, y);
  for (let shadow = hit && shadowOf(hit); shadow; shadow = hit && shadowOf(hit)) {
    const inner = shadow.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
}

function containsDeep(outer, inner) {
  for (let node = inner; node; node = node.assignedSlot || node.parentNode || node.host) if (node === outer) return true;
  return false;
}

function describeCover(cover) {
  let outer = cover;
  for (let node = cover; node && node !== document.body; node = node.parentElement) {
    const position = getComputedStyle(node).position;
    if (position === "fixed" || position === "absolute" || node.localName === "dialog") outer = node;
  }
  const buttons = [];
  for (const element of outer.querySelectorAll("button,[role=button],a[href],input[type=button],input[type=submit]")) {
    const kind = kindOf(element);
    if (kind && boxOf(element) && buttons.length < 4) {
      const name = nameOf(element, kind);
      const ref = mark(element, kind, name);
      entries.get(numbers.get(element)).name = name;
      buttons.push(`[${ref} ${clip(name, 40)}]`);
    }
  }
  const name = collapse(outer.getAttribute?.("aria-label") || textInside(outer, 80)).trim();
  return { cover: `${outer.localName}${outer.id ? `#${clip(clean(outer.id), 40)}` : ""} ${JSON.stringify(clip(name, 80))}`, buttons };
}

// Where to click: the middle of the box in the frame's own viewport, and what would be hit there.
function locate(number, options) {
  const found = resolve(number);
  if (!found.element) return found;
  const { element, entry, name } = found;
  const target = targetOf(element, entry.kind);
  if (options.scroll) {
    const box = boxOf(target);
    const inside = box && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
    if (!inside || options.force) target.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  }
  const box = boxOf(target);
  const form = element.form || element.closest("form");
  const style = getComputedStyle(element);
  const facts = {
    kind: entry.kind,
    role: roleOf(element, entry.kind),
    name,
    tag: element.localName,
    type: element.type || "",
    autocomplete: element.getAttribute("autocomplete") || "",
    password: element.type === "password",
    editable: element.isContentEditable || /^(input|textarea)$/.test(element.localName),
    value: entry.kind === "i" || entry.kind === "s" ? valueOf(element) : "",
    checked: entry.kind === "c" && isChecked(element),
    disabled: isDisabled(element),
    readonly: Boolean(element.readOnly),
    href: entry.kind === "a" ? String(element.href?.baseVal ?? element.href ?? "") : "",
    action: form ? String(form.action || location.href) : "",
    method: form ? (form.method || "get") : "",
    host: location.host,
    title: clip(collapse(document.title).trim(), 100),
    page: clip(textInside(form || element.parentElement || element, 600), 600),
  };
  if (!box) return { facts, invisible: true };
  const left = Math.max(box.left, 0);
  const top = Math.max(box.top, 0);
  const right = Math.min(box.right, innerWidth);
  const bottom = Math.min(box.bottom, innerHeight);
  const x = right > left ? (left + right) / 2 : box.left + box.width / 2;
  const y = bottom > top ? (top + bottom) / 2 : box.top + box.height / 2;
  const answer = { facts, x, y, width: box.width, height: box.height, left: box.left, top: box.top };
  if (style.pointerEvents === "none" && entry.kind !== "f") answer.inert = true;
  if (entry.kind === "f") {
    answer.left = box.left + element.clientLeft + parseFloat(style.paddingLeft);
    answer.top = box.top + element.clientTop + parseFloat(style.paddingTop);
  }
  const hit = deepHit(x, y);
  const ok = hit && (containsDeep(target, hit) || hit.closest?.("label")?.control === element);
  // What lies under an element may be its own container; only what is drawn over it covers it.
  if (!ok && hit && !(containsDeep(hit, target) && answer.inert)) {
    if (containsDeep(hit, target)) answer.under = true;
    Object.assign(answer, describeCover(hit));
  }
  return answer;
}

// Whether a point of this frame belongs to the frame element of that number.
function hitsFrame(number, x, y) {
  const found = resolve(number);
  if (!found.element) return { ok: false, cover: "a frame that is gone", buttons: [] };
  const hit = deepHit(x, y);
  if (!hit || hit === found.element) return { ok: true };
  return { ok: false, ...describeCover(hit) };
}

function focus(number, select) {
  const found = resolve(number);
  if (!found.element) return found;
  const { element } = found;
  element.focus({ preventScroll: true });
  if (select) {
    if (typeof element.select === "function" && element.localName !== "select") {
      element.select();
    } else if (element.isContentEditable) {
      const range = document.createRange();
      range.selectNodeContents(element);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
  } else if (typeof element.setSelectionRange === "function" && /^(text|search|url|tel|password|textarea)$/.test(element.type)) {
    element.setSelectionRange(element.value.length, element.value.length);
  }
  let active = document.activeElement;
  while (active && shadowOf(active)?.activeElement) active = shadowOf(active).activeElement;
  return { focused: active === element || containsDeep(element, active) };
}

function changed(element) {
  element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  element.dispatchEvent(new Event("change", { bubbles: true }));
}

// Fields that cannot be typed into: dates, colours, ranges.
function setValue(number, value) {
  const found = resolve(number);
  if (!found.element) return found;
  const { element } = found;
  const setter = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value")?.set;
  if (setter) setter.call(element, value); else element.value = value;
  changed(element);
  return { value: valueOf(element), exact: element.value === value };
}

function currentValue(number) {
  const found = resolve(number);
  if (!found.element) return found;
  const { element } = found;
  const raw = /^(input|textarea|select)$/.test(element.localName) ? element.value : element.innerText;
  return { raw: element.type === "password" ? String(raw.length) : raw, length: raw.length };
}

// Chooses options by label, by value or by number from 1.
function choose(number, wanted) {
  const found = resolve(number);
  if (!found.element) return found;
  const { element } = found;
  if (element.localName !== "select") return { notSelect: true };
  const options = [...element.options];
  const chosen = [];
  for (const want of wanted) {
    const plain = want.trim().toLowerCase();
    const option = options.find((one) => collapse(one.label).trim() === want.trim())
      || options.find((one) => one.value === want)
      || options.find((one) => collapse(one.label).trim().toLowerCase() === plain);
    if (!option) return { missing: want, options: options.slice(0, 30).map((one) => collapse(one.label).trim()) };
    if (option.disabled || option.parentElement?.disabled) return { missing: want, off: true, options: [] };
    chosen.push(option);
  }
  if (!element.multiple && chosen.length > 1) return { single: true };
  element.focus({ preventScroll: true });
  for (const option of options) option.selected = chosen.includes(option);
  changed(element);
  return { value: valueOf(element) };
}

function scrollBy(number, direction, pages) {
  let element = null;
  if (number) {
    const found = resolve(number);
    if (!found.element) return found;
    element = found.element;
    for (; element && element !== document.body; element = element.parentElement) {
      const style = getComputedStyle(element);
      const across = direction === "left" || direction === "right";
      const room = across ? element.scrollWidth - element.clientWidth : element.scrollHeight - element.clientHeight;
      if (room > 4 && /(auto|scroll)/.test(across ? style.overflowX : style.overflowY)) break;
    }
  }
  if (!element || element === document.body) element = document.scrollingElement || document.documentElement;
  const before = [element.scrollLeft, element.scrollTop];
  const sign = direction === "up" || direction === "left" ? -1 : 1;
  if (direction === "left" || direction === "right") element.scrollBy({ left: sign * element.clientWidth * 0.9 * pages, behavior: "instant" });
  else element.scrollBy({ top: sign * (element === document.scrollingElement ? innerHeight : element.clientHeight) * 0.9 * pages, behavior: "instant" });
  return { moved: element.scrollLeft !== before[0] || element.scrollTop !== before[1] };
}

// One painted frame, or a moment where nothing is painted.
function frame() {
  return new Promise((done) => {
    const timer = setTimeout(done, 60);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(done, 0);
    });
  });
}

function nodeOf(number) {
  return entries.get(number)?.node.deref() || null;
}

function adopt(host, root) {
  closedRoots.set(host, root);
}

// A node that was found otherwise than by a walk, as an element that was shown.
function take(node) {
  const element = node.nodeType === 1 ? node : node.parentElement;
  if (!element) return null;
  const control = element.closest("a[href],button,summary,label,[role=button],[role=link]");
  const kind = kindOf(element) || "e";
  const chosen = kind === "e" && control ? control : element;
  const own = kindOf(chosen) || "e";
  const name = nameOf(chosen, own);
  mark(chosen, own, name);
  entries.get(numbers.get(chosen)).name = name;
  return numbers.get(chosen);
}
