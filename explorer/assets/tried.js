// A search: each candidate is a dot, predicted against measured, and shows its trace and its nest at a click.

const WIDTH = 560, HEIGHT = 520, MARGIN = 48;
const SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** Maps positive values to pixels, in proportion to their logarithms. */
function logarithmic(values, from, to) {
  const logs = values.map(Math.log);
  const low = Math.min(...logs), span = Math.max(...logs) - low || 1;
  return (value) => from + ((Math.log(value) - low) / span) * (to - from);
}

class TriedSchedules {
  constructor(data) {
    this.candidates = data.candidates;
    document.querySelector("h1").textContent = data.title;
    document.querySelector("#subtitle").textContent = data.subtitle;
    this.dots = this.candidates.map((candidate, number) => this.dot(candidate, number));
    document.querySelector("#dots").append(this.picture());
    const gains = this.candidates.map((candidate) => candidate.gain);
    if (gains.length) this.choose(gains.indexOf(Math.max(...gains)));
  }

  picture() {
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group" });
    const bottom = HEIGHT - MARGIN;
    svg.append(
      drawn("line", { x1: MARGIN, y1: bottom, x2: WIDTH - MARGIN / 2, y2: bottom }),
      drawn("line", { x1: MARGIN, y1: MARGIN / 2, x2: MARGIN, y2: bottom }),
      drawn("text", { x: WIDTH / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "predicted time →"),
      drawn("text", { transform: `translate(16 ${HEIGHT / 2}) rotate(-90)`, "text-anchor": "middle" }, "measured time →"),
      ...this.dots,
    );
    return svg;
  }

  dot(candidate, number) {
    const predicted = this.candidates.map((each) => each.predicted).filter((value) => value > 0);
    const measured = this.candidates.map((each) => each.gain).filter((gain) => gain > 0).map((gain) => 1 / gain);
    const x = logarithmic(predicted, MARGIN + 12, WIDTH - MARGIN / 2 - 12);
    const y = logarithmic(measured, HEIGHT - MARGIN - 12, MARGIN / 2 + 24);
    const failed = candidate.gain <= 0;
    const made = drawn("circle", {
      cx: candidate.predicted > 0 ? x(candidate.predicted) : MARGIN,
      cy: failed ? MARGIN / 2 : y(1 / candidate.gain),
      r: 6,
      class: failed ? "failed" : number === 0 ? "first" : "timed",
      tabindex: 0,
      role: "button",
      "aria-label": candidate.told,
    });
    made.append(drawn("title", {}, candidate.told));
    made.addEventListener("click", () => this.choose(number));
    made.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") this.choose(number);
    });
    return made;
  }

  choose(number) {
    this.dots.forEach((dot, each) => dot.setAttribute("aria-pressed", String(each === number)));
    const candidate = this.candidates[number];
    document.querySelector("#told h2").textContent = candidate.told;
    document.querySelector("#trace").textContent = candidate.trace;
    document.querySelector("#nest").textContent = candidate.nest;
  }
}

function show(data) {
  return new TriedSchedules(data);
}
