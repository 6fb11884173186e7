// A tolerant reader and editor of scenario files, line by line. The text is the truth: an edit touches the one line it is about,
// and whatever this does not understand stays as it was written.

/** What a text has: its tables and its entries, each with its place. Never fails; what makes no sense is passed over. */
export function parse(text) {
  const lines = text.split("\n");
  const root = { path: "", name: "", array: false, index: 0, line: -1, end: lines.length - 1, entries: [] };
  const tables = [root];
  const counts = new Map();
  let table = root;
  for (let line = 0; line < lines.length; line++) {
    const bare = lines[line].trim();
    if (bare === "" || bare.startsWith("#")) continue;
    const head = /^\[(\[)?\s*([^\]]+?)\s*\](\])?\s*(#.*)?$/.exec(bare);
    if (head && Boolean(head[1]) === Boolean(head[3])) {
      const keys = splitKey(head[2]);
      if (!keys) continue;
      // Inside an array of tables, a plain path means the last one of it.
      const path = [];
      keys.forEach((key, at) => {
        path.push(key);
        const name = path.join(".");
        if (at < keys.length - 1 && counts.has(name)) path.push(counts.get(name) - 1);
      });
      let index = 0;
      if (head[1]) {
        const name = path.join(".");
        index = counts.get(name) ?? 0;
        counts.set(name, index + 1);
        path.push(index);
      }
      table.end = line - 1;
      table = {
        path: path.join("."),
        name: keys.join("."),
        array: Boolean(head[1]),
        index,
        line,
        end: lines.length - 1,
        entries: [],
      };
      tables.push(table);
      continue;
    }
    const entry = readEntry(lines, line);
    if (!entry) continue;
    entry.path = table.path ? `${table.path}.${entry.key}` : entry.key;
    entry.table = table;
    table.entries.push(entry);
    line = entry.endLine;
  }
  return { lines, tables, entries: tables.flatMap((table) => table.entries) };
}

function splitKey(text) {
  const keys = [];
  const one = /\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.|$)/y;
  let match;
  while (one.lastIndex < text.length && (match = one.exec(text))) {
    keys.push(match[1] ?? match[2] ?? match[3]);
    if (match[4] === "") return keys;
  }
  return null;
}

// `key = value`, where the value may go on over several lines.
function readEntry(lines, line) {
  const match = /^(\s*)((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_.\s-])+?)(\s*=\s*)/.exec(lines[line]);
  if (!match) return null;
  const keys = splitKey(match[2].trim());
  if (!keys) return null;
  const start = match[0].length;
  let depth = 0,
    quote = "",
    at = start,
    endLine = line,
    end = start;
  for (;;) {
    const text = lines[endLine];
    for (; at < text.length; at++) {
      const here = text[at];
      if (quote) {
        if (here === "\\" && quote[0] === '"') at++;
        else if (text.startsWith(quote, at)) {
          at += quote.length - 1;
          quote = "";
          end = at + 1;
        }
        continue;
      }
      if (here === "#") break;
      if (here === '"' || here === "'") {
        quote = text.startsWith(here.repeat(3), at) ? here.repeat(3) : here;
        at += quote.length - 1;
      } else if (here === "[" || here === "{") depth++;
      else if (here === "]" || here === "}") depth--;
      if (here.trim()) end = at + 1;
    }
    // A string in single quotes ends with its line, closed or not.
    if (quote.length === 1) {
      quote = "";
      end = text.length;
    }
    if ((depth <= 0 && !quote) || endLine === lines.length - 1) break;
    // An array that was never closed must not swallow the tables after it.
    if (!quote && /^\s*\[\[?[A-Za-z0-9_.\s-]+\]\]?\s*(#.*)?$/.test(lines[endLine + 1])) break;
    endLine++;
    at = 0;
    end = 0;
  }
  const raw =
    endLine === line
      ? lines[line].slice(start, end)
      : [lines[line].slice(start), ...lines.slice(line + 1, endLine), lines[endLine].slice(0, end)].join("\n");
  return { key: keys.join("."), line, endLine, start, end, raw: raw.trim() };
}

/** The entry of a path such as "topology.kind" or "flow.0.size". */
export function find(doc, path) {
  return doc.entries.find((entry) => entry.path === path) ?? null;
}

/** What an entry says: a text, a number, true or false; undefined if it is an array, a table or unreadable. */
export function plain(entry) {
  const raw = entry?.raw;
  if (raw === undefined) return undefined;
  if (/^"(?:[^"\\]|\\.)*"$/.test(raw)) {
    try {
      return JSON.parse(raw);
    } catch {
      return undefined;
    }
  }
  if (/^'[^']*'$/.test(raw)) return raw.slice(1, -1);
  if (raw === "true" || raw === "false") return raw === "true";
  if (/^[+-]?(\d[\d_]*)(\.\d[\d_]*)?([eE][+-]?\d+)?$/.test(raw)) return Number(raw.replaceAll("_", ""));
  return undefined;
}

/** How a value is shown in a field: as it is written, but without quotes. */
export function shown(entry) {
  if (!entry) return "";
  const value = plain(entry);
  return typeof value === "string" ? value : entry.raw;
}

/** How a field's text is written: bare where it can be a number or a truth and should be, else in quotes. */
export function written(text, bare) {
  const value = text.trim();
  if (/^[[{"']/.test(value)) return value;
  if (bare && /^([+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?|true|false)$/.test(value)) return value;
  return JSON.stringify(value);
}

/** The text with one value set; the line is changed, or a line or a table is added. */
export function set(text, path, raw) {
  const doc = parse(text);
  const { lines } = doc;
  const entry = find(doc, path);
  if (entry) {
    const before = lines[entry.line].slice(0, entry.start);
    const after = lines[entry.endLine].slice(entry.end);
    lines.splice(entry.line, entry.endLine - entry.line + 1, before + raw + after);
    return lines.join("\n");
  }
  const cut = path.lastIndexOf(".");
  const section = cut < 0 ? "" : path.slice(0, cut);
  const key = cut < 0 ? path : path.slice(cut + 1);
  const table = doc.tables.find((table) => table.path === section);
  // A section may be written with dotted keys and have no table of its own.
  const beside = doc.entries.findLast((entry) => section && entry.path.startsWith(`${section}.`) && entry.key.includes("."));
  if (table && (section || table.entries.length)) {
    const at = table.entries.length ? table.entries.at(-1).endLine + 1 : table.line + 1;
    lines.splice(at, 0, `${key} = ${raw}`);
  } else if (beside && beside.key === beside.path) {
    lines.splice(beside.endLine + 1, 0, `${path} = ${raw}`);
  } else if (!section) {
    // After the comment at the top, before everything else.
    let at = 0;
    while (at < lines.length && lines[at].startsWith("#")) at++;
    if (at > 0) lines.splice(at++, 0, "");
    lines.splice(at, 0, `${key} = ${raw}`, ...(lines[at]?.trim() ? [""] : []));
  } else {
    const first = doc.tables.find((table) => table.array);
    let at = first ? withComment(lines, first.line) : lines.length;
    if (!first) while (at > 0 && lines[at - 1].trim() === "") at--;
    lines.splice(
      at,
      first ? 0 : lines.length - at,
      ...(at > 0 && lines[at - 1].trim() ? [""] : []),
      `[${section}]`,
      `${key} = ${raw}`,
      "",
    );
  }
  return lines.join("\n");
}

/** The text without one value. */
export function unset(text, path) {
  const doc = parse(text);
  const entry = find(doc, path);
  if (!entry) return text;
  doc.lines.splice(entry.line, entry.endLine - entry.line + 1);
  return doc.lines.join("\n");
}

/** The text with one table more of an array, at the end: pairs of key and written value. */
export function addTable(text, name, pairs) {
  const body = text.replace(/\s*$/, "");
  return `${body}${body ? "\n\n" : ""}[[${name}]]\n${pairs.map(([key, raw]) => `${key} = ${raw}\n`).join("")}`;
}

/** The text without a table, with the comment above it. */
export function removeTable(text, path) {
  const doc = parse(text);
  const table = doc.tables.find((table) => table.path === path && table.line >= 0);
  if (!table) return text;
  const from = withComment(doc.lines, table.line);
  const to = table.end + 1 < doc.lines.length ? withComment(doc.lines, table.end + 1) : doc.lines.length;
  doc.lines.splice(from, Math.max(to, table.line + 1) - from);
  return doc.lines.join("\n");
}

// Where the comment right above a line begins.
function withComment(lines, line) {
  while (line > 0 && lines[line - 1].startsWith("#")) line--;
  return line;
}

/** What an experiment file changes at quick scale, as after --set, and the presets of its variants. */
export function quickOf(experiment) {
  const doc = parse(experiment);
  const list = (raw) => [...(raw ?? "").matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([text]) => JSON.parse(text));
  const presets = doc.tables
    .filter((table) => table.name === "variant")
    .map((table) => plain(table.entries.find((entry) => entry.key === "preset")));
  return { sets: list(find(doc, "scale.quick.set")?.raw), presets: [...new Set(presets.filter(Boolean))] };
}

/** The text after changes such as "load.0.duration=2ms" and "-scheme.hpcc". */
export function change(text, sets) {
  return sets.reduce((now, one) => {
    const [, away, path, value] = /^(-?)([^=]+)=?([^]*)$/.exec(one) ?? [];
    if (!path) return now;
    return away ? unset(now, path.trim()) : set(now, path.trim(), written(value, true));
  }, text);
}

/** A line cut into pieces for colouring: [class, text]. `inside` is the quote of a string that began on a line before. */
export function pieces(line, inside = "") {
  const out = [];
  let at = 0;
  const take = (kind, to) => {
    if (to > at) out.push([kind, line.slice(at, to)]);
    at = to;
  };
  const closing = (quote, from) => {
    const end = line.indexOf(quote, from);
    return end < 0 ? null : end + quote.length;
  };
  if (inside) {
    const end = closing(inside, 0);
    if (end === null) return { out: [["text", line]], inside };
    take("text", end);
  } else {
    const head = /^\s*\[\[?[^\]]*\]\]?/.exec(line);
    const key = /^\s*[A-Za-z0-9_."'-]+(?=\s*=)/.exec(line);
    if (head && !line.includes("=")) take("head", head[0].length);
    else if (key) take("key", key[0].length);
  }
  const token = /#.*|"""|'''|"(?:[^"\\]|\\.)*"?|'[^']*'?|\b(?:true|false)\b|[+-]?\b\d[\d_.]*(?:[eE][+-]?\d+)?\b/g;
  let match;
  token.lastIndex = at;
  while ((match = token.exec(line))) {
    take("", match.index);
    if (match[0] === '"""' || match[0] === "'''") {
      const end = closing(match[0], match.index + 3);
      if (end === null) {
        take("text", line.length);
        return { out, inside: match[0] };
      }
      take("text", end);
      token.lastIndex = end;
    } else {
      const kind = match[0][0] === "#" ? "note" : match[0][0] === '"' || match[0][0] === "'" ? "text" : "value";
      take(kind, match.index + match[0].length);
    }
  }
  take("", line.length);
  return { out, inside: "" };
}
