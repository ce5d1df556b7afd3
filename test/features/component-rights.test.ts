import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PolicyRule } from '../../src/api/kinds/builtin/access-types.ts';
import {
  CONFIG_MAPS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
  SERVICE_ACCOUNTS,
} from '../../src/api/kinds/builtin/resource-types.ts';
import type { Pod } from '../../src/api/kinds/builtin/types.ts';
import { createFakeClock } from '../../src/base/clock/fake-clock.ts';
import { createLogger, type LogRecord } from '../../src/base/log/log.ts';
import { isNotFound } from '../../src/client/api-failure.ts';
import { createClient } from '../../src/client/create-client.ts';
import { createInformerSet } from '../../src/client/informer/informer-set.ts';
import { janitorControllers } from '../../src/control/janitor/janitor-controllers.ts';
import { createScheduler, schedulerRules } from '../../src/control/scheduler/scheduler.ts';
import { allowsPath, allowsResource } from '../../src/server/auth/rbac.ts';
import { startServer } from '../testkit/in-process-server.ts';

const parts = [...janitorControllers, { name: 'scheduler', rules: schedulerRules, create: createScheduler }];

test('scheduler and janitors do all their work with the rights they name', async () => {
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

  await until(async () => ((await user.get(NODES, { namespace: '', name: 'n' })).spec?.taints ?? []).length === 2);
  await user.delete(NODES, { namespace: '', name: 'n' });
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
