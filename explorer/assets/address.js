// What is chosen, and the part of the address that keeps it: the pinned line as `asm-120`, then what else differs from
// how a page opens, as in `#asm-120&schedule=0&llvm=0`.

const STAGES = {
  steps: "Schedule",
  nest: "Loop nest",
  lowered: "Lowered",
  llvm: "LLVM IR",
  model: "Machine model",
  assembly: "Assembly",
};
const COLUMNS = ["Schedule", "Loop nest", "Passes", "LLVM IR", "Assembly"];
const COLUMN_OF = { compute: 0, steps: 0, nest: 1, pass: 2, llvm: 3, model: 4, assembly: 4 };
/** What is chosen at first; the address names what differs. `stage` is shown side by side, `pane` is in front. */
const FRESH = {
  schedule: -1,
  step: 0,
  pass: -1,
  diff: 0,
  llvm: 1,
  stage: "",
  overview: 1,
  theme: "",
  pane: 1,
};
const LINE = /^([^&=]+)-(\d+)$/;

/** What an address chooses, in so far as there is that. */
function readAddress(data, panes, fragment) {
  const state = { ...FRESH, id: "", line: 0 };
  const given = new URLSearchParams(fragment);
  for (const [name, fresh] of Object.entries(FRESH)) {
    const text = given.get(name);
    if (text !== null) state[name] = typeof fresh === "number" ? Math.trunc(Number(text)) || 0 : text;
  }
  const [, name, line] = LINE.exec(given.keys().next().value ?? "") ?? [];
  if (!data.schedules[state.schedule]) state.schedule = data.schedules.length - 1;
  const schedule = data.schedules[state.schedule];
  const { passes, nests, llvm } = schedule;
  if (!llvm[state.llvm]) state.llvm = FRESH.llvm;
  const pane = panes.get(name) ?? panes.get(shortNames(schedule, state)[name]);
  if (pane && line >= 1 && line <= pane.lines.length) {
    Object.assign(state, { id: pane.id, line: Number(line) });
    if (!given.has("pane")) state.pane = freshPane(panes, state);
  }
  if (!Object.hasOwn(STAGES, state.stage)) state.stage = "";
  if (!COLUMNS[state.pane]) state.pane = FRESH.pane;
  for (const flag of ["diff", "overview"]) state[flag] = state[flag] ? 1 : 0;
  if (!passes[state.pass]?.pane) state.pass = -1;
  if (!nests[state.step]) state.step = 0;
  return state;
}

/** The column that is in front unless another one is chosen: that of the pinned line. */
function freshPane(panes, { id }) {
  return id ? COLUMN_OF[panes.get(id).role] : FRESH.pane;
}

/** The address of a state: see the head of the file. */
function addressOf(data, panes, state) {
  const fresh = { ...FRESH, schedule: data.schedules.length - 1, pane: freshPane(panes, state) };
  const kept = Object.entries(fresh).filter(([name, value]) => state[name] !== value);
  const choices = new URLSearchParams(kept.map(([name]) => [name, state[name]])).toString();
  if (!state.id) return choices;
  const names = Object.entries(shortNames(data.schedules[state.schedule], state));
  const [name] = names.find(([, id]) => id === state.id) ?? [state.id];
  return `${name}-${state.line}${choices && "&"}${choices}`;
}

/** What the panes of a schedule are called in addresses; others go by their ids. */
function shortNames(schedule, state) {
  return {
    compute: schedule.compute,
    schedule: schedule.steps,
    nest: schedule.nests.at(-1),
    lowered: schedule.passes.at(-1).pane,
    llvm: schedule.llvm[state.llvm],
    asm: schedule.assembly,
    model: schedule.model,
  };
}

/** Puts a fragment into the address of the page, where it may: a page inside of another one has no address to keep. */
function keepAddress(fragment) {
  try {
    history.replaceState(null, "", `${location.href.split("#", 1)[0]}#${fragment}`);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}

/** Puts a text into the clipboard; where the page may not, which is so without https, by way of a selection. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = element("textarea", "", text);
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
