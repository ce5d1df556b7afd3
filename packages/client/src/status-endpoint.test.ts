import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '../../kubevirt/src/kinds/kinds.ts';
import type { ApiHandler } from '../../runtime/src/http/seam.ts';
import { isNotFound } from './api-failure.ts';
import { createClient } from './create-client.ts';

const KEY = { namespace: 'ns', name: 'vm' };
const encode = (status: number, body: object) => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(JSON.stringify(body)),
});

/** A server that takes the status of instances in one place, and can be configured to take it in the other. */
function serverWith(place: '' | 'status') {
  const server = { place, requests: [] as string[], exists: true };
  let version = 1;
  const handler: ApiHandler = async ({ method, path }) => {
    server.requests.push(`${method} ${path.replace(/.*namespaces/, '')}`);
    if (method === 'GET') {
      const names = ['virtualmachineinstances', ...(server.place === '' ? [] : ['virtualmachineinstances/status'])];
      return encode(200, { resources: names.map((name) => ({ name })) });
    }
    const isStatus = path.endsWith('/status');
    if (!server.exists || (isStatus && server.place === '' && !path.includes('/pods/')))
      return encode(404, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 });
    // Without a status subresource the status is a part of the object; with one a write of the object leaves it.
    if (isStatus || server.place === '') version++;
    return encode(200, { metadata: { resourceVersion: String(version) }, isStatus });
  };
  const client = createClient(handler);
  const write = (): Promise<unknown> =>
    client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      KEY,
      { type: 'merge', body: { metadata: { resourceVersion: String(version) }, status: { phase: 'Running' } } },
      { subresource: 'status' },
    );
  return { server, client, write };
}

for (const [place, path] of [
  ['', '/ns/virtualmachineinstances/vm'],
  ['status', '/ns/virtualmachineinstances/vm/status'],
] as const)
  test(`a status goes to ${path} where discovery says so, which is asked once`, async () => {
    const { server, write } = serverWith(place);
    await write();
    await write();
    assert.deepEqual(server.requests, ['GET /apis/kubevirt.io/v1', `PATCH ${path}`, `PATCH ${path}`]);
  });

for (const place of ['', 'status'] as const)
  test(`a definition that is replaced while we run is noticed at the next write (from "${place}")`, async () => {
    const { server, write } = serverWith(place);
    await write();
    server.place = place === '' ? 'status' : '';
    assert.equal(((await write()) as { isStatus: boolean }).isStatus, place === '', 'it arrived');
    server.requests.length = 0;
    await write();
    assert.equal(server.requests.length, 1);
  });

// S-417: Controllers and agents write a status where the server takes it, nulls kept.
test('an object that is gone is not found; other kinds are written without asking', async () => {
  const { server, client, write } = serverWith('status');
  server.exists = false;
  await assert.rejects(write(), isNotFound);
  server.exists = true;
  server.requests.length = 0;
  await client.patch(PODS, KEY, { type: 'merge', body: {} }, { subresource: 'status' });
  assert.deepEqual(server.requests, ['PATCH /ns/pods/vm/status']);
});
