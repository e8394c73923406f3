// Asks the driver for figures once a second, while the page is visible.

const EVERY_MS = 1000;
const PATIENCE_MS = 10_000;

/** The answer as JSON, or null where there is no such thing. */
async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" });
  if (answer.status === 404) return null;
  if (answer.ok) return answer.json(); // one that was cut off is no answer
  const { error } = await answer.json().catch(() => ({}));
  throw new MonitorFailure(error ?? `status ${answer.status}`);
}

/** The driver answered, but has no figures. */
export class MonitorFailure extends Error {}

/**
 * Calls `arrived(snapshot, run, history)` with each answer and `lost(reason)` when there is none.
 * `choose(snapshot)` names the run whose history is wanted. Returns a function that asks at once.
 */
export function poll({ choose, arrived, lost }) {
  let timer = null;
  let asking = false;
  let again = false;

  async function figures() {
    const snapshot = await get("api/snapshot");
    const run = choose(snapshot);
    return [snapshot, run, run && (await get(`api/queries/${encodeURIComponent(run)}/history`))];
  }

  async function ask() {
    again = asking;
    if (asking) return;
    clearTimeout(timer);
    asking = true;
    const began = performance.now();
    const answer = await figures().catch((reason) => void lost(reason));
    asking = false;
    if (!document.hidden) timer = setTimeout(ask, again ? 0 : Math.max(0, EVERY_MS - (performance.now() - began)));
    if (answer) arrived(...answer);
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  ask();
  return ask;
}
