import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { createMessagePair } from '../../../../runtime/src/http/message-pair.ts';
import { forwardChannels } from './channel-port-forward.ts';

test('forwardChannels(): what comes before the guest is reached waits, within a bound', async () => {
  const guest = createServer((line) => line.on('data', (chunk) => line.write(chunk)));
  await new Promise<void>((resolve) => guest.listen(0, '127.0.0.1', resolve));
  const { port } = guest.address() as { port: number };
  for (const size of [3, 1024 * 1024 + 1]) {
    let reach = (_at: { host: string; port: number }): void => {};
    const endpoint = () =>
      new Promise<{ host: string; port: number }>((resolve) => {
        reach = resolve;
      });
    const [near, far] = createMessagePair('');
    forwardChannels(far, [80], { target: { pod: 'p', endpoint }, clock: systemClock });
    const closed = new Promise<number>((resolve) => near.onClose(resolve));
    let heard = 0;
    const echoed = new Promise<void>((resolve) =>
      near.onMessage((message) => {
        heard += message[0] === 0 ? message.length - 1 : 0;
        // The port itself is two bytes.
        if (heard === size + 2) resolve();
      }),
    );
    near.send(Buffer.concat([Buffer.of(0), Buffer.alloc(size, 'x')]));
    await new Promise((resolve) => setImmediate(resolve));
    reach({ host: '127.0.0.1', port });
    if (size > 1024 * 1024) assert.equal(await closed, 1009);
    else await echoed;
    near.close();
  }
  guest.close();
});
