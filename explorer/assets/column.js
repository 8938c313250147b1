// A column of the page: a title, choices of what it shows, one or more texts, and a line or two about what is marked.

class Column {
  /** `views` is the number of texts that stand below each other. */
  constructor(title, views, on) {
    this.name = title;
    this.root = element("section", "column");
    this.title = element("h2", "", title);
    this.count = element("span", "count");
    this.found = element("span", "count found");
    this.choices = element("div", "choices");
    this.detail = element("div", "detail");
    this.views = Array.from({ length: views }, () => new TextView(on));
    const head = element("div", "head");
    head.append(this.title, this.count, this.found, this.choices);
    this.root.setAttribute("aria-label", title);
    this.root.append(head, ...this.views.map((view) => view.root), this.detail);
  }

  /** Buttons for what else the column can show: {text, title, chosen, dim, pick}. */
  choose(choices) {
    const buttons = choices.map(({ text, title = "", chosen = false, dim = false, pick }) => {
      const button = element("button", dim ? "dim" : "", text);
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-pressed", chosen);
      button.addEventListener("click", pick);
      return button;
    });
    replaceButtons(this.choices, buttons);
  }

  /** Marks the lines of all texts; `active` is the selection that the marks are of, `pinned` the one that stays. */
  mark(marks, active, pinned) {
    let total = 0;
    for (const view of this.views) {
      if (!view.pane) continue;
      const { id } = view.pane;
      view.mark({ own: marks.own(id), inner: marks.inner(id), pinned: pinned?.id === id ? pinned.line : 0 });
      total += view.marks.own.union(view.marks.inner).size;
    }
    this.count.textContent = total ? `${total} marked` : "";
    this.explain(active);
  }

  /** Says how many matches of the search are in the column, and gives their number. */
  countFound() {
    const total = this.views.reduce((sum, view) => sum + view.matches.length, 0);
    this.found.textContent = total ? `${total} found` : "";
    return total;
  }

  /** Says all of the verdict on the marked loop, where it is one of this column's. */
  explain(active) {
    const view = this.views.find((candidate) => candidate.pane && candidate.pane.notes.size);
    const lines = view ? [...view.marks.own].filter((line) => view.pane.notes.has(line)) : [];
    const notes = active ? lines.map((line) => view.pane.notes.get(line)) : [];
    this.detail.replaceChildren(...notes.slice(0, 3).map(noteBox));
  }
}

function noteBox(note) {
  const box = element("div", "verdict");
  box.append(element("strong", "", note.loop), element("p", "", note.text));
  for (const cost of note.costs) box.append(element("p", "costly", cost));
  if (note.code) box.append(element("p", "quiet", note.code));
  return box;
}

/** Lets the border of a column be moved, by pointer or by the arrow keys. */
function makeResizer(column) {
  const grip = element("div", "grip");
  const resize = (width) => {
    column.root.style.flex = `0 0 ${Math.max(140, width)}px`;
  };
  grip.tabIndex = 0;
  grip.setAttribute("role", "separator");
  grip.setAttribute("aria-orientation", "vertical");
  grip.setAttribute("aria-label", "width of the column");
  grip.addEventListener("pointerdown", (event) => {
    grip.setPointerCapture(event.pointerId);
    const start = column.root.getBoundingClientRect().width - event.clientX;
    grip.onpointermove = (move) => resize(start + move.clientX);
    grip.onpointerup = () => (grip.onpointermove = null);
  });
  grip.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -20, ArrowRight: 20 }[event.key];
    if (!by) return;
    resize(column.root.getBoundingClientRect().width + by);
    event.preventDefault();
    event.stopPropagation();
  });
  grip.addEventListener("dblclick", () => (column.root.style.flex = ""));
  return grip;
}
