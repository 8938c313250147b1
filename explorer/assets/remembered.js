// What a reader prefers, for all pages: kept by the browser, where it lets a page keep anything.

const PREFIX = "loopwright.explorer.";

function recall(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null; // as in a frame of a notebook
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // then it holds until the page is closed
  }
}
