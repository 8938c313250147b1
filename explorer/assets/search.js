// The search: finds a text in all panes that are shown, in the lines that are out of sight too, and goes from match to
// match, from pane to pane.

/** What finds a text: a regular expression, or the text itself, in which spaces stand for any number of spaces. Letters
 * of both cases are alike where the text has none in upper case. Raises `SyntaxError` for what is no expression. */
function finderOf(text, isExpression) {
  const flags = /[A-Z]/.test(isExpression ? text.replace(/\\./g, "") : text) ? "g" : "gi";
  const literal = () => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+");
  return new RegExp(isExpression ? text : literal(), flags);
}

class Search {
  /** `page.views` are the texts that are searched, in order; `page.showMatch(view, match)` goes to a match, and
   * `page.showCounts()` is called when the numbers of matches have changed. */
  constructor(root, page) {
    this.page = page;
    this.root = root;
    this.field = root.querySelector("input");
    this.expression = root.querySelector("#expression-button");
    this.said = root.querySelector("output");
    this.at = null; // the match that was gone to last, and its view
    this.field.addEventListener("input", () => this.run());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.expression.addEventListener("click", () => {
      this.expression.setAttribute("aria-pressed", this.expression.getAttribute("aria-pressed") !== "true");
      this.run();
      this.field.focus();
    });
    root.querySelector("#previous-button").addEventListener("click", () => this.move(-1));
    root.querySelector("#next-button").addEventListener("click", () => this.move(1));
    root.querySelector("#close-button").addEventListener("click", () => this.close());
  }

  get isOpen() {
    return !this.root.hidden;
  }

  open() {
    this.root.hidden = false;
    this.field.select();
    this.field.focus();
    this.run();
  }

  /** Ends the search; the keys go on at the match that was gone to last. */
  close() {
    this.root.hidden = true;
    this.find(null);
    this.at?.view.scroller.focus({ preventScroll: true });
  }

  key(event) {
    const by = { Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) this.move(by);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  /** Finds what the field says, and goes to the first match. */
  run() {
    try {
      const isExpression = this.expression.getAttribute("aria-pressed") === "true";
      this.find(this.field.value ? finderOf(this.field.value, isExpression) : null);
      this.field.removeAttribute("aria-invalid");
      if (this.finder) this.move(1);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.find(null);
      this.field.setAttribute("aria-invalid", true);
      this.said.textContent = "no regular expression";
      this.said.title = error.message;
    }
  }

  find(finder) {
    this.finder = finder;
    this.at = finder ? null : this.at;
    for (const view of this.page.views) view.find(finder);
    this.say();
  }

  /** Finds the same in texts that have come since. */
  refresh() {
    if (!this.finder) return;
    for (const view of this.page.views) if (view.finder !== this.finder) view.find(this.finder);
    if (this.at && this.at.view.matches[this.at.number] !== this.at.match) this.at = null;
    this.say();
  }

  /** All matches in order: those of the first text, then those of the next. */
  get all() {
    return this.page.views.flatMap((view) => view.matches.map((match, number) => ({ view, match, number })));
  }

  /** Goes to the next match (`by` 1) or the last one (-1): from that gone to before, or else from the text in use. */
  move(by) {
    const { all } = this;
    if (!all.length) return;
    const here = this.at ? all.findIndex(({ match }) => match === this.at.match) : -1;
    const start = Math.max(0, all.findIndex(({ view }) => view === this.page.focused));
    this.at = all[here < 0 ? start : around(here + by, all.length)];
    this.page.showMatch(this.at.view, this.at.match);
    this.say();
  }

  say() {
    const count = this.page.views.reduce((sum, view) => sum + view.matches.length, 0);
    const before = this.page.views.slice(0, this.page.views.indexOf(this.at?.view));
    const place = this.at ? before.reduce((sum, view) => sum + view.matches.length, this.at.number + 1) : 0;
    this.said.title = "";
    this.said.textContent = !this.finder ? "" : count ? `${place || "–"} of ${count}` : "nothing found";
    this.page.showCounts();
  }
}
