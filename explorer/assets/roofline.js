// The roofline picture: operations a second over operations a byte, both in powers of ten; the roofs of the machine, a
// dot for each schedule, a diamond for each peer.

const PICTURE = { width: 480, height: 220, left: 40, right: 8, top: 24, bottom: 34 };
const LABEL_HEIGHT = 12;

function svg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const rounded = (number) => Number(number.toPrecision(number < 100 ? 2 : 3));
const gflops = (rate) => `${rounded(rate / 1e9)} GFLOP/s`;

function sizeText(bytes) {
  const units = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
  const [unit, size] = units.find(([, least]) => bytes >= least) ?? ["B", 1];
  return `${rounded(bytes / size)} ${unit}`;
}

/** The picture, or null where the document lacks the work or the machine. `dots` are {name, rate, colour, pick}: dots
 * without `pick` are peers. */
function roofline(work, machine, dots) {
  if (!machine || !work?.operations || !dots.length) return null;
  const intensity = work.operations / work.bytes;
  const slowest = Math.min(...dots.map((dot) => dot.rate), machine.operations / 50);
  const fastest = Math.max(...dots.map((dot) => dot.rate), machine.operations);
  const ridges = machine.bandwidths.map(([, rate]) => machine.operations / rate);
  const right = PICTURE.width - PICTURE.right;
  const x = scale(Math.min(intensity, 1, ...ridges) / 2, Math.max(intensity, ...ridges) * 4, PICTURE.left, right);
  const y = scale(slowest / 2, fastest * 1.6, PICTURE.height - PICTURE.bottom, PICTURE.top);
  const picture = svg("svg", { viewBox: `0 0 ${PICTURE.width} ${PICTURE.height}`, class: "roofline", role: "img" });
  const spoken = `roofline: at most ${gflops(machine.operations)}, ${rounded(intensity)} operations a byte`;
  picture.append(svg("title", {}, spoken));
  drawAxes(picture, x, y);
  drawRoofs(picture, x, y, machine);
  drawDots(picture, x, y, intensity, dots);
  return picture;
}

/** A logarithmic scale from [low, high] to [start, end]; `ticks` are the powers of ten in it. */
function scale(low, high, start, end) {
  const at = (value) => start + ((Math.log10(value) - Math.log10(low)) / Math.log10(high / low)) * (end - start);
  const ticks = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++) ticks.push(10 ** power);
  return Object.assign(at, { low, high, ticks });
}

function drawAxes(picture, x, y) {
  const { width, height, left, right, top, bottom } = PICTURE;
  for (const tick of x.ticks) {
    picture.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: height - bottom }));
    picture.append(svg("text", { x: x(tick), y: height - bottom + 14, "text-anchor": "middle" }, rounded(tick)));
  }
  for (const tick of y.ticks) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }));
    picture.append(svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, rounded(tick / 1e9)));
  }
  picture.append(svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, "operations a byte"));
  picture.append(svg("text", { x: 2, y: 12 }, "GFLOP/s"));
}

/** The roofs: one for the arithmetic, and one for each memory, which says how much fits in it, and how fast it is. */
function drawRoofs(picture, x, y, machine) {
  const top = machine.operations;
  const slope = (180 / Math.PI) * Math.atan2(y(10) - y(100), x(100) - x(10));
  const labels = []; // above all lines
  let labelled = Infinity;
  machine.bandwidths.toReversed().forEach(([size, rate], number) => {
    const start = Math.max(x.low, y.low / rate);
    const line = { x1: x(start), y1: y(start * rate), x2: x(top / rate), y2: y(top) };
    picture.append(svg("line", { class: number ? "roof cache" : "roof", ...line }));
    if (labelled - line.y1 < LABEL_HEIGHT + 1) return;
    const turned = `translate(${line.x1 + 6} ${line.y1 - 6}) rotate(${-slope})`;
    const text = `${rounded(rate / 1e9)} GB/s ${number ? sizeText(size) : "memory"}`;
    labels.push(svg("text", { class: "roof-label", transform: turned }, text));
    labelled = line.y1;
  });
  const ridge = top / Math.max(...machine.bandwidths.map(([, rate]) => rate));
  picture.append(svg("line", { class: "roof", x1: x(ridge), y1: y(top), x2: x(x.high), y2: y(top) }));
  const peak = { class: "roof-label", x: x(x.high), y: y(top) - 5, "text-anchor": "end" };
  picture.append(...labels, svg("text", peak, `${gflops(top)}, float32 arithmetic`));
}

function drawDots(picture, x, y, intensity, dots) {
  const centre = x(intensity);
  const upright = { x1: centre, x2: centre, y1: PICTURE.top, y2: PICTURE.height - PICTURE.bottom };
  picture.append(svg("line", { class: "intensity", ...upright }));
  for (const { name, rate, colour, pick, chosen } of dots) {
    const at = { class: chosen ? "dot chosen" : "dot" };
    const mark = pick
      ? svg("circle", { ...at, cx: centre, cy: y(rate), r: chosen ? 6.5 : 5 })
      : svg("path", { class: "peer", d: `M${centre} ${y(rate) - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5z` });
    mark.style.setProperty("--colour", colour);
    mark.append(svg("title", {}, `${name}: ${gflops(rate)}`));
    if (pick) mark.addEventListener("click", pick);
    picture.append(mark);
  }
  for (const [dot, height] of spacedLabels(dots, y)) {
    const left = centre > PICTURE.width * 0.6;
    const at = { x: centre + (left ? -11 : 11), y: height + 4, "text-anchor": left ? "end" : "start" };
    picture.append(svg("text", { ...at, class: dot.chosen ? "name chosen" : "name" }, dot.name));
  }
}

/** Each dot with the height of its label: no two of them closer than a line of text, all of them above the axis. */
function spacedLabels(dots, y) {
  const sorted = [...dots].sort((a, b) => b.rate - a.rate);
  const heights = sorted.map((dot) => y(dot.rate));
  for (let k = 1; k < heights.length; k++) heights[k] = Math.max(heights[k], heights[k - 1] + LABEL_HEIGHT);
  let most = PICTURE.height - PICTURE.bottom - LABEL_HEIGHT / 2;
  for (let k = heights.length - 1; k >= 0; k--) {
    heights[k] = Math.min(heights[k], most);
    most = heights[k] - LABEL_HEIGHT;
  }
  return sorted.map((dot, k) => [dot, heights[k]]);
}
