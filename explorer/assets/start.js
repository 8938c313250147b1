// Unpacks the document, which is JSON, compressed and in base64, and shows it.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

unpack(document.querySelector("#document").textContent).then((data) => {
  globalThis.explorer = new Explorer(data);
  performance.mark("shown");
});
