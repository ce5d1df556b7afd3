import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS } from '../../api/kinds/builtin/resource-types.ts';
import type { Secret } from '../../api/kinds/builtin/types.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import { formatTime } from '../../api/meta/object.ts';
import { createFakeClock } from '../../base/clock/fake-clock.ts';
import { createLogger, type LogRecord } from '../../base/log/log.ts';
import { createClient } from '../../client/create-client.ts';
import { createFakeApi } from '../../client/fake-api.fixture.ts';
import { createInformerSet } from '../../client/informer/informer-set.ts';
import { createLegacyTokenCleanerController, tokenVerdict } from './legacy-token-cleaner-controller.ts';

const USED = 'kubernetes.io/legacy-token-last-used';
const INVALID = 'kubernetes.io/legacy-token-invalid-since';
const DAY_MS = 86_400_000;

const holder = (name: string, metadata: object = {}): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name,
    namespace: 'a',
    creationTimestamp: '2030-01-01T00:00:00Z',
    annotations: { 'kubernetes.io/service-account.name': 'robot' },
    ...metadata,
  },
  type: 'kubernetes.io/service-account-token',
});

// S-350: Tokens in Secrets that nobody uses are marked after a year and go after another; used ones and users' own
//   stay.
test('tokenVerdict() goes by the days that stand on the Secret', () => {
  const now = Date.UTC(2032, 5, 15, 12);
  // A year before is 2031-06-16, as 2032 has a 29th of February.
  const cases: [string, object, string | undefined, 'keep' | 'mark' | 'delete'][] = [
    ['never used', {}, '2030-01-01', 'mark'],
    ['nobody notes uses', {}, undefined, 'keep'],
    ['uses are noted since a day that is none', {}, 'yesterday', 'keep'],
    ['uses are noted for just a year', {}, '2031-06-15', 'mark'],
    ['uses are noted for less than that', {}, '2031-06-16', 'keep'],
    ['made within the year', { creationTimestamp: '2031-06-17T00:00:00Z' }, '2030-01-01', 'keep'],
    ['going already', { deletionTimestamp: '2032-06-01T00:00:00Z' }, '2030-01-01', 'keep'],
    ['used within the year', { labels: { [USED]: '2031-06-16' } }, '2030-01-01', 'keep'],
    ['used before it', { labels: { [USED]: '2031-06-15' } }, '2030-01-01', 'mark'],
    ['used on a day that is none', { labels: { [USED]: '15.6.2030' } }, '2030-01-01', 'keep'],
    ['marked on a day that is none', { labels: { [INVALID]: 'x' } }, '2030-01-01', 'mark'],
    ['marked within the year', { labels: { [INVALID]: '2031-06-16' } }, '2030-01-01', 'keep'],
    ['marked before it', { labels: { [INVALID]: '2031-06-15' } }, '2030-01-01', 'delete'],
    ['marked, and used since', { labels: { [INVALID]: '2031-06-15', [USED]: '2032-01-01' } }, '2030-01-01', 'keep'],
  ];
  for (const [title, metadata, since, expected] of cases) {
    assert.equal(tokenVerdict(holder('x', metadata), { since, now }), expected, title);
  }
});

// S-350
// Compat Authentication and impersonation, P2, yes: tokens of Secrets that nobody uses: marked after a year, deleted
//   after another, where a controller made them and no Pod mounts them
test('a token that nobody uses is marked after a year and goes after another, if a controller made it', async () => {
  const clock = createFakeClock(Date.UTC(2030, 0, 1));
  const api = createFakeApi([CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS] as ResourceType<never>[]);
  const client = createClient(api.handler);
  const informers = createInformerSet(client, { clock });
  const logged: LogRecord[] = [];
  const log = createLogger((record) => logged.push(record), 'error');
  const controller = createLegacyTokenCleanerController({ client, informers, clock, log });
  api.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kube-apiserver-legacy-service-account-token-tracking', namespace: 'kube-system' },
    data: { since: '2030-01-01' },
  });
  api.put({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'robot', namespace: 'a', uid: 'u' },
    secrets: ['idle', 'mounted', 'other', 'used'].map((name) => ({ name })),
  });
  const annotations = { 'kubernetes.io/service-account.name': 'robot', 'kubernetes.io/service-account.uid': 'v' };
  for (const secret of [
    holder('idle'),
    holder('mounted'),
    holder('own'),
    holder('used'),
    holder('other', { annotations }),
    { ...holder('opaque'), type: 'Opaque' },
  ])
    api.put(secret);
  api.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a' },
    spec: { containers: [{ name: 'c', envFrom: [{ secretRef: { name: 'mounted' } }] }] },
  });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), controller.start(stop.signal)]);
  // Before a day passes at once: a controller whose informers take longer than a minute ends.
  await informers.synced(stop.signal);
  const days = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await clock.advance(DAY_MS);
  };
  const marks = () =>
    Object.fromEntries(
      (api.all(SECRETS) as unknown as Secret[]).map(({ metadata }) => [metadata.name, metadata.labels?.[INVALID]]),
    );
  const none = { idle: undefined, mounted: undefined, opaque: undefined, other: undefined, own: undefined };
  await days(365);
  api.put(holder('used', { labels: { [USED]: formatTime(clock.now()).slice(0, 10) } }));
  assert.deepEqual(marks(), { ...none, used: undefined }, 'the day on which uses began to be noted does not count');
  await days(3);
  const { idle } = marks();
  assert.match(idle ?? '', /^2031-01-0[23]$/);
  assert.deepEqual(marks(), { ...none, idle, used: undefined });
  await days(360);
  assert.equal('idle' in marks(), true);
  await days(8);
  assert.equal('idle' in marks(), false);
  assert.deepEqual(Object.keys(marks()).sort(), ['mounted', 'opaque', 'other', 'own', 'used']);
  stop.abort();
  await clock.advance(0);
  await run;
  assert.deepEqual(logged, []);
});
