// The colours of a text: its tokens, by what kind of text it is, and what the search has found in it.

/** What stands out in a text, by the role of its pane: at most a comment, a keyword, a kind and a number. */
const TOKENS = {
  nest: /(?<quiet>#.*$)|(?<keyword>\b(?:for|in|if|else|while|def|let|assert)\b)|(?<kind>\b(?:vectorized|parallel|unrolled)\b)|(?<number>\b\d[\w.]*\b)/g,
  steps: /(?<quiet>#.*$)|(?<keyword>\.\w+(?=\())|(?<kind>"[^"]*")|(?<number>\b\d[\w.]*\b)/g,
  llvm: /(?<quiet>;.*$|, align \d+|![\w.]*|\b(?:nsw|inbounds|nuw|noalias|nocapture)\b)|(?<keyword>\b(?:define|ret|br|phi|load|store|call|declare)\b)|(?<kind><\d+ x \w+>)|(?<number>(?<=\s)-?\d[\w.+-]*)/g,
  model: /(?<quiet>^ +\(.*)|(?<keyword>(?<=^loop .*: )\D+(?=, \d))|(?<kind>\bllvm-mca\b)|(?<number>\b\d[\d.]*\b)/g,
  assembly: /(?<quiet>\s#.*$|^ +\..*$)|(?<keyword>^ +[a-z]\w*)|(?<kind>%[xyzk](?:mm)?\d+\b)|(?<number>\$-?\w+)/g,
};
const tokensOf = (role) => TOKENS[{ compute: "nest", pass: "nest" }[role] ?? role];

/** A line as it is shown: nests indented by two instead of four, operands of instructions below each other. */
function display(text, role) {
  if (role === "assembly") {
    return text.replace(/^\t([^\t]+)\t/, (_, name) => `    ${name.padEnd(12)} `).replaceAll("\t", "    ");
  }
  return tokensOf(role) === TOKENS.nest ? text.replace(/^ +/, (indent) => indent.slice(indent.length / 2)) : text;
}

/** Puts a text into an element, its tokens in spans, and the `matches` in it in marks, the `current` one as such. */
function highlight(target, text, role, matches, current) {
  let end = 0;
  for (const match of text.matchAll(tokensOf(role))) {
    const [kind, token] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    appendMarked(target, text, end, match.index, matches, current);
    const span = element("span", `t-${kind}`);
    end = match.index + token.length;
    appendMarked(span, text, match.index, end, matches, current);
    target.append(span);
  }
  appendMarked(target, text, end, text.length, matches, current);
}

/** Puts the part of a text from `start` to `end` into an element, and what of the matches is in it into marks. */
function appendMarked(target, text, start, end, matches, current) {
  for (const match of matches) {
    const [from, to] = [Math.max(start, match.start), Math.min(end, match.end)];
    if (from >= to) continue;
    target.append(text.slice(start, from), element("mark", match === current ? "current" : "", text.slice(from, to)));
    start = to;
  }
  target.append(text.slice(start, end));
}
