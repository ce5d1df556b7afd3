/** Large bodies wait for one thread, and only so many of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createLargeWork } from '../../packages/coracle/src/compose/large-work.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const reader = createLargeWork({ maxDocuments: 1, patience: 600_000, idle: 600_000 });
let server: InProcessServer;
before(async () => {
  // What its start takes is no part of a request, which has a time limit.
  await reader.read({ type: 'application/json', bytes: new TextEncoder().encode('{}') });
  server = await startServer({ runStage: reader.runStage });
});
after(async () => {
  await server.stop();
  await reader.close();
});

const large = (name: string): string => {
  const lines = Array.from({ length: 4000 }, (_, at) => `  key-${at}: ${'x'.repeat(40)}`);
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n${lines.join('\n')}\n`;
};
const post = (name: string) =>
  server.request('POST', MAPS, { body: large(name), headers: { 'content-type': 'application/yaml' } });
const apply = (name: string) =>
  server.request('PATCH', `${MAPS}/${name}?fieldManager=me`, {
    body: large(name),
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });

for (const [name, send] of [
  ['created', post],
  ['applied', apply],
] as const) {
  // S-294
  test(`one that comes when too many wait is asked to retry: ${name}`, async () => {
    const [first, second] = await Promise.all([send(`${name}-a`), send(`${name}-b`)]);
    assert.equal(first.status, 201, first.text);
    assert.deepEqual(
      [second.status, second.json.reason, second.json.message, second.headers['retry-after']],
      [429, 'TooManyRequests', 'Too many requests, please try again later.', '1'],
    );
    assert.equal((await send(`${name}-b`)).status, 201);
  });
}
