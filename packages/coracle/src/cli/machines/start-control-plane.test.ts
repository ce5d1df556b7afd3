import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { NAMESPACES, NODES, SERVICE_ACCOUNTS } from '../../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { dataDirAt } from '../../config/data-dir.ts';
import { publishRunning } from '../../config/running.ts';
import { awaitFirstNode } from './start-control-plane.ts';

const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'vm' } };
const HOME = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };
const ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'shop', name: 'default' } };
const TAINTED = { ...NODE, spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] } };

const table: { what: string; age?: number; nodes?: string[]; objects: object[]; later?: object[] }[] = [
  { what: 'a namespace that is absent', objects: [TAINTED] },
  { what: 'a control plane that runs for longer', age: 60_000, objects: [HOME, TAINTED] },
  { what: 'a control plane without nodes', nodes: [], objects: [HOME, ACCOUNT] },
  { what: 'a node that takes Pods', objects: [HOME, ACCOUNT, NODE] },
  { what: 'the account of the namespace', objects: [HOME, NODE], later: [ACCOUNT] },
  { what: 'a node that is not ready', objects: [HOME, ACCOUNT, TAINTED], later: [NODE] },
];

for (const { what, age = 0, nodes = ['vm'], objects, later } of table)
  test(`a first machine ${later ? 'waits for' : 'does not wait for'} ${what}`, async (t) => {
    const root = mkdtempSync(join(tmpdir(), 'coracle-first-'));
    t.after(() => rmSync(root, { recursive: true, force: true }));
    const dir = dataDirAt(root);
    const startedAt = new Date(Date.now() - age).toISOString();
    await publishRunning(dir, { url: 'https://127.0.0.1:1', version: '0', nodes, startedAt });
    const api = createFakeApi([NAMESPACES, NODES, SERVICE_ACCOUNTS]);
    for (const object of objects) void api.put(object as never);
    let over = false;
    const waited = awaitFirstNode(dir, createClient(api.handler), { namespace: 'shop', signal: t.signal }).then(() => {
      over = true;
    });
    await eventually('it has looked', () => over || api.requests.filter((one) => /nodes/.test(one)).length > 1);
    assert.equal(over, later === undefined);
    for (const object of later ?? []) void api.put(object as never);
    await waited;
  });
