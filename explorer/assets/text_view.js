// A scrolling text of any length: only the rows that can be seen are in the page.

const ROW_HEIGHT = 19;
const MORE_ROWS = 12;
const PRINTED_ROWS = 600;
const MARGIN = 11; // how many characters wide is what stands before and behind the text of a row
const LEAST_COLUMNS = 24;
const LEAST_NOTE = 60;

const SIGN_CLASS = { " ": "same", "+": "added", "−": "removed", "⋯": "fold" };

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

class TextView {
  /** `on.hover` and `on.pick` are called with the `id` of a pane and a `line` of it, hover also with null; `on.copy`
   * copies a link to the pinned line. */
  constructor(on) {
    this.on = on;
    this.rows = [];
    this.marks = { own: new Set(), inner: new Set(), pinned: 0 };
    this.at = 0; // the line that was gone to last
    this.wraps = false;
    this.finder = null;
    this.matches = [];
    this.all = false;
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
    new ResizeObserver(() => this.resize()).observe(this.scroller);
  }

  get isShown() {
    return this.root.offsetWidth > 0;
  }

  show(pane, rows) {
    this.pane = pane;
    this.at = 0;
    this.scroller.setAttribute("aria-label", pane.title);
    this.scroller.scrollTo(0, 0);
    this.setRows(rows);
    this.find(this.finder);
  }

  /** Shows no text, and takes no room. */
  hide() {
    Object.assign(this, { pane: null, rows: [], matches: [] });
  }

  setRows(rows) {
    this.rows = rows;
    this.rowOf = new Map(rows.map((row, index) => [row.line, index]));
    this.texts = rows.map((row) => this.text(row));
    this.longest = this.texts.reduce((most, text) => Math.max(most, text.length), 0);
    this.search();
    this.arrange();
  }

  /** Puts the rows in their places, long ones wrapped if that is wanted; the first one in sight stays. */
  arrange() {
    const first = this.layout?.rowAt(this.topLine) ?? 0;
    this.layout = new RowLayout(this.texts, this.columns());
    this.sheet.style.height = `${this.layout.lines * ROW_HEIGHT}px`;
    this.sheet.style.minWidth = this.wraps ? "" : `${this.longest + MARGIN}ch`;
    this.root.classList.toggle("wraps", this.wraps);
    this.root.style.setProperty("--rows", this.layout.lines);
    this.scroller.scrollTop = (this.layout.tops[first] ?? 0) * ROW_HEIGHT;
    this.render();
    this.drawRuler();
  }

  /** How many characters of a text fit beside each other; 0 where texts are not wrapped, or cannot be seen. */
  columns() {
    const room = Math.floor(this.scroller.clientWidth / this.characterWidth()) - MARGIN;
    return this.wraps && this.isShown ? Math.max(LEAST_COLUMNS, room) : 0;
  }

  wrap(wraps) {
    if (wraps === this.wraps) return;
    this.wraps = wraps;
    if (this.pane) this.arrange();
  }

  resize() {
    if (!this.pane) return;
    if (this.columns() === this.layout.columns) this.render();
    else this.arrange();
  }

  /** Which line is at the top, counted as in the layout. */
  get topLine() {
    return Math.floor(this.scroller.scrollTop / ROW_HEIGHT);
  }

  text(row) {
    if (row.sign === "⋯") return row.text;
    return display(row.line ? this.pane.lines[row.line - 1] : row.text, this.pane.role);
  }

  /** Marks lines, and shows where they are along the ruler. */
  mark(marks) {
    this.marks = marks;
    for (const made of this.sheet.children) this.decorate(made);
    this.drawRuler();
  }

  /** Makes the rows of the page those that can be seen; `all` of them, up to a limit, until printing has ended. */
  render(all = this.all) {
    if (!this.pane) return;
    this.all = all;
    const { layout, scroller } = this;
    const bottom = Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW_HEIGHT);
    const first = all ? 0 : layout.rowAt(Math.max(0, this.topLine - MORE_ROWS));
    const last = Math.min(this.rows.length, all ? PRINTED_ROWS : layout.rowAt(bottom + MORE_ROWS) + 1);
    const shown = [];
    for (let index = first; index < last; index++) shown.push(this.makeRow(index));
    const left = this.rows.length - last;
    if (all && left > 0) shown.push(element("div", "cut", `… ${left} more lines, which are not printed`));
    this.sheet.replaceChildren(...shown);
  }

  makeRow(index) {
    const row = this.rows[index];
    const loop = this.loopAt(index);
    const made = element("div", `row ${SIGN_CLASS[row.sign]}${loop < 0 ? "" : ` l${loop % LINK_COLOURS}`}`);
    made.style.top = `${this.layout.tops[index] * ROW_HEIGHT}px`;
    made.style.height = `${this.layout.heightOf(index) * ROW_HEIGHT}px`;
    made.line = row.line;
    made.setAttribute("role", "option");
    made.append(element("span", "number", row.line || ""), this.makeLink(index, loop), element("span", "sign", row.sign));
    const code = element("code");
    const text = this.texts[index];
    const matches = this.matchesOf.get(index) ?? [];
    if (row.sign === "⋯") code.textContent = text;
    else highlight(code, text, this.pane.role, matches, this.current);
    if (this.layout.heightOf(index) > 1) this.wrapCode(code, text);
    made.append(code);
    const note = this.pane.notes.get(row.line);
    if (note?.brief) made.append(...this.makeNote(note, text));
    this.decorate(made);
    return made;
  }

  wrapCode(code, text) {
    const indent = wrapIndent(text, this.layout.columns);
    code.style.width = `calc(${this.layout.columns}ch + 2px)`; // lengths are rounded, so that the last letter may not fit
    code.style.paddingLeft = `${indent}ch`;
    code.style.textIndent = `${-indent}ch`;
  }

  /** The number of the loop that a row belongs to, -1 for none. */
  loopAt(index) {
    return this.loops?.[(this.rows[index]?.line ?? 0) - 1] ?? -1;
  }

  /** The colour of a row's loop; its letter stands in the first row of several. */
  makeLink(index, loop) {
    if (loop < 0) return element("span", "link");
    const made = element("span", "link", this.loopAt(index - 1) === loop ? "" : loopLetter(loop));
    made.title = this.headers[loop].trim().replace(/:$/, "");
    return made;
  }

  /** The verdict on a loop, as wide as there is room beside its line; without room "!" where it costs, else nothing. */
  makeNote(note, text) {
    const costly = note.costs.length > 0;
    const room = this.scroller.clientWidth - (text.length + MARGIN) * this.characterWidth() - 20;
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
    const button = made.querySelector(".link-button");
    if (isPinned && !button) made.append(this.makeLinkButton());
    if (!isPinned) button?.remove();
  }

  makeLinkButton() {
    const button = element("button", "link-button", "copy link");
    button.type = "button";
    button.tabIndex = -1; // the key does the same
    button.title = "copy a link that opens the page at this line (y)";
    button.addEventListener("click", (event) => {
      event.stopPropagation(); // which would free the line
      this.on.copy();
    });
    return button;
  }

  drawRuler() {
    const { tops, lines } = this.layout;
    this.ruler.hidden = lines * ROW_HEIGHT <= this.scroller.clientHeight;
    const ticks = [];
    const place = (kind, indices) => {
      let from = -2;
      let tick = null;
      for (const index of indices) {
        if (index !== from + 1) {
          tick = element("i", kind);
          tick.start = index;
          ticks.push(tick);
        }
        from = tick.end = index;
      }
    };
    place("inner", this.indicesOf(this.marks.inner));
    place("own", this.indicesOf(this.marks.own));
    place("found", this.matchesOf.keys());
    for (const tick of ticks) {
      tick.style.top = `${(100 * tops[tick.start]) / lines}%`;
      tick.style.height = `max(2px, ${(100 * (tops[tick.end + 1] - tops[tick.start])) / lines}%)`;
    }
    this.ruler.replaceChildren(...ticks);
  }

  /** The index of the row at a pointer, by its place: rows are made anew while the pointer stays. */
  rowAt(event) {
    const line = Math.floor((event.clientY - this.sheet.getBoundingClientRect().top) / ROW_HEIGHT);
    return line < this.layout.lines ? this.layout.rowAt(line) : -1;
  }

  /** The indices of the rows of lines, in order; of those that have a row. */
  indicesOf(lines) {
    const indices = [...lines].map((line) => this.rowOf.get(line)).filter((index) => index !== undefined);
    return indices.sort((a, b) => a - b);
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
    this.setRows(this.rows.toSpliced(index, 1, ...this.folded(index)));
  }

  /** The rows that a row stands for. */
  folded(index) {
    const first = this.rows[index - 1].line + 1;
    const last = this.rows[index + 1].line - 1;
    return Array.from({ length: last - first + 1 }, (_, offset) => ({ line: first + offset, sign: " " }));
  }

  /** Finds what a regular expression matches, or nothing without one; what is folded and has matches is unfolded. */
  find(finder) {
    this.finder = finder;
    if (!this.pane) return;
    const isFound = (row) => this.text(row).search(finder) >= 0;
    const isHidden = (row, at) => row.sign === "⋯" && this.folded(at).some(isFound);
    if (finder && this.rows.some(isHidden)) {
      this.setRows(this.rows.flatMap((row, at) => (isHidden(row, at) ? this.folded(at) : [row])));
    } else {
      this.search();
      this.render();
      this.drawRuler();
    }
  }

  search() {
    this.current = null;
    this.matches = [];
    this.matchesOf = new Map();
    if (this.finder) this.texts.forEach((text, index) => this.findIn(text, index));
  }

  findIn(text, index) {
    if (this.rows[index].sign === "⋯") return;
    const found = [];
    for (const { 0: part, index: start } of text.matchAll(this.finder)) {
      if (part) found.push({ index, start, end: start + part.length });
    }
    if (found.length) this.matchesOf.set(index, found);
    this.matches.push(...found);
  }

  /** Goes to a match: it is outlined, and scrolled to. */
  goToMatch(match) {
    this.current = match;
    this.at = this.rows[match.index].line;
    this.revealRows([match.index]);
    this.render();
    const mark = this.sheet.querySelector("mark.current");
    if (!this.wraps) mark?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Outlines no line any more. */
  leaveMatch() {
    this.current = null;
    this.at = 0;
    this.render();
  }

  /** Outlines a line, and scrolls to it. */
  goTo(line) {
    this.at = line;
    for (const made of this.sheet.children) this.decorate(made);
    this.reveal([line]);
  }

  /** Scrolls to the first of the lines, unless one of them can be seen. */
  reveal(lines) {
    this.revealRows(this.indicesOf(lines));
  }

  revealRows(indices) {
    const { tops } = this.layout;
    const { scrollTop, clientHeight } = this.scroller;
    const bottom = scrollTop + clientHeight;
    const visible = (index) => tops[index] * ROW_HEIGHT >= scrollTop && tops[index + 1] * ROW_HEIGHT <= bottom;
    if (!indices.length || indices.some(visible)) return;
    this.scroller.scrollTop = Math.max(0, tops[indices[0]] * ROW_HEIGHT - clientHeight / 3);
  }

  /** The line `by` rows away from a line, over rows that have none; the first one in sight if it is not shown. */
  lineBeside(line, by) {
    const top = this.layout.rowAt(Math.ceil(this.scroller.scrollTop / ROW_HEIGHT));
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
