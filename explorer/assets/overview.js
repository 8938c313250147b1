// The top of the page: the schedules with their times, and the roofline picture.

const COLOURS = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7"];
const MOST_LINEAR = 20; // what is a twentieth of the longest bar is hard to see
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
  const bars = measured ? barScale(dots.map((dot) => dot.seconds).filter(Boolean)) : null;
  if (bars?.ticks.length) head.lastChild.replaceWith(barAxis(bars));
  const least = data.machine && data.work ? data.machine.least_seconds : 0;
  table.tBodies[0].append(...dots.map((dot) => timesRow(data, dot, bars, least)));
  return table;
}

/** Where the bars of times end, in percent. Times that span more than `MOST_LINEAR` are on a logarithmic scale, which
 * begins at half of the shortest, and has ticks. */
function barScale(times) {
  const shortest = Math.min(...times);
  const longest = Math.max(...times);
  if (longest / shortest > MOST_LINEAR) return scale(shortest / 2, longest, 0, 100);
  return Object.assign((seconds) => (100 * seconds) / longest, { ticks: [] });
}

/** The head of the column of bars that has a logarithmic scale. */
function barAxis(bars) {
  const head = element("th", "bar");
  const axis = element("div", "axis");
  axis.append(...ticksOf(bars, "span", timeText));
  head.append(element("div", "", "logarithmic scale"), axis);
  return head;
}

/** An element for each tick of a scale, at its place. */
function ticksOf(bars, name, text = () => "") {
  return bars.ticks.map((tick) => {
    const made = element(name, "tick", text(tick));
    made.style.left = `${bars(tick)}%`;
    return made;
  });
}

function timesRow(data, dot, bars, least) {
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
    bar.append(element("i"), ...ticksOf(bars, "b"));
    bar.firstChild.style.width = `${Math.max(0.5, bars(dot.seconds))}%`;
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
