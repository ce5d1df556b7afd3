/**
 * Loaded into the server's process before it (`--import`). Tells on SIGUSR2, as one line on standard error, how long the
 * event loop stood still at most since the last time, how much of the processor one step of it took at most (which says
 * the same on a busy machine), and what memory is held; on SIGWINCH the same after a collection. A machine that is slow
 * for now, because neighbours have its caches, needs more of the processor for the same: steps are reported as they would be
 * at the speed of `REFERENCE_MS`.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const used = (): number => {
  const { user, system } = process.threadCpuUsage();
  return user + system;
};
let last = used();
let step = 0;
setInterval(() => {
  const now = used();
  step = Math.max(step, now - last);
  last = now;
}, 1).unref();

/** What `reference` takes where nobody else is at work. */
const REFERENCE_MS = 30;
/** Steps up to this long are reported as they are: their length is not in doubt. */
const SHORT_MS = 50;
/** No machine is believed to be slower than this. */
const MOST_SLOWNESS = 3;

/** Work of the kind a server does: objects made, written, read and sorted. */
function reference(): number {
  const before = used();
  const made = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`key${i}`, { a: [i, i + 1], b: `v${i}` }]));
  Object.keys(JSON.parse(JSON.stringify(made))).sort();
  return (used() - before) / 1e3;
}

/** How many times slower than the reference the machine is, 1 at least: by the best of a few, the first of which compile. */
function slowness(): number {
  const best = Math.min(...Array.from({ length: 6 }, reference));
  return Math.min(MOST_SLOWNESS, Math.max(1, best / REFERENCE_MS));
}

const collect = (globalThis as { gc?: () => void }).gc;

function tell(before: () => void): void {
  const longest = delay.max / 1e6;
  const measured = step / 1e3;
  const cpu = measured > SHORT_MS ? measured / slowness() : measured;
  before();
  const { heapUsed, rss, external } = process.memoryUsage();
  // What came before is a long step as well, and nobody's but ours: it is over before the counting begins anew.
  setTimeout(() => {
    delay.reset();
    step = 0;
    last = used();
    process.stderr.write(`PROBE ${JSON.stringify({ longest, cpu, heapUsed, rss, external })}\n`);
  }, 2);
}
process.on('SIGUSR2', () => tell(() => {}));
process.on('SIGWINCH', () => tell(() => collect?.()));
