// From values to pixels, and the marks on an axis.

export function timeScale(begin, end, left, right) {
  const scale = (at) => left + ((at - begin) / (end - begin)) * (right - left);
  scale.invert = (pixel) => begin + ((pixel - left) / (right - left)) * (end - begin);
  return Object.assign(scale, { begin, end, left, right });
}

/** Latencies span decades: each takes the same room. */
export function logScale(low, high, bottom, top) {
  const span = Math.log(high / low);
  const scale = (value) => bottom + (Math.log(Math.max(value, low) / low) / span) * (top - bottom);
  return Object.assign(scale, { low, high });
}

const STEPS_S = [5, 10, 15, 30, 60, 120, 300];

/** Round times of day that are far enough apart for their labels. */
export function timeMarks(x) {
  const roomFor = Math.max(2, Math.floor((x.right - x.left) / 84));
  const step = STEPS_S.find((length) => (x.end - x.begin) / length <= roomFor) ?? 600;
  const marks = [];
  for (let at = Math.ceil(x.begin / step) * step; at <= x.end; at += step) marks.push(at);
  return { marks, seconds: step < 60 };
}

/** 1, 2 or 5 times a power of ten, at or below the value, or at or above it. */
export function roundLatency(value, direction) {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const steps = [1, 2, 5, 10].map((step) => step * power);
  return direction === "down"
    ? steps.findLast((step) => step <= value * 1.0001)
    : steps.find((step) => step >= value * 0.9999);
}

/** Round latencies, as many as have room. */
export function latencyMarks({ low, high }, height) {
  const decade = height / Math.log10(high / low);
  const steps = decade > 75 ? [1, 2, 5] : decade > 40 ? [1, 3] : [1];
  const marks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) {
      const mark = Number((step * 10 ** power).toPrecision(3));
      if (mark >= low * 0.999 && mark <= high * 1.001) marks.push(mark);
    }
  }
  return marks;
}
