// The text of a page in reading order, one line for each block, in one bounded walk.

const LINE_LENGTH = 1200;
const TOO_LONG_FOR_NAME = 240;
const WALK_TIME = 1500;

function walk(options) {
  const limit = options.limit;
  const deadline = performance.now() + WALK_TIME;
  const root = options.root ? entries.get(options.root)?.node.deref() : document.body || document.documentElement;
  let lines = [];
  let current = "";
  let length = 0;
  let visited = 0;
  let controls = 0;
  let hidden = 0;
  let cut = false;
  const frames = [];
  const hosts = [];
  const usedLabels = new WeakSet();
  const view = options.view ? { bottom: innerHeight, right: innerWidth } : null;

  function emit(line) {
    lines.push(line);
    length += line.length + 1;
    if (length > limit) cut = true;
  }

  function flush() {
    let line = current.trim();
    current = "";
    while (line.length > LINE_LENGTH) {
      const space = line.lastIndexOf(" ", LINE_LENGTH);
      let end = space > LINE_LENGTH / 2 ? space : LINE_LENGTH;
      // A reference is never cut in two.
      const open = line.lastIndexOf(REF_START, end);
      if (open > 0 && line.indexOf(REF_END, open) >= end) end = open - 1;
      emit(line.slice(0, end).trim());
      line = line.slice(end).trim();
    }
    if (line) emit(line);
  }

  function capture(work) {
    const outer = { lines, current, length };
    lines = [];
    current = "";
    work();
    flush();
    const captured = lines;
    ({ lines, current, length } = outer);
    return captured;
  }

  function append(text) {
    if (!text) return;
    if (current === "" || current.endsWith(" ")) text = text.replace(/^ /, "");
    current += text;
  }

  function word(text) {
    if (current && !/[\s([]$/.test(current)) current += " ";
    current += text;
  }

  function isFarOutside(element) {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) return false;
    return box.bottom <= 0 || box.top >= view.bottom || box.right <= 0 || box.left >= view.right;
  }

  // In a view, only the lines of a long text that can be seen.
  function visibleText(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.bottom > 0 && box.top < view.bottom) return true;
    }
    return false;
  }

  function control(element, kind, style, context) {
    controls += 1;
    const tag = element.localName;
    const states = statesOf(element);
    const tail = states.length ? ` ${states.join(" ")}` : "";
    if (kind === "a" || kind === "b" || kind === "e") {
      if (tag === "input") {
        const name = nameOf(element, kind);
        word(`[${mark(element, kind, name)} ${escapeRefs(name)}${tail}] `);
        return;
      }
      const before = controls;
      const name = nameOf(element, kind);
      const ref = mark(element, kind, name);
      const inside = capture(() => children(element, style, { ...context, control: true, pointer: true, behind: background(style, context.behind) }));
      const url = options.urls && kind === "a" ? ` → ${clip(clean(shortUrl(element)), 300)}` : "";
      const single = inside.length <= 1 && controls === before && (inside[0] || "").length <= TOO_LONG_FOR_NAME;
      if (single) {
        const text = (inside[0] || "").replace(/^#+ /, "");
        const heading = /^#+ /.exec(inside[0] || "");
        // Icons have a name and no text worth reading.
        const shown = text.replace(/[^\p{L}\p{N}]/gu, "").length > 1 || text === name ? text : escapeRefs(name);
        if (heading) { flush(); current = heading[0]; }
        // Links stand in the flow of a text; punctuation follows them directly.
        const gap = current.endsWith("]") || (tag !== "a" && current && !/[\s(]$/.test(current)) ? " " : "";
        current += `${gap}[${ref}${shown || text ? ` ${shown || text}` : ""}${tail}${url}]${tag === "a" || heading ? "" : " "}`;
        if (heading) flush();
        return;
      }
      word(`[${ref}${tail}${url}] `);
      inside.forEach((line, index) => {
        append(line);
        if (index < inside.length - 1) flush();
      });
      if (inside.length > 1) flush(); else append(" ");
      return;
    }
    const name = nameOf(element, kind);
    const ref = mark(element, kind, name);
    const before = (current.trim() || lines[lines.length - 1] || "").replace(/[:*\s]+$/, "");
    const bare = name.replace(/[:*\s]+$/, "");
    let label = "";
    if (bare && !before.endsWith(bare)) {
      const own = kind === "c" && context.label && element.labels && [...element.labels].includes(context.label);
      if (!own) {
        label = ` ${escapeRefs(bare)}:`;
        for (const one of element.labels || []) usedLabels.add(one);
      }
    }
    if (kind === "c") {
      word(`[${ref}${label} ${isChecked(element) ? "on" : "off"}${tail}] `);
      return;
    }
    let value = JSON.stringify(clip(valueOf(element), options.root === numbers.get(element) ? 4000 : 300));
    if (kind === "s") {
      value += options_of(element, options.root === numbers.get(element));
    } else if (element.type === "file") {
      value = element.files.length ? value : element.multiple ? "files" : "file";
    } else if (!/^(input|textarea)$/.test(tag) && element.isContentEditable && textInside(element, 400).length > 300) {
      word(`[${ref}${label}${tail}] `);
      children(element, style, { ...context, control: true });
      return;
    } else if (tag === "input" && !/^(text|password)$/.test(element.type)) {
      value = `${element.type} ${value}`;
    }
    word(`[${ref}${label} ${value}${tail}] `);
  }

  function options_of(element, all) {
    if (element.localName !== "select") return "";
    const names = [...element.options].map((option) => collapse(option.label).trim());
    const listed = names.join(", ");
    if (all || (names.length <= 8 && listed.length <= 100)) return ` of ${clip(escapeRefs(listed), all ? 20000 : 100)}`;
    return ` of ${names.length} options`;
  }

  function shortUrl(element) {
    const href = element.href instanceof SVGAnimatedString ? element.href.baseVal : element.href;
    return href.startsWith(`${location.origin}/`) ? href.slice(location.origin.length) : href;
  }

  function children(element, style, context) {
    const nodes = childrenOf(element);
    for (let at = 0; at < nodes.length && !cut; at++) visit(nodes[at], style, context);
  }

  function text(node, style, context) {
    const data = node.data;
    if (!data || !context.shown) return;
    if (context.secret === undefined && /\S/.test(data) && sameColour(style, context.behind)) {
      hidden += data.trim().length;
      return;
    }
    if (view && data.length > 1 && /\S/.test(data) && !visibleText(node)) return;
    if (context.pre) {
      const parts = clean(data.replace(/\t/g, "    ")).split(/\r?\n/);
      parts.forEach((part, index) => {
        if (index > 0) {
          // Indentation is part of preformatted text.
          if (current.trim()) emit(current.trimEnd().slice(0, LINE_LENGTH * 4));
          current = "";
        }
        current += escapeRefs(part);
      });
      return;
    }
    append(escapeRefs(collapse(data)));
  }

  function row(element, style, context) {
    const cells = [];
    for (const cell of childrenOf(element)) {
      if (cell.nodeType !== 1 || !/^(td|th)$/.test(cell.localName)) continue;
      const inside = capture(() => visit(cell, style, { ...context, cell: true }));
      cells.push(inside.join(" "));
    }
    if (cells.some((cell) => cell)) {
      flush();
      current = cells.length === 1 ? cells[0] : `| ${cells.join(" | ")} |`.replace(/(\| )+\|$/, "|");
      flush();
    }
  }

  // A table that arranges the page rather than data.
  function isLayout(element) {
    return element.querySelector(":scope > td > table, :scope > td > form, :scope > td > h1, :scope > td > h2, :scope > td > h3, :scope > td > pre, :scope > td > p ~ p, :scope > td > div ~ div, :scope > td > center") !== null;
  }

  function visit(node, outerStyle, context) {
    if (cut) return;
    if ((++visited & 1023) === 0 && performance.now() > deadline) {
      cut = true;
      return;
    }
    if (node.nodeType === 3) return text(node, outerStyle, context);
    if (node.nodeType !== 1) return;
    const element = node;
    const tag = element.localName;
    if (SKIPPED.has(tag)) return;
    if (tag === "br") return context.cell ? append(" ") : flush();
    const style = getComputedStyle(element);
    const display = style.display;
    if (display === "none" || style.contentVisibility === "hidden") return;
    if (view && display !== "contents" && isFarOutside(element)) return;
    const why = display === "contents" ? null : concealed(element, style);
    if (why) {
      // A control may be drawn by its label; it keeps its place without its text.
      const kind = kindOf(element);
      if (kind === "c" && style.display !== "none") return control(element, kind, style, context);
      hidden += (element.textContent || "").trim().length;
      return;
    }
    const shown = style.visibility === "visible";
    const inner = {
      ...context,
      shown,
      behind: background(style, context.behind),
      pointer: context.pointer || style.cursor === "pointer",
      pre: /^(pre|break-spaces)/.test(style.whiteSpaceCollapse === "preserve" ? "pre" : style.whiteSpace),
    };
    const block = !display.startsWith("inline") && display !== "contents" && display !== "ruby";

    if (shown) {
      switch (tag) {
        case "img":
          if (context.control) return append(` ${escapeRefs(clip(collapse(element.alt).trim(), 200))} `);
          if (element.alt && !(view && isFarOutside(element))) word(`(image: ${escapeRefs(clip(collapse(element.alt).trim(), 200))}) `);
          return;
        case "svg": {
          const title = element.getAttribute("aria-label") || element.querySelector(":scope > title")?.textContent || "";
          if (title.trim() && !context.control) word(`(image: ${escapeRefs(clip(collapse(title).trim(), 200))}) `);
          element.querySelectorAll("text").forEach((one) => append(` ${escapeRefs(collapse(one.textContent))} `));
          return;
        }
        case "canvas": case "video": case "audio": case "object": case "embed": {
          const label = collapse(element.getAttribute("aria-label") || element.title || element.textContent || "").trim();
          controls += 1;
          word(`[${mark(element, "e", label)} ${tag}${label ? `: ${escapeRefs(clip(label, 200))}` : ""}] `);
          return;
        }
        case "iframe": case "frame": {
          const box = element.getBoundingClientRect();
          if (box.width < 8 || box.height < 8) return;
          flush();
          const name = collapse(element.title || element.name || "").trim();
          emit(`[${mark(element, "f", name)} frame${name ? `: ${escapeRefs(clip(name, 100))}` : ""}]`);
          frames.push([lines.length - 1, numbers.get(element)]);
          return;
        }
        case "hr": return flush();
        case "math": return word(`${escapeRefs(collapse(element.getAttribute("alttext") || element.textContent))} `);
        case "label":
          if (usedLabels.has(element) && !element.querySelector("a,button,input,select,textarea")) return;
          inner.label = element;
          break;
        case "li": {
          const list = element.parentElement;
          if (list && list.localName === "ol" && style.listStyleType !== "none" && !context.cell) {
            flush();
            current = `${element.value || [...list.children].indexOf(element) + (list.start || 1)}. `;
            children(element, style, inner);
            flush();
            return;
          }
          break;
        }
        case "tr":
          if (!isLayout(element) && display === "table-row") return row(element, style, inner);
          break;
        case "details":
          if (!element.open) {
            flush();
            const summary = [...element.children].find((child) => child.localName === "summary");
            if (summary) visit(summary, style, inner);
            flush();
            return;
          }
          break;
        case "dialog":
          flush();
          emit(`dialog${element.getAttribute("aria-label") ? ` ${JSON.stringify(collapse(element.getAttribute("aria-label")))}` : ""}:`);
          break;
      }
      const kind = kindOf(element) || (!context.control && isClickable(element, style, context.pointer) && element !== root ? "e" : null);
      if (kind && !(tag === "option")) {
        const apart = block && !context.cell;
        if (apart) flush();
        control(element, kind, style, inner);
        if (apart) flush();
        return;
      }
      const level = /^h([1-6])$/.exec(tag)?.[1] || (element.getAttribute("role") === "heading" && (element.getAttribute("aria-level") || "2"));
      if (level) {
        if (context.cell) return children(element, style, inner);
        const inside = capture(() => children(element, style, inner));
        flush();
        inside.forEach((line, index) => emit(index === 0 ? `${"#".repeat(Math.min(6, Number(level) || 2))} ${line}` : line));
        return;
      }
      if (tag.includes("-") && !shadowOf(element) && element.childElementCount === 0) hosts.push(element);
    }
    const apart = block && !context.cell;
    if (apart) flush(); else if (block) append(" ");
    children(element, style, inner);
    if (inner.pre && apart) {
      if (current.trim()) emit(current.trimEnd().slice(0, LINE_LENGTH * 4));
      current = "";
    }
    if (apart) flush(); else if (block) append(" ");
  }

  if (root && root.isConnected) {
    const white = [255, 255, 255, 1];
    const modal = options.root ? null : document.querySelector("dialog:modal");
    const context = { shown: true, behind: white, pointer: false };
    if (modal) {
      visit(modal, getComputedStyle(modal.parentElement || modal), context);
      flush();
      emit("behind the dialog:");
    }
    const style = getComputedStyle(root);
    if (options.root) visit(root, style, context);
    else children(root, style, { ...context, behind: background(style, background(getComputedStyle(document.documentElement), white)) || white });
    flush();
  }
  walk.hosts = hosts;
  const scroller = document.scrollingElement || document.documentElement;
  return {
    text: lines.join("\n"),
    title: clip(collapse(document.title).trim(), 200),
    url: location.href,
    frames,
    hosts: hosts.length,
    controls,
    hidden,
    cut,
    above: Math.round(scroller.scrollTop),
    below: Math.round(scroller.scrollHeight - scroller.scrollTop - innerHeight),
    last: lastNumber,
  };
}
