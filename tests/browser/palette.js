// A picture (a PNG, base64) as indexes into a palette of its most frequent colours.
async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const { width, height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const far = (one, other) => one.reduce((sum, part, at) => sum + (part - other[at]) ** 2, 0);
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([pixel]) => parts(pixel));
  const palette = [];
  // A colour that is rare but unlike all others, such as a small light, has its place too.
  for (const colour of frequent) {
    if (palette.length < 256 && palette.every((chosen) => far(chosen, colour) > 48)) palette.push(colour);
  }
  const nearest = (pixel) => {
    const wanted = parts(pixel);
    let best = 0;
    for (let at = 1; at < palette.length; at++) if (far(palette[at], wanted) < far(palette[best], wanted)) best = at;
    return best;
  };
  const index = new Map([...counts.keys()].map((pixel) => [pixel, nearest(pixel)]));
  const text = (array) => {
    let found = "";
    for (let at = 0; at < array.length; at += 8192) found += String.fromCharCode(...array.subarray(at, at + 8192));
    return btoa(found);
  };
  const indexes = Uint8Array.from(pixels, (pixel) => index.get(pixel));
  return { width, height, palette: text(Uint8Array.from(palette.flat())), indexes: text(indexes) };
}
