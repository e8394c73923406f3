// Figures as people write them: 0.8 ms, 12 ms, 1.4 s, 12,300.

export const NONE = "–";
const SPACE = "\u00a0"; // a figure and its unit stay on one line

const integer = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A latency's figure and its unit. */
export function latencyParts(ms) {
  if (ms === null || ms === undefined) return [NONE, ""];
  if (ms < 0) return [`−${latencyParts(-ms)[0]}`, latencyParts(-ms)[1]];
  if (ms === 0) return ["0", "ms"];
  if (ms < 0.01) return ["<0.01", "ms"];
  if (ms < 0.095) return [ms.toFixed(2), "ms"];
  if (ms < 9.95) return [ms.toFixed(1), "ms"];
  if (ms < 999.5) return [ms.toFixed(0), "ms"];
  if (ms < 9_950) return [(ms / 1000).toFixed(1), "s"];
  if (ms < 119_500) return [(ms / 1000).toFixed(0), "s"];
  if (ms < 7_170_000) return [integer.format(ms / 60_000), "min"];
  return [integer.format(ms / 3_600_000), "h"];
}

export const latency = (ms) => latencyParts(ms).filter(Boolean).join(SPACE);

/** An axis has no decimals that are zero: 1 ms, 0.5 ms, 2 s. */
export const axisLatency = (ms) => latency(ms).replace(/\.0(?=\D)/, "");

export const count = (number) => (number === null || number === undefined ? NONE : integer.format(number));

/** Three digits are enough of a rate. */
export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return NONE;
  if (perSecond > 0 && perSecond < 10) return String(Number(perSecond.toFixed(1)));
  return integer.format(Number(perSecond.toPrecision(3)));
}

export function bytes(number) {
  if (number === null || number === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (number >= 1000 && power < units.length - 1) {
    number /= 1024;
    power += 1;
  }
  return `${number < 9.95 && power > 0 ? number.toFixed(1) : number.toFixed(0)}${SPACE}${units[power]}`;
}

export const percent = (share) =>
  share === null || share === undefined ? NONE : `${Math.round(share * 100)}${SPACE}%`;

const two = (number) => String(number).padStart(2, "0");

/** The time of day, where the reader is. */
export function clock(at, { seconds = true } = {}) {
  const time = new Date(at * 1000);
  return [time.getHours(), time.getMinutes(), ...(seconds ? [time.getSeconds()] : [])].map(two).join(":");
}

/** A stretch of time to the second: 0:05, 1:40, 2:03:10. */
export function stretch(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** A stretch of time as one would say it: 40 s, 16 min, 3 h, 2 days. */
export function roughly(seconds) {
  if (seconds < 100) return `${Math.max(0, Math.round(seconds))}${SPACE}s`;
  if (seconds < 100 * 60) return `${Math.round(seconds / 60)}${SPACE}min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)}${SPACE}h`;
  return `${Math.round(seconds / 86_400)}${SPACE}days`;
}
