import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import {
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  RESOURCE_QUOTAS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod, PolicyRule } from '../../packages/apimachinery/src/types/types.ts';
import { allowsPath, allowsResource } from '../../packages/apiserver/src/auth/rbac.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { createInformerSet } from '../../packages/client/src/informer/informer-set.ts';
import { kubeControllers } from '../../packages/kube-controllers/src/controllers/kube-controllers.ts';
import { createScheduler, schedulerRules } from '../../packages/kube-controllers/src/scheduler/scheduler.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { createLogger, type LogRecord } from '../../packages/runtime/src/log/log.ts';
import { startServer } from '../testkit/in-process-server.ts';

const parts = [...kubeControllers, { name: 'scheduler', rules: schedulerRules, create: createScheduler }];

// S-103: Scheduler and kube-controllers have an identity each and do all their work with the rights they name, no rule
//   with a wildcard verb.
test('scheduler and kube-controllers do all their work with the rights they name', async () => {
  const refused: string[] = [];
  const rulesOf = new Map<string, readonly PolicyRule[]>(parts.map(({ name, rules }) => [name, rules]));
  const server = await startServer({
    authenticate: async ({ headers }) => ({ username: headers['user-agent'] ?? '', groups: [] }),
    authorize: ({ username }, attributes) => {
      const rules = rulesOf.get(username);
      const allowed =
        rules === undefined ||
        rules.some((rule) =>
          attributes.type === 'path' ? allowsPath(rule, attributes) : allowsResource(rule, attributes),
        );
      if (!allowed) refused.push(`${username}: ${JSON.stringify(attributes)}`);
      return { allowed, reason: '' };
    },
  });
  // The parts' time is moved by hand: a minute of silence and an hour of age pass at once.
  const clock = createFakeClock(Date.now());
  const logged: LogRecord[] = [];
  const log = createLogger((record) => logged.push(record), 'warn');
  const stop = new AbortController();
  const running = parts.map(async ({ name, create }) => {
    const client = createClient(server.handler, { userAgent: name });
    const informers = createInformerSet(client, { clock });
    const part = create({ client, informers, clock, log, rootCa: 'PEM' });
    await Promise.all([informers.start(stop.signal), part.start(stop.signal)]);
  });
  const user = createClient(server.handler, { userAgent: 'user' });
  const until = async (wanted: () => Promise<boolean>): Promise<void> => {
    while (!(await wanted())) {
      await clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const missing = async (read: Promise<unknown>): Promise<boolean> => {
    try {
      await read;
      return false;
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
  };
  const inA = (name: string) => ({ namespace: 'a', name });
  const pod = (name: string, cpu: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a' },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }] },
  });

  await user.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } });
  await until(async () => (await user.list(SERVICE_ACCOUNTS, { namespace: 'a' })).items.length === 1);
  await until(async () => (await user.list(CONFIG_MAPS, { namespace: 'a' })).items.length === 1);
  await user.patch(CONFIG_MAPS, inA('kube-root-ca.crt'), { type: 'merge', body: { data: { 'ca.crt': 'forged' } } });
  await until(async () => (await user.get(CONFIG_MAPS, inA('kube-root-ca.crt'))).data?.['ca.crt'] === 'PEM');

  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'n', namespace: 'kube-node-lease' },
    spec: {},
  };
  await user.create(LEASES, lease);
  await user.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
  const status = {
    allocatable: { cpu: '2', memory: '4Gi', pods: '10' },
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  await user.patch(NODES, { namespace: '', name: 'n' }, { type: 'merge', body: { status } }, { subresource: 'status' });
  await user.create(PODS, pod('small', '1'));
  await user.create(PODS, pod('large', '64'));
  await until(async () => (await user.get(PODS, inA('small'))).spec.nodeName === 'n');
  await until(async () => (await user.get(PODS, inA('large'))).status?.conditions?.[0]?.reason === 'Unschedulable');
  await until(async () => (await user.list(EVENTS, { namespace: 'a' })).items.length >= 2);

  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q', namespace: 'a' } };
  await user.create(RESOURCE_QUOTAS, { ...quota, spec: { hard: { pods: '9', secrets: '3', services: '5' } } });
  await until(async () => (await user.get(RESOURCE_QUOTAS, inA('q'))).status?.used?.['pods'] === '2');
  await user.create(SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's', namespace: 'a' },
    spec: { clusterIP: 'None', selector: { app: 'small' }, ports: [{ port: 80 }] },
  });
  await until(async () => (await user.list(ENDPOINT_SLICES, { namespace: 'a' })).items.length === 1);
  await until(async () => (await user.list(ENDPOINTS, { namespace: 'a' })).items.length === 1);
  await user.delete(SERVICES, inA('s'));
  await until(async () => (await user.list(ENDPOINTS, { namespace: 'a' })).items.length === 0);

  const template = { metadata: { labels: { app: 'set' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const stateful = (await user.raw('POST', '/apis/apps/v1/namespaces/a/statefulsets', {
    body: {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'set' },
      spec: { replicas: 3, serviceName: 's', selector: { matchLabels: { app: 'set' } }, template },
    },
  })) as KubeObject;
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    name: 'set',
    uid: stateful.metadata.uid ?? '',
    controller: true,
  };
  const member = pod('member', '1m');
  await user.create(PODS, {
    ...member,
    metadata: { ...member.metadata, labels: { app: 'set' }, ownerReferences: [owner] },
  });
  await user.create(POD_DISRUPTION_BUDGETS, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'budget', namespace: 'a' },
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'set' } } },
  });
  await until(async () => (await user.get(POD_DISRUPTION_BUDGETS, inA('budget'))).status?.expectedPods === 3);

  await user.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'claim', namespace: 'a', finalizers: ['kubernetes.io/pvc-protection'] },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  await user.delete(PERSISTENT_VOLUME_CLAIMS, inA('claim'));
  await until(() => missing(user.get(PERSISTENT_VOLUME_CLAIMS, inA('claim'))));
  await user.create(PERSISTENT_VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'volume', finalizers: ['kubernetes.io/pv-protection'] },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
  });
  await user.delete(PERSISTENT_VOLUMES, { namespace: '', name: 'volume' });
  await until(() => missing(user.get(PERSISTENT_VOLUMES, { namespace: '', name: 'volume' })));

  const node = { namespace: '', name: 'n' };
  await user.patch(
    PODS,
    inA('small'),
    { type: 'merge', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
    { subresource: 'status' },
  );
  await until(async () => ((await user.get(NODES, node)).spec?.taints ?? []).length === 1);
  await until(async () => (await user.get(PODS, inA('small'))).status?.conditions?.[0]?.reason === 'NodeNotReady');
  const taints = [{ key: 'mine', effect: 'NoExecute' }];
  await user.patch(NODES, node, { type: 'strategic', body: { spec: { taints } } });
  await until(async () => (await user.get(PODS, inA('small'))).metadata.deletionTimestamp !== undefined);
  await user.delete(NODES, node);
  await until(() => missing(user.get(PODS, inA('small'))));

  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'no-such' }];
  await user.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'c', namespace: 'a', ownerReferences },
  });
  await until(() => missing(user.get(CONFIG_MAPS, inA('c'))));
  const events = async () => (await user.list(EVENTS, { namespace: 'a' })).items.length;
  await clock.advance(3_600_000);
  await until(async () => (await events()) === 0);
  await user.delete(NAMESPACES, { namespace: '', name: 'a' });
  await until(() => missing(user.get(NAMESPACES, { namespace: '', name: 'a' })));

  stop.abort();
  await Promise.all(running);
  await server.stop();
  assert.deepEqual([...new Set(refused)], []);
  assert.deepEqual(
    logged
      .filter((one) => one.level === 'error')
      .map((one) => `${one.fields['controller']}: ${one.message} ${one.fields['error']}`),
    [],
  );
});
