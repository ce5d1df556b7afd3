import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createResourceQuotaController } from '../../packages/kube-controllers/src/controllers/resource-quota-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let server: InProcessServer;
let controllers: RunningControllers;

before(async () => {
  server = await startServer({ defaultAdmission: true });
  controllers = runControllers(server, (environment) => [createResourceQuotaController(environment)]);
});
after(() => controllers.stop());

const PATH = '/api/v1/namespaces/default';
const statusOf = async (quota: string) =>
  (await server.request('GET', `${PATH}/resourcequotas/${quota}`)).json.status ?? {};
const usedIs = (quota: string, wanted: Record<string, string>) =>
  eventually(async () => JSON.stringify((await statusOf(quota)).used) === JSON.stringify(wanted));
const createQuota = (name: string, hard: Record<string, string>) =>
  server.create(`${PATH}/resourcequotas`, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name },
    spec: { hard },
  });
const pod = (name: string) =>
  server.request('POST', `${PATH}/pods`, {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
    },
  });

// S-166
// Compat Admission and quota, P1, yes: quota status is filled and given back
test('a quota is filled in, charged, and gets back what was deleted or has ended', async () => {
  await server.create(`${PATH}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  await pod('before');
  await createQuota('pods', { pods: '2' });
  await usedIs('pods', { pods: '1' });
  assert.deepEqual((await statusOf('pods')).hard, { pods: '2' });
  assert.equal((await pod('one')).status, 201);
  assert.equal((await pod('two')).status, 403);
  await server.request('DELETE', `${PATH}/pods/before?gracePeriodSeconds=0`);
  await usedIs('pods', { pods: '1' });
  await server.request('PATCH', `${PATH}/pods/one/status`, { body: { status: { phase: 'Succeeded' } } });
  await usedIs('pods', { pods: '0' });
  await server.request('DELETE', `${PATH}/resourcequotas/pods`);
});

// S-166
test('a charge for a write that failed is given back', async () => {
  await createQuota('names', { 'count/configmaps': '5' });
  await eventually(async () => (await statusOf('names')).used?.['count/configmaps'] !== undefined);
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'taken' } };
  await server.create(`${PATH}/configmaps`, configMap);
  const again = await server.request('POST', `${PATH}/configmaps`, { body: configMap });
  assert.equal(again.status, 409);
  await usedIs('names', { 'count/configmaps': '1' });
  await server.request('DELETE', `${PATH}/resourcequotas/names`);
});

test('kinds counted by number, custom resources included; a changed limit shows in the status', async () => {
  await server.create(`${PATH}/secrets`, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } });
  await createQuota('many', {
    secrets: '3',
    'count/leases.coordination.k8s.io': '2',
    'count/nothing.example.com': '1',
  });
  await usedIs('many', { 'count/leases.coordination.k8s.io': '0', secrets: '1' });
  await server.request('PATCH', `${PATH}/resourcequotas/many`, {
    body: { spec: { hard: { secrets: '9', 'count/nothing.example.com': null } } },
  });
  await eventually(async () => (await statusOf('many')).hard?.secrets === '9');
  assert.deepEqual(Object.keys((await statusOf('many')).hard).sort(), ['count/leases.coordination.k8s.io', 'secrets']);
  await server.request('DELETE', `${PATH}/resourcequotas/many`);
});
