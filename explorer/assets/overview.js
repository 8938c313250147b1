// The top of the page: the schedules with their times, and the roofline picture.

const COLOURS = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7"];
const colourOf = (schedule) => `var(${COLOURS[schedule % COLOURS.length]})`;

function timeText(seconds) {
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, least]) => seconds >= least) ?? ["ns", 1e-9];
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

/** Fills the overview; `pick(number)` is called with the schedule that is chosen there. */
function showOverview(root, data, chosen, pick) {
  const dots = data.schedules.map((schedule, number) => ({
    name: schedule.name,
    seconds: schedule.seconds,
    colour: colourOf(number),
    chosen: number === chosen,
    pick: () => pick(number),
  }));
  const peers = data.peers.map((peer) => ({ ...peer, colour: "var(--dim)" }));
  const all = [...dots, ...peers];
  const timed = all.filter((dot) => dot.seconds && data.work?.operations);
  for (const dot of timed) dot.rate = data.work.operations / dot.seconds;
  const picture = roofline(data.work, data.machine, timed);
  replaceButtons(root, [timesTable(data, all), ...(picture ? [picture] : [])]);
}

function timesTable(data, dots) {
  const table = element("table", "times");
  const head = element("tr");
  const measured = dots.some((dot) => dot.seconds);
  const rate = measured && data.work?.operations ? data.work.rate_unit : "";
  const titles = ["", measured ? "time" : "", rate, data.machine ? "of roofline" : "", ""];
  for (const title of titles) head.append(element("th", "", title));
  table.append(element("thead"), element("tbody"));
  table.tHead.append(head);
  const slowest = dots.reduce((most, dot) => Math.max(most, dot.seconds ?? 0), 0);
  const least = data.machine && data.work ? data.machine.least_seconds : 0;
  table.tBodies[0].append(...dots.map((dot) => timesRow(data, dot, slowest, least)));
  return table;
}

function timesRow(data, dot, slowest, least) {
  const row = element("tr", dot.chosen ? "chosen" : "");
  const name = element("td", "who");
  const label = dot.pick ? element("button", "", dot.name) : element("span", "", dot.name);
  if (dot.pick) {
    label.type = "button";
    label.addEventListener("click", dot.pick);
  }
  name.append(element("i", dot.pick ? "swatch" : "swatch peer"), label);
  row.style.setProperty("--colour", dot.colour);
  const rate = dot.seconds && data.work?.operations ? data.work.operations / dot.seconds / 1e9 : 0;
  const bar = element("td", "bar");
  if (dot.seconds) {
    bar.append(element("i"));
    bar.firstChild.style.width = `${Math.max(0.5, (100 * dot.seconds) / slowest)}%`;
  }
  row.append(
    name,
    element("td", "", dot.seconds ? timeText(dot.seconds) : ""),
    element("td", "", rate ? String(rounded(rate)) : ""),
    element("td", "", dot.seconds && least ? `${rounded((100 * least) / dot.seconds)} %` : ""),
    bar,
  );
  return row;
}
