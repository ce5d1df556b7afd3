import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMessagePair } from './message-pair.ts';

const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('createMessagePair() delivers in order, also what came before anyone listened', async () => {
  const [near, far] = createMessagePair('p');
  const got: string[] = [];
  near.send('a');
  near.send(new TextEncoder().encode('b'));
  await settle();
  far.onMessage((data, binary) => got.push(`${text(data)}${binary ? '!' : ''}`));
  near.send('c');
  await settle();
  assert.deepEqual(got, ['a', 'b!', 'c']);
});

test('createMessagePair() tells both sides of a close, once, and late listeners too', async () => {
  const [near, far] = createMessagePair('p');
  const reported: string[] = [];
  near.onClose((code) => reported.push(`near ${code}`));
  far.close(1001, 'bye');
  near.close();
  await settle();
  far.onClose((code, reason) => reported.push(`far ${code} ${reason}`));
  assert.deepEqual(reported, ['near 1001', 'far 1001 bye']);
});

test('createMessagePair() gives up on a side that never reads', async () => {
  const [near, far] = createMessagePair('p');
  let code = 0;
  near.onClose((c) => {
    code = c;
  });
  for (let i = 0; i < 5; i++) near.send(new Uint8Array(1024 * 1024));
  await settle();
  assert.equal(code, 1009);
  assert.equal(far.protocol, 'p');
});
