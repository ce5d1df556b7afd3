import type { Readable } from 'node:stream';
import type { ByteStream } from './seam.ts';

/**
 * What comes from the wire, as the body of an answer: reading pauses while the sink is behind, so that a slow reader slows
 * the server down. `stop` breaks it off; `isWhole` is asked once nothing more comes.
 */
export const streamBody =
  (source: Readable, { stop, isWhole }: { stop(): void; isWhole(): boolean }): ByteStream =>
  (sink) => {
    sink.signal.addEventListener('abort', stop, { once: true });
    source.on('data', (chunk: Buffer) => {
      if (sink.write(chunk)) return;
      source.pause();
      void sink.drained().then(() => source.resume());
    });
    source.once('end', () => sink.end());
    source.once('close', () => {
      sink.signal.removeEventListener('abort', stop);
      if (isWhole() || !sink.fail) sink.end();
      else sink.fail();
    });
    if (sink.signal.aborted) stop();
  };

/** What comes, filled as it comes with `maxBytes` at most; `onMore` is called with what is beyond that. */
export function collectBytes(source: Readable, maxBytes: number, onMore: () => void = () => {}): readonly Buffer[] {
  const parts: Buffer[] = [];
  let size = 0;
  source.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxBytes) parts.push(chunk);
    else onMore();
  });
  return parts;
}
