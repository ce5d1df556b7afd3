import type { Duplex } from 'node:stream';

/**
 * Joins two connections: what one says the other hears, at the speed of the slower one (each holds no more than its
 * stream's high-water mark). An end is passed on behind the last byte, a failure at once.
 */
export function joinStreams(a: Duplex, b: Duplex): void {
  const link = (from: Duplex, to: Duplex): void => {
    from.on('error', () => to.destroy());
    from.on('close', () => {
      if (!from.readableEnded) to.destroy();
    });
    from.pipe(to);
  };
  link(a, b);
  link(b, a);
}
