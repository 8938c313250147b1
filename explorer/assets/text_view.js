// A scrolling text of any length: only the rows that can be seen are in the page.

const ROW_HEIGHT = 19;
const MORE_ROWS = 12;
const PRINTED_ROWS = 600;
const LEAST_NOTE = 60;

/** What stands out in a text, by the role of its pane: at most a comment, a keyword, a kind and a number. */
const TOKENS = {
  nest: /(?<quiet>#.*$)|(?<keyword>\b(?:for|in|if|else|while|def|let|assert)\b)|(?<kind>\b(?:vectorized|parallel|unrolled)\b)|(?<number>\b\d[\w.]*\b)/g,
  steps: /(?<quiet>#.*$)|(?<keyword>\.\w+(?=\())|(?<kind>"[^"]*")|(?<number>\b\d[\w.]*\b)/g,
  llvm: /(?<quiet>;.*$|, align \d+|![\w.]*|\b(?:nsw|inbounds|nuw|noalias|nocapture)\b)|(?<keyword>\b(?:define|ret|br|phi|load|store|call|declare)\b)|(?<kind><\d+ x \w+>)|(?<number>(?<=\s)-?\d[\w.+-]*)/g,
  assembly: /(?<quiet>\s#.*$|^ +\..*$)|(?<keyword>^ +[a-z]\w*)|(?<kind>%[xyzk](?:mm)?\d+\b)|(?<number>\$-?\w+)/g,
};
const SIGN_CLASS = { " ": "same", "+": "added", "−": "removed", "⋯": "fold" };
const tokensOf = (role) => TOKENS[{ compute: "nest", pass: "nest" }[role] ?? role];

/** A line as it is shown: nests indented by two instead of four, operands of instructions below each other. */
function display(text, role) {
  if (role === "assembly") {
    return text.replace(/^\t([^\t]+)\t/, (_, name) => `    ${name.padEnd(12)} `).replaceAll("\t", "    ");
  }
  return tokensOf(role) === TOKENS.nest ? text.replace(/^ +/, (indent) => indent.slice(indent.length / 2)) : text;
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Replaces what is in an element; the button there that has the focus hands it to the one that takes its place. */
function replaceButtons(root, children) {
  const at = [...root.querySelectorAll("button")].indexOf(document.activeElement);
  root.replaceChildren(...children);
  root.querySelectorAll("button")[at]?.focus({ preventScroll: true });
}

/** Puts a text into an element, its tokens in spans. */
function highlight(target, text, role) {
  const tokens = tokensOf(role);
  let end = 0;
  for (const match of text.matchAll(tokens)) {
    const [kind, token] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    target.append(text.slice(end, match.index), element("span", `t-${kind}`, token));
    end = match.index + token.length;
  }
  target.append(text.slice(end));
}

class TextView {
  /** `on.hover` and `on.pick` are called with the `id` of a pane and a `line` of it; hover also with null. */
  constructor(on) {
    this.on = on;
    this.rows = [];
    this.marks = { own: new Set(), inner: new Set(), pinned: 0 };
    this.at = 0; // the mark that was gone to last
    this.root = element("div", "text");
    this.scroller = element("div", "scroller");
    this.sheet = element("div", "sheet");
    this.ruler = element("div", "ruler");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "listbox");
    this.scroller.append(this.sheet);
    this.root.append(this.scroller, this.ruler);
    this.scroller.addEventListener("scroll", () => this.render(), { passive: true });
    this.scroller.addEventListener("pointermove", (event) => this.hover(this.rowAt(event)));
    this.scroller.addEventListener("pointerleave", () => on.hover(null));
    this.scroller.addEventListener("click", (event) => this.pick(this.rowAt(event)));
    new ResizeObserver(() => this.render()).observe(this.scroller);
  }

  get isShown() {
    return this.root.offsetWidth > 0;
  }

  show(pane, rows) {
    this.pane = pane;
    this.rows = rows;
    this.at = 0;
    this.rowOf = new Map(rows.map((row, index) => [row.line, index]));
    const longest = rows.reduce((most, row) => Math.max(most, this.width(row)), 0);
    this.scroller.setAttribute("aria-label", pane.title);
    this.sheet.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.root.style.setProperty("--rows", rows.length);
    this.sheet.style.minWidth = `${longest}ch`;
    this.scroller.scrollTo(0, 0);
    this.render();
  }

  text(row) {
    if (row.sign === "⋯") return row.text;
    return display(row.line ? this.pane.lines[row.line - 1] : row.text, this.pane.role);
  }

  /** How many characters wide a row is, what stands before its text included. */
  width(row) {
    return this.text(row).length + 9;
  }

  /** Marks lines, and shows where they are along the ruler. */
  mark(marks) {
    this.marks = marks;
    for (const made of this.sheet.children) this.decorate(made);
    this.drawRuler();
  }

  /** Makes the rows of the page those that can be seen; `all` of them, up to a limit, for printing. */
  render(all = false) {
    if (!this.pane) return;
    this.all = all;
    const { scrollTop, clientHeight } = this.scroller;
    const first = all ? 0 : Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - MORE_ROWS);
    const seen = Math.ceil(clientHeight / ROW_HEIGHT) + 2 * MORE_ROWS;
    const last = Math.min(this.rows.length, all ? PRINTED_ROWS : first + seen);
    const shown = [];
    for (let index = first; index < last; index++) shown.push(this.makeRow(index));
    const left = this.rows.length - last;
    if (all && left > 0) shown.push(element("div", "cut", `… ${left} more lines, which are not printed`));
    this.sheet.replaceChildren(...shown);
  }

  makeRow(index) {
    const row = this.rows[index];
    const made = element("div", `row ${SIGN_CLASS[row.sign]}`);
    made.style.top = `${index * ROW_HEIGHT}px`;
    made.line = row.line;
    made.setAttribute("role", "option");
    made.append(element("span", "number", row.line || ""), element("span", "sign", row.sign));
    const code = element("code");
    if (row.sign === "⋯") code.textContent = this.text(row);
    else highlight(code, this.text(row), this.pane.role);
    made.append(code);
    const note = this.pane.notes.get(row.line);
    if (note?.brief) made.append(...this.makeNote(note, row));
    this.decorate(made);
    return made;
  }

  /** The verdict on a loop, as wide as there is room beside its line; without room "!" where it costs, else nothing. */
  makeNote(note, row) {
    const costly = note.costs.length > 0;
    const room = this.scroller.clientWidth - this.width(row) * this.characterWidth() - 20;
    const fits = this.all || room >= LEAST_NOTE;
    if (!fits && !costly) return [];
    const made = element("span", costly ? "note costly" : "note", fits ? note.brief : "!");
    made.style.maxWidth = `${Math.max(LEAST_NOTE, room)}px`;
    made.title = [note.text, ...note.costs].join("\n");
    return [made];
  }

  characterWidth() {
    if (!this.measured) {
      const probe = element("span", "probe", "0".repeat(100));
      this.sheet.append(probe);
      this.measured = probe.getBoundingClientRect().width / 100;
      probe.remove();
    }
    return this.measured;
  }

  decorate(made) {
    const { own, inner, pinned } = this.marks;
    const isPinned = made.line > 0 && made.line === pinned;
    made.classList.toggle("own", own.has(made.line));
    made.classList.toggle("inner", inner.has(made.line) && !own.has(made.line));
    made.classList.toggle("pinned", isPinned);
    made.classList.toggle("at", made.line > 0 && made.line === this.at);
    made.setAttribute("aria-selected", isPinned);
  }

  drawRuler() {
    this.ruler.hidden = this.rows.length * ROW_HEIGHT <= this.scroller.clientHeight;
    const ticks = [];
    const place = (kind, lines) => {
      let from = -2;
      let tick = null;
      for (const index of [...lines].map((line) => this.rowOf.get(line)).sort((a, b) => a - b)) {
        if (index === undefined) continue;
        if (index !== from + 1) {
          tick = element("i", kind);
          tick.start = index;
          ticks.push(tick);
        }
        from = tick.end = index;
      }
    };
    place("inner", this.marks.inner);
    place("own", this.marks.own);
    for (const tick of ticks) {
      tick.style.top = `${(100 * tick.start) / this.rows.length}%`;
      tick.style.height = `max(2px, ${(100 * (tick.end - tick.start + 1)) / this.rows.length}%)`;
    }
    this.ruler.replaceChildren(...ticks);
  }

  /** The index of the row at a pointer, by its place: rows are made anew while the pointer stays. */
  rowAt(event) {
    return Math.floor((event.clientY - this.sheet.getBoundingClientRect().top) / ROW_HEIGHT);
  }

  hover(index) {
    const line = this.rows[index]?.line ?? 0;
    this.on.hover(line ? { id: this.pane.id, line } : null);
  }

  pick(index) {
    const row = this.rows[index];
    if (!row || !getSelection().isCollapsed) return; // a text is being selected
    if (row.sign === "⋯") this.unfold(index);
    else if (row.line) this.on.pick({ id: this.pane.id, line: row.line });
  }

  /** Shows the lines that a row stands for. */
  unfold(index) {
    const first = this.rows[index - 1].line + 1;
    const last = this.rows[index + 1].line - 1;
    const lines = Array.from({ length: last - first + 1 }, (_, offset) => ({ line: first + offset, sign: " " }));
    const { scrollTop } = this.scroller;
    this.show(this.pane, this.rows.toSpliced(index, 1, ...lines));
    this.scroller.scrollTop = scrollTop;
    this.mark(this.marks);
  }

  /** Outlines a line, and scrolls to it. */
  goTo(line) {
    this.at = line;
    for (const made of this.sheet.children) this.decorate(made);
    this.reveal([line]);
  }

  /** Scrolls to the first of the lines, unless one of them can be seen. */
  reveal(lines) {
    const indices = [...lines].map((line) => this.rowOf.get(line)).filter((index) => index !== undefined);
    const { scrollTop, clientHeight } = this.scroller;
    const visible = (index) => index * ROW_HEIGHT >= scrollTop && (index + 1) * ROW_HEIGHT <= scrollTop + clientHeight;
    if (!indices.length || indices.some(visible)) return;
    const first = indices.reduce((least, index) => Math.min(least, index));
    this.scroller.scrollTop = Math.max(0, first * ROW_HEIGHT - clientHeight / 3);
  }

  /** The line `by` rows away from a line, over rows that have none; the first one in sight if it is not shown. */
  lineBeside(line, by) {
    const top = Math.ceil(this.scroller.scrollTop / ROW_HEIGHT);
    let index = this.rowOf.has(line) && line ? this.rowOf.get(line) + by : top;
    while (this.rows[index] && !this.rows[index].line) index += by;
    return this.rows[index]?.line ?? line;
  }

  /** The nearest marked line below (`by` 1) or above (-1) a line; 0 where there is none. */
  markedBeside(line, by) {
    const lines = [...this.marks.own, ...this.marks.inner].filter((marked) => (marked - line) * by > 0);
    return lines.length ? lines.reduce((best, other) => ((other - best) * by < 0 ? other : best)) : 0;
  }
}
