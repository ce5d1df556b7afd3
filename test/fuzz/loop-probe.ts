/**
 * Loaded into the server's process before it (`--import`): tells on SIGUSR2, as one line on standard error, how long the
 * event loop stood still at most since the last time, how much of the processor one step took at most (which says the
 * same on a busy machine), and what memory is held after a collection.
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

process.on('SIGUSR2', () => {
  const longest = delay.max / 1e6;
  const p99 = delay.percentile(99) / 1e6;
  const cpu = step / 1e3;
  collect?.();
  const { heapUsed, rss, external } = process.memoryUsage();
  // The collection is a long step as well, and nobody's but ours: it is over before the counting begins anew.
  setTimeout(() => {
    delay.reset();
    step = 0;
    last = used();
    process.stderr.write(`PROBE ${JSON.stringify({ longest, cpu, p99, heapUsed, rss, external })}\n`);
  }, 5);
});
