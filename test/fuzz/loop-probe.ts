/**
 * Loaded into the server's process before it (`--import`). Tells on SIGUSR2, as one line on standard error, how long the
 * event loop stood still at most since the last time, how much of the processor one step of it took at most (which says
 * the same on a busy machine), and what memory is held; on SIGWINCH the same after a collection.
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
const collect = (globalThis as { gc?: () => void }).gc;

function tell(before: () => void): void {
  const longest = delay.max / 1e6;
  const cpu = step / 1e3;
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
