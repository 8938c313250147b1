// Unpacks the document, which is JSON, compressed and in base64, and has the page's own `show` show it.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/** Says on the page, too, why it cannot be shown. */
function complain(error) {
  const place = document.querySelector("#subtitle");
  place.className = "error";
  place.textContent = `The page cannot be shown (${error.message}). It needs a browser of 2024 or later.`;
  throw error;
}

unpack(document.querySelector("#document").textContent)
  .then((data) => {
    globalThis.explorer = show(data);
    performance.mark("shown");
  })
  .catch(complain);
