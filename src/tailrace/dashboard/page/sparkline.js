// The last ten minutes of a figure, without an axis: is it as it was?

import { svg } from "./dom.js";

const WIDTH = 120;
const HEIGHT = 26;

export function sparkline(values, what) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  const high = Math.max(...known, 1);
  const x = (position) => ((position / (values.length - 1)) * WIDTH).toFixed(1);
  const y = (value) => (HEIGHT - 1.5 - (value / high) * (HEIGHT - 3)).toFixed(1);
  let path = "";
  values.forEach((value, position) => {
    if (value !== null) path += `${path && values[position - 1] !== null ? "L" : "M"}${x(position)} ${y(value)}`;
  });
  return svg(
    "svg",
    {
      class: "sparkline",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": what,
    },
    svg("title", null, what),
    svg("path", { d: path }),
  );
}
