// The panes of a document, and what a line of one of them has to do with the lines of the others.
//
// Panes form a tree: each line knows the lines of the parent pane that it comes from. The computes are the root; below
// them is the nest without any schedule; below that the nests of all schedules; below the last nest of a schedule its
// steps and passes; below the last pass LLVM IR and assembly.

/** All panes by id. Lines count from 1, as in `origins`: of each line one number (0: none) or a list of them. */
function readPanes(data) {
  const read = (pane) => {
    const notes = new Map(pane.notes.map((note) => [note.line, note]));
    return { ...pane, notes, lines: pane.text.split("\n") };
  };
  return new Map(data.panes.map((pane) => [pane.id, read(pane)]));
}

/** The lines of the parent that a line comes from. */
function originsOf(pane, line) {
  const origins = pane.origins[line - 1] ?? 0;
  return Array.isArray(origins) ? origins : origins ? [origins] : [];
}

const isNest = (pane) => ["compute", "nest", "pass"].includes(pane.role);

/** The lines that stand inside a line of a nest: those below it that are indented deeper. */
function bodyOf(pane, line) {
  const depth = (text) => text.search(/\S/);
  const own = depth(pane.lines[line - 1]);
  const inside = [];
  if (!isNest(pane) || own < 0) return inside;
  for (let below = line + 1; below <= pane.lines.length && depth(pane.lines[below - 1]) > own; below++) {
    inside.push(below);
  }
  return inside;
}

/** A function from a pane's id to the set of its lines that come from `lines` of pane `id`, or that these come from. */
function spread(panes, id, lines) {
  const found = new Map([[id, new Set(lines)]]);
  for (let pane = panes.get(id); pane.parent; pane = panes.get(pane.parent)) {
    const above = new Set();
    for (const line of found.get(pane.id)) originsOf(pane, line).forEach((origin) => above.add(origin));
    found.set(pane.parent, above);
  }
  return function marked(wanted) {
    if (!found.has(wanted)) {
      const pane = panes.get(wanted);
      const above = pane.parent ? marked(pane.parent) : new Set();
      const below = new Set();
      if (above.size) {
        for (let line = 1; line <= pane.lines.length; line++) {
          if (originsOf(pane, line).some((origin) => above.has(origin))) below.add(line);
        }
      }
      found.set(wanted, below);
    }
    return found.get(wanted);
  };
}

/** What a selected line marks: `own(id)`, and for a loop `inner(id)`, the lines that belong to its body. */
function marksOf(panes, selection) {
  const nothing = () => new Set();
  if (!selection) return { own: nothing, inner: nothing };
  const body = bodyOf(panes.get(selection.id), selection.line);
  return {
    own: spread(panes, selection.id, [selection.line]),
    inner: body.length ? spread(panes, selection.id, body) : nothing,
  };
}

/** The rows that show a pane: its lines, or, where `diff`, also what stood there in the pane before it, with long runs
 * of equal lines folded. A row has the `line` of the pane (0: none), a `sign`, and a `text` where there is no line. */
function rowsOf(panes, pane, diff) {
  if (!diff || !pane.previous) return pane.lines.map((_, index) => ({ line: index + 1, sign: " " }));
  const before = panes.get(pane.previous).lines;
  const rows = [];
  let next = 1;
  for (const [oldStart, oldEnd, newStart, newEnd] of pane.changes) {
    pushEqual(rows, next, newStart);
    for (let old = oldStart; old < oldEnd; old++) rows.push({ line: 0, sign: "−", text: before[old] });
    for (let line = newStart + 1; line <= newEnd; line++) rows.push({ line, sign: "+" });
    next = newEnd + 1;
  }
  pushEqual(rows, next, pane.lines.length);
  return rows;
}

const CONTEXT = 3;

/** Rows for the equal lines `first` to `last`: all of them where they are few, else some at both ends. */
function pushEqual(rows, first, last) {
  const folded = last - first + 1 - 2 * CONTEXT;
  for (let line = first; line <= last; line++) {
    if (folded > 1 && line === first + CONTEXT) {
      rows.push({ line: 0, sign: "⋯", text: `${folded} unchanged lines` });
      line += folded - 1;
    } else {
      rows.push({ line, sign: " " });
    }
  }
}
