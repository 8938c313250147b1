// The page: what is chosen, the columns that show it, keys, and the part of the address that keeps it all.

const KEYS = [
  ["click", "pin a line"],
  ["↑ ↓", "line"],
  ["← →", "pane"],
  ["n p", "next mark"],
  ["[ ]", "schedule"],
  ["s S", "step"],
  ["f F", "pass"],
  ["d", "difference"],
  ["i", "LLVM IR"],
  ["c", "side by side"],
  ["/", "search"],
  ["w", "wrap"],
  ["y", "link"],
  ["o", "times"],
  ["t", "theme"],
  ["esc", "clear"],
];
const AMONG_SCHEDULES = ["[ ]", "c"]; // keys that do nothing where there is but one

class Explorer {
  constructor(data) {
    this.data = data;
    this.panes = readPanes(data);
    this.hovered = null;
    this.columns = [];
    this.wraps = recall("wrap") === "1";
    this.on = {
      hover: (selection) => this.hover(selection),
      pick: (selection) => this.pick(selection),
      copy: () => this.copyLink(),
    };
    this.search = new Search(document.querySelector("#search"), this);
    this.state = readAddress(data, this.panes, location.hash.slice(1));
    this.showHead();
    this.listen();
    this.build();
  }

  writeAddress() {
    this.address = addressOf(this.data, this.panes, this.state);
    keepAddress(this.address);
  }

  /** Changes what is chosen, and makes the columns anew. */
  set(changes) {
    if ("schedule" in changes) Object.assign(this.state, { step: 0, pass: -1, id: "", line: 0 });
    Object.assign(this.state, changes);
    if ("id" in changes) this.forgetPlaces();
    this.build();
  }

  get schedule() {
    return this.data.schedules[this.state.schedule];
  }

  get pinned() {
    return this.state.id ? { id: this.state.id, line: this.state.line } : null;
  }

  // The page.

  showHead() {
    document.querySelector("h1").textContent = this.data.title;
    document.querySelector("#subtitle").textContent = this.data.subtitle;
    const several = this.data.schedules.length > 1;
    for (const [key, meaning] of KEYS.filter(([key]) => several || !AMONG_SCHEDULES.includes(key))) {
      const entry = element("span");
      entry.append(...key.split(" ").map((name) => element("kbd", "", name)), ` ${meaning}`);
      document.querySelector("#keys").append(entry);
    }
  }

  build() {
    const { state, data } = this;
    document.documentElement.dataset.theme = state.theme;
    document.body.classList.toggle("side-by-side", Boolean(state.stage));
    showOverview(document.querySelector("#overview"), data, state.schedule, (schedule) => this.set({ schedule }));
    document.querySelector("#overview").hidden = !state.overview;
    document.querySelector("#overview-button").setAttribute("aria-pressed", Boolean(state.overview));
    document.querySelector("#compare-button").setAttribute("aria-pressed", Boolean(state.stage));
    document.querySelector("#compare-button").hidden = data.schedules.length < 2;
    document.querySelector("#wrap-button").setAttribute("aria-pressed", this.wraps);
    this.loops = loopsOf(this.panes, this.schedule);
    if (state.stage) this.buildSideBySide();
    else this.buildStages();
    this.search.refresh();
    this.mark();
    this.reveal();
    this.writeAddress();
  }

  /** The columns by their titles: those that are there already stay, so that their widths and places do. */
  arrange(titles) {
    if (titles.join("\n") !== this.columns.map((column) => column.name).join("\n")) {
      const views = (title) => (["Schedule", "Assembly"].includes(title) && !this.state.stage ? 2 : 1);
      this.columns = titles.map((title) => new Column(title, views(title), this.on));
      const parts = this.columns.flatMap((column) => [column.root, makeResizer(column)]);
      document.querySelector("#columns").replaceChildren(...parts.slice(0, -1));
    }
    return this.columns;
  }

  /** All stages of the chosen schedule, from left to right. */
  buildStages() {
    const { schedule, state } = this;
    const [steps, nest, passes, llvm, assembly] = this.arrange(COLUMNS);
    steps.views[0].root.classList.add("definition");
    this.show(steps.views[0], schedule.compute);
    this.show(steps.views[1], schedule.steps);
    this.show(nest.views[0], schedule.nests.at(state.step || -1), state.step > 0);
    nest.choose(this.stepChoices());
    const chosen = schedule.passes.at(state.pass);
    this.show(passes.views[0], chosen.pane, state.diff > 0);
    passes.choose(this.passChoices());
    this.show(llvm.views[0], schedule.llvm[state.llvm]);
    llvm.choose(
      schedule.llvm.map((id, number) => ({
        text: this.panes.get(id).title,
        chosen: number === state.llvm,
        pick: () => this.set({ llvm: number }),
      })),
    );
    assembly.views[0].root.classList.add("definition", "model");
    this.show(assembly.views[0], schedule.model);
    this.show(assembly.views[1], schedule.assembly);
    this.showTabs(COLUMNS.map((title, index) => [title, index === state.pane, () => this.set({ pane: index })]));
    this.columns.forEach((column, index) => column.root.classList.toggle("front", index === state.pane));
  }

  /** While a step is shown, a button that leads back. */
  stepChoices() {
    const { step } = this.state;
    const text = `after step ${step} of ${this.schedule.nests.length - 1}  ✕`;
    const back = { text, title: "back to the whole schedule (esc)", chosen: true, pick: () => this.showStep(0) };
    return step ? [back] : [];
  }

  /** A button for each pass that changed something; those that did not are folded into a number. */
  passChoices() {
    const { passes } = this.schedule;
    const chosen = this.state.pass < 0 ? passes.length - 1 : this.state.pass;
    const shown = passes.map((pass, number) => ({ ...pass, number })).filter((pass) => pass.pane);
    const idle = passes.filter((pass) => !pass.pane).map((pass) => pass.name);
    const diff = {
      text: "± difference",
      title: "what the pass changed (d)",
      chosen: this.state.diff > 0,
      pick: () => this.set({ diff: 1 - this.state.diff }),
    };
    const buttons = shown.map(({ name, number, title }) => ({
      text: name,
      title,
      chosen: number === chosen,
      pick: () => this.set({ pass: number, diff: 1 }),
    }));
    const rest = { text: `${idle.length} unchanged`, title: idle.join(", "), dim: true, pick: () => {} };
    return [diff, ...buttons, ...(idle.length ? [rest] : [])];
  }

  /** One stage of all schedules. */
  buildSideBySide() {
    const { state, data } = this;
    const columns = this.arrange(data.schedules.map((schedule) => schedule.name));
    data.schedules.forEach((schedule, number) => {
      const { steps, nests, passes, llvm, model, assembly } = schedule;
      const shown = { steps, nest: nests.at(-1), lowered: passes.at(-1).pane, llvm: llvm[state.llvm], model, assembly };
      this.show(columns[number].views[0], shown[state.stage], false, loopsOf(this.panes, schedule));
      columns[number].title.style.setProperty("--colour", colourOf(number));
      const text = `${schedule.seconds ? `${timeText(schedule.seconds)}, ` : ""}all stages`;
      const pick = () => this.set({ schedule: number, stage: "" });
      columns[number].choose([{ text, title: "all stages of this schedule", pick }]);
    });
    const tabs = Object.entries(STAGES);
    this.showTabs(tabs.map(([stage, title]) => [title, stage === state.stage, () => this.set({ stage })]));
  }

  showTabs(tabs) {
    const buttons = tabs.map(([title, chosen, pick]) => {
      const button = element("button", "", title);
      button.type = "button";
      button.setAttribute("role", "tab");
      button.setAttribute("aria-selected", chosen);
      button.addEventListener("click", pick);
      return button;
    });
    replaceButtons(document.querySelector("#tabs"), buttons);
  }

  /** Shows a pane in a view, unless it is there already; without an id, hides the view. */
  show(view, id, diff = false, loops = this.loops) {
    view.root.hidden = !id;
    view.wrap(this.wraps);
    if (!id) view.hide();
    if (!id || (view.pane?.id === id && view.diff === diff)) return;
    view.diff = diff;
    view.loops = loops(this.panes.get(id));
    view.headers = loops.headers;
    view.show(this.panes.get(id), rowsOf(this.panes, this.panes.get(id), diff));
  }

  // Selections.

  hover(selection) {
    if (selection?.id === this.hovered?.id && selection?.line === this.hovered?.line) return;
    this.hovered = selection;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.mark());
  }

  /** Pins a line, or frees it if it is; of a step, shows what it changed. */
  pick(selection) {
    const again = selection && selection.id === this.state.id && selection.line === this.state.line;
    const { id, line } = again || !selection ? { id: "", line: 0 } : selection;
    this.forgetPlaces();
    Object.assign(this.state, { id, line });
    if (id && !this.state.stage) this.state.pane = COLUMN_OF[this.panes.get(id).role];
    const step = id && id === this.schedule.steps ? this.schedule.step_of[line - 1] : 0;
    if (step && !this.state.stage) this.set({ step });
    this.mark();
    this.reveal();
    this.writeAddress();
  }

  /** Pins a step of the trace, and shows what it changed; 0 is for none. */
  showStep(step) {
    const line = this.schedule.step_of.lastIndexOf(step) + 1;
    this.set(step ? { step, id: this.schedule.steps, line } : { step, id: "", line: 0 });
  }

  clear() {
    this.hovered = null;
    this.set({ id: "", line: 0, step: 0 });
  }

  /** The texts no longer know at which of their marks they are. */
  forgetPlaces() {
    for (const view of this.views) view.at = 0;
  }

  mark() {
    const active = this.hovered ?? this.pinned;
    const marks = marksOf(this.panes, active);
    document.body.classList.toggle("marking", Boolean(active));
    for (const column of this.columns) column.mark(marks, active, this.pinned);
  }

  /** Scrolls all panes to what the pinned line marks in them. */
  reveal() {
    if (!this.pinned) return;
    for (const view of this.views) {
      const isSource = view.pane?.id === this.pinned.id;
      view.reveal(isSource ? [this.pinned.line] : view.marks.own.size ? view.marks.own : view.marks.inner);
    }
  }

  get views() {
    return this.columns.flatMap((column) => column.views).filter((view) => view.pane);
  }

  // The search, lines that are wrapped, links.

  /** Goes to a match of the search, in front of the other columns if there is room for one only. */
  showMatch(view, match) {
    for (const other of this.views) if (other.at && other !== view) other.leaveMatch();
    if (!view.isShown) this.set({ pane: this.columns.findIndex((column) => column.views.includes(view)) });
    view.goToMatch(match);
  }

  /** Says of each column, and on its tab, how often the search finds its text there. */
  showCounts() {
    const tabs = this.state.stage ? [] : document.querySelectorAll("#tabs button");
    this.columns.forEach((column, index) => {
      const count = column.countFound();
      if (tabs[index]) tabs[index].dataset.found = count || "";
    });
  }

  toggleWrap() {
    this.wraps = !this.wraps;
    remember("wrap", this.wraps ? "1" : "0");
    this.build();
  }

  /** Copies the address of the page as it is, which opens at the pinned line. */
  async copyLink() {
    if (!this.pinned) return;
    await copyText(location.href);
    for (const button of document.querySelectorAll(".link-button")) button.textContent = "copied";
  }

  // Keys.

  listen() {
    document.querySelector("#overview-button").addEventListener("click", () => this.press("o"));
    document.querySelector("#compare-button").addEventListener("click", () => this.press("c"));
    document.querySelector("#theme-button").addEventListener("click", () => this.press("t"));
    document.querySelector("#search-button").addEventListener("click", () => this.press("/"));
    document.querySelector("#wrap-button").addEventListener("click", () => this.press("w"));
    document.addEventListener("keydown", (event) => {
      const inField = event.target === this.search.field;
      const wantsSearch = event.key === "f" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (wantsSearch && !inField) this.search.open(); // in the field it is the browser's own search
      else if (event.key === "F3" && this.search.isOpen) this.search.move(event.shiftKey ? -1 : 1);
      else if (inField || event.ctrlKey || event.metaKey || event.altKey || !this.press(event.key)) return;
      event.preventDefault();
    });
    addEventListener("beforeprint", () => this.views.forEach((view) => view.render(true)));
    addEventListener("afterprint", () => this.views.forEach((view) => view.render(false)));
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.address) return;
      this.state = readAddress(this.data, this.panes, location.hash.slice(1));
      this.build();
    });
  }

  /** Does what a key says; whether it says anything. What the pointer was left on no longer counts. */
  press(key) {
    const { state, schedule } = this;
    const action = {
      ArrowDown: () => this.moveLine(1),
      ArrowUp: () => this.moveLine(-1),
      ArrowRight: () => this.movePane(1),
      ArrowLeft: () => this.movePane(-1),
      n: () => this.moveMark(1),
      p: () => this.moveMark(-1),
      "]": () => this.set({ schedule: around(state.schedule + 1, this.data.schedules.length) }),
      "[": () => this.set({ schedule: around(state.schedule - 1, this.data.schedules.length) }),
      s: () => this.showStep(around(state.step + 1, schedule.nests.length)),
      S: () => this.showStep(around(state.step - 1, schedule.nests.length)),
      f: () => this.movePass(1),
      F: () => this.movePass(-1),
      d: () => this.set({ diff: 1 - state.diff }),
      i: () => this.set({ llvm: around(state.llvm + 1, schedule.llvm.length) }),
      c: () => this.data.schedules.length > 1 && this.set({ stage: state.stage ? "" : "nest" }),
      o: () => this.set({ overview: 1 - state.overview }),
      t: () => this.set({ theme: this.isDark() ? "light" : "dark" }),
      "/": () => this.search.open(),
      w: () => this.toggleWrap(),
      y: () => this.copyLink(),
      Enter: () => this.pinPlace(),
      Escape: () => (this.search.isOpen ? this.search.close() : this.clear()),
    }[key];
    if (!action) return false;
    this.hovered = null;
    action();
    return true;
  }

  isDark() {
    return this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  /** The text that has the focus, or the one with the pinned line if it can be seen, or that in front. */
  get focused() {
    const { views, state } = this;
    return (
      views.find((view) => view.scroller === document.activeElement) ??
      views.find((view) => view.pane?.id === state.id && view.isShown) ??
      (state.stage ? views[0] : this.columns[state.pane].views.at(-1))
    );
  }

  moveLine(by) {
    const view = this.focused;
    const line = view.lineBeside(view.pane.id === this.state.id ? this.state.line : 0, by);
    if (view.pane.id !== this.state.id || line !== this.state.line) this.pick({ id: view.pane.id, line });
    view.scroller.focus({ preventScroll: true });
  }

  /** Pins the line that was gone to last. */
  pinPlace() {
    const { at, pane } = this.focused;
    if (at) this.pick({ id: pane.id, line: at });
  }

  movePane(by) {
    const { views } = this;
    const index = around(views.indexOf(this.focused) + by, views.length);
    const column = this.columns.findIndex((candidate) => candidate.views.includes(views[index]));
    if (!views[index].isShown) this.set({ pane: column }); // what is not shown cannot have the focus
    views[index].scroller.focus();
  }

  moveMark(by) {
    const view = this.focused;
    if (this.pinned) this.mark();
    const top = view.layout.rowAt(view.topLine);
    const pinned = view.pane.id === this.state.id ? this.state.line : 0;
    const found = view.markedBeside(view.at || pinned || view.rows[top]?.line || 0, by);
    if (found) view.goTo(found);
  }

  movePass(by) {
    const { passes } = this.schedule;
    let number = this.state.pass < 0 ? passes.length - 1 : this.state.pass;
    do number = around(number + by, passes.length);
    while (!passes[number].pane);
    this.set({ pass: number, diff: 1 });
  }
}

const around = (number, count) => (number + count) % count;

function show(data) {
  return new Explorer(data);
}
