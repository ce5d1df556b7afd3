import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '../../../client/src/client.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import { identifyServer } from './remote-components.ts';

const of = (answer: unknown) => identifyServer({ raw: async () => answer } as unknown as Client, NEVER);

// S-320: A server that is too old is refused in one line.
test('identifyServer() tells our servers from others, refuses those that are too old, and says what an old one lacks', async () => {
  assert.deepEqual(await of({ gitVersion: 'v1.36.0+coracle.0.2' }), { isOurs: true });
  for (const gitVersion of ['v1.31.0', 'v1.36.2-gke.100', 'v1.33.4+k3s1', 'v2.0.0', '', 'main'])
    assert.deepEqual(await of({ gitVersion }), { isOurs: false }, gitVersion);
  assert.deepEqual(await of(undefined), { isOurs: false });
  assert.deepEqual(await of({ gitVersion: 'v1.30.14-eks-1' }), {
    isOurs: false,
    lacks:
      'the API server is Kubernetes v1.30.14-eks-1: guests cannot move from node to node, which takes 1.31 or newer',
  });
  assert.match((await of({ gitVersion: 'v1.22.0' })).lacks ?? '', /^the API server is Kubernetes v1\.22\.0: /);
  for (const gitVersion of ['v1.20.2', 'v1.21.14'])
    await assert.rejects(of({ gitVersion }), {
      message: `the API server is Kubernetes ${gitVersion}; Coracle needs 1.22 or newer`,
    });
});
