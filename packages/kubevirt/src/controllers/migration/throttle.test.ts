import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationOf, vmiOf } from './migration.fixture.ts';
import { backoffUntil, mayStart, retryMs } from './throttle.ts';

const LIMITS = { parallelMigrationsPerCluster: 5, parallelOutboundMigrationsPerNode: 2 };
const at = (second: number) => `2030-01-01T00:00:${String(second).padStart(2, '0')}Z`;
const waiting = (name: string, sourceNode: string, second = 0, priority?: string) => ({
  migration: migrationOf(name, {
    metadata: { creationTimestamp: at(second) },
    ...(priority && { spec: { priority } }),
  }),
  sourceNode,
});
type Waiting = ReturnType<typeof waiting>;

const CASES: readonly [what: string, line: Waiting[], running: string[], started: string[]][] = [
  ['all there is room for', [waiting('a', 'n1'), waiting('b', 'n2')], [], ['a', 'b']],
  ['the cluster is full', [waiting('a', 'n9')], ['n1', 'n1', 'n2', 'n2', 'n3'], []],
  [
    'one place in the cluster: the oldest',
    [waiting('a', 'n9', 2), waiting('b', 'n8', 1)],
    ['n1', 'n1', 'n2', 'n2'],
    ['b'],
  ],
  ['the node sends enough already', [waiting('a', 'n1')], ['n1', 'n1'], []],
  ['two of three leave a node', [waiting('a', 'n1', 1), waiting('b', 'n1', 2), waiting('c', 'n1', 3)], [], ['a', 'b']],
  ['a busy node does not hold up the others', [waiting('a', 'n1', 1), waiting('b', 'n2', 2)], ['n1', 'n1'], ['b']],
  [
    'priority before age',
    [
      waiting('none', 'n1', 1),
      waiting('tidy', 'n2', 2, 'system-maintenance'),
      waiting('user', 'n3', 3, 'user-triggered'),
      waiting('critical', 'n4', 4, 'system-critical'),
    ],
    ['n8', 'n8', 'n9'],
    ['user', 'critical'],
  ],
];
for (const [what, line, running, started] of CASES) {
  test(`mayStart(): ${what}`, () => {
    const may = line.filter(({ migration }) => mayStart(migration, { waiting: line, running, limits: LIMITS }));
    assert.deepEqual(
      may.map(({ migration }) => migration.metadata.name),
      started,
    );
    const turned = [...line].reverse();
    for (const { migration } of line)
      assert.equal(
        mayStart(migration, { waiting: turned, running, limits: LIMITS }),
        started.includes(migration.metadata.name ?? ''),
      );
  });
}

test('mayStart() is false for one that does not wait', () => {
  assert.equal(mayStart(migrationOf('x'), { waiting: [waiting('a', 'n1')], running: [], limits: LIMITS }), false);
});

test('retryMs() is shorter for what is urgent', () => {
  const of = (priority?: string) => retryMs(migrationOf('a', priority ? { spec: { priority } } : {}));
  assert.deepEqual(
    [of('system-critical'), of('user-triggered'), of('system-maintenance'), of()],
    [1000, 3000, 5000, 5000],
  );
});

const evacuation = (
  name: string,
  second: number,
  phase?: string,
  more: { deleting?: boolean; ignore?: boolean; manual?: boolean } = {},
) =>
  migrationOf(name, {
    metadata: {
      creationTimestamp: at(second),
      annotations: {
        ...(!more.manual && { 'kubevirt.io/evacuationMigration': 'n1' }),
        ...(more.ignore && { 'kubevirt.io/func-test-ignore-migration-backoff': '' }),
      },
      ...(more.deleting && { deletionTimestamp: at(second) }),
    },
    ...(phase && {
      status: { phase, phaseTransitionTimestamps: [{ phase, phaseTransitionTimestamp: at(second + 1) }] },
    }),
  });
const vmi = vmiOf({}, { creationTimestamp: at(1) });
const BACKOFFS: readonly [what: string, history: ReturnType<typeof evacuation>[], seconds: number | undefined][] = [
  ['the first one', [], undefined],
  ['after one failure', [evacuation('f', 10, 'Failed')], 11 + 20],
  ['after two', [evacuation('e', 5, 'Failed'), evacuation('f', 10, 'Failed')], 11 + 40],
  ['after three', [evacuation('d', 1, 'Failed'), evacuation('e', 5, 'Failed'), evacuation('f', 10, 'Failed')], 11 + 80],
  ['a success wipes the slate', [evacuation('e', 5, 'Failed'), evacuation('f', 10, 'Succeeded')], undefined],
  [
    'failures before a success do not count',
    [evacuation('d', 1, 'Failed'), evacuation('e', 5, 'Succeeded'), evacuation('f', 10, 'Failed')],
    11 + 20,
  ],
  [
    'a success of any kind wipes the slate: the guest can move',
    [evacuation('d', 1, 'Failed'), evacuation('e', 5, 'Succeeded', { manual: true }), evacuation('f', 10, 'Failed')],
    11 + 20,
  ],
  [
    'what an earlier instance of the name failed at does not count',
    [evacuation('a', 0, 'Failed'), evacuation('f', 10, 'Failed')],
    11 + 20,
  ],
  ['what was taken back does not count', [evacuation('f', 10, 'Failed', { deleting: true })], undefined],
  ["a user's own failures do not count", [evacuation('f', 10, 'Failed', { manual: true })], undefined],
];
for (const [what, history, seconds] of BACKOFFS) {
  // S-275: After a failure every automatic migration of the instance that waits is held back, longer each time, until
  //   one succeeds.
  test(`backoffUntil(): ${what}`, () => {
    const newest = evacuation('new', 30);
    const expected = seconds === undefined ? undefined : Date.parse(at(0)) + seconds * 1000;
    assert.equal(backoffUntil(newest, { vmi, others: [newest, ...history] }), expected);
    assert.equal(backoffUntil(newest, { vmi, others: [...history, newest] }), expected);
  });
}

// S-275
// Compat KubeVirt's API, P1, yes: back-off of automatic migrations
test('backoffUntil() holds back every one that waits, in whatever order they were made', () => {
  const failed = evacuation('m', 10, 'Failed');
  // Of the second in which the first one failed, and with names on both sides of its.
  const waiting = [evacuation('a', 10), evacuation('z', 10)];
  for (const one of waiting)
    assert.equal(
      backoffUntil(one, { vmi, others: [failed, ...waiting] }),
      Date.parse(at(11)) + 20_000,
      one.metadata.name ?? '',
    );
});

test('backoffUntil() leaves alone what a user asked for, and what says so', () => {
  const failed = evacuation('f', 10, 'Failed');
  for (const more of [{ manual: true }, { ignore: true }]) {
    const one = evacuation('new', 30, undefined, more);
    assert.equal(backoffUntil(one, { vmi, others: [one, failed] }), undefined);
  }
});
