// The colours that link lines before any of them is chosen: each loop of the nest has one, which its body shares, and the
// lines of the passes, of LLVM IR and of the assembly that come from it. A letter says the same without colour.

const LINK_COLOURS = 7;
const NO_LOOP = /^\s*for \S+ in (?:vectorized|unrolled)\(/;

/** For a schedule, a function from a pane to the number of the loop that each of its lines belongs to, -1 for none; its
 * `headers` are the lines of the nest that begin the loops. */
function loopsOf(panes, schedule) {
  const nest = panes.get(schedule.nests.at(-1));
  const known = new Map([[nest.id, loopsOfNest(nest)]]);
  const first = known.get(nest.id);
  loops.headers = nest.lines.filter((_, index) => first[index] >= 0 && first.indexOf(first[index]) === index);
  return loops;

  function loops(pane) {
    if (!known.has(pane.id)) {
      const above = pane.parent && pane.role !== "steps" ? loops(panes.get(pane.parent)) : [];
      known.set(pane.id, pane.lines.map((_, index) => above[originsOf(pane, index + 1)[0] - 1] ?? -1));
    }
    return known.get(pane.id);
  }
}

/** The numbers of the loops of a nest, by its lines. What is vectorized or unrolled is no loop in machine code: it
 * belongs to the loop around it, if there is one. */
function loopsOfNest(pane) {
  const around = [];
  let count = 0;
  return pane.lines.map((text) => {
    const depth = text.search(/\S/);
    while (around.length && around.at(-1).depth >= depth) around.pop();
    const outer = around.at(-1)?.loop ?? -1;
    if (!/^\s*for /.test(text) || (NO_LOOP.test(text) && outer >= 0)) return outer;
    around.push({ depth, loop: count });
    return count++;
  });
}

/** a, b, …, z, then aa, ab, …: which loop it is, for readers who do not see the colours, or where these come again. */
function loopLetter(loop) {
  const last = String.fromCharCode(97 + (loop % 26));
  return loop < 26 ? last : loopLetter(Math.floor(loop / 26) - 1) + last;
}
