// Where the rows of a text stand, counted in lines: a row is one line high, or, where long ones are wrapped, as many as
// its text fills. What is wrapped is indented by a little more than its beginning.

const WRAP_INDENT = 4;

class RowLayout {
  /** `columns` is how many characters fit in a line; 0 where nothing is wrapped. */
  constructor(texts, columns) {
    this.columns = columns;
    this.tops = new Uint32Array(texts.length + 1);
    texts.forEach((text, index) => {
      this.tops[index + 1] = this.tops[index] + (columns ? linesOf(text, columns) : 1);
    });
  }

  get lines() {
    return this.tops.at(-1);
  }

  heightOf(index) {
    return this.tops[index + 1] - this.tops[index];
  }

  /** The row that covers a line; the first or the last one for lines beyond the text. */
  rowAt(line) {
    let low = 0;
    let high = Math.max(0, this.tops.length - 2);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= line) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** By how many characters the further lines of a wrapped text are indented. */
function wrapIndent(text, columns) {
  return Math.min(Math.max(0, text.search(/\S/)) + WRAP_INDENT, columns >> 1);
}

function linesOf(text, columns) {
  if (text.length <= columns) return 1;
  return 1 + Math.ceil((text.length - columns) / (columns - wrapIndent(text, columns)));
}
