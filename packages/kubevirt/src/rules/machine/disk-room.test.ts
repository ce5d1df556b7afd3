import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import {
  type DiskPause,
  diskFloor,
  diskPauseOf,
  ephemeralLimit,
  ephemeralRequest,
  hasDiskPressure,
} from './disk-room.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

// S-826: Where a node is short of disk space, guests that have written more than was set aside for them
//   (`requests.ephemeral-storage`: overlays, empty disks and logs count) are paused first; those within their request
//   go on to the node's floor.
// S-501
test('a guest is paused at its limit and at the floor of the node, and goes on only with room to spare', () => {
  const cases: readonly [
    what: string,
    measure: { used?: number; grown?: number; limit?: number; requested?: number; free?: number },
    before: DiskPause | undefined,
    after: DiskPause | undefined,
  ][] = [
    ['no limit, room', { used: 500 * GIB, grown: GIB }, undefined, undefined],
    ['below its limit', { used: 90 * MIB, grown: 5 * MIB, limit: 100 * MIB }, undefined, undefined],
    [
      'it would pass its limit before the next look',
      { used: 90 * MIB, grown: 11 * MIB, limit: 100 * MIB },
      undefined,
      'limit',
    ],
    ['just below its limit again', { used: 95 * MIB, limit: 100 * MIB }, 'limit', 'limit'],
    ['a tenth of its limit free', { used: 90 * MIB, limit: 100 * MIB }, 'limit', undefined],
    ['its limit was raised', { used: 95 * MIB, limit: 200 * MIB }, 'limit', undefined],
    ['its limit was taken away', { used: 95 * MIB }, 'limit', undefined],
    ['it writes, and the node is at its floor', { grown: 2 * MIB, free: GIB }, undefined, 'floor'],
    ['it writes faster than there is room until the next look', { grown: GIB, free: 1.5 * GIB }, undefined, 'floor'],
    ['it writes nothing, and the node is below its floor', { grown: 4096, free: 10 * MIB }, undefined, undefined],
    [
      'beyond its request, and the node is short of room',
      { used: 51 * MIB, requested: 50 * MIB, grown: 2 * MIB, free: 1.9 * GIB },
      undefined,
      'floor',
    ],
    [
      'within its request, and the node is short of room',
      { used: 50 * MIB, requested: 50 * MIB, grown: 2 * MIB, free: 1.9 * GIB },
      undefined,
      undefined,
    ],
    [
      'within its request, and the node is at its floor',
      { used: 50 * MIB, requested: 50 * MIB, grown: 2 * MIB, free: GIB },
      undefined,
      'floor',
    ],
    [
      'beyond its request, and a little room again',
      { used: 51 * MIB, requested: 50 * MIB, free: 2.4 * GIB },
      'floor',
      'floor',
    ],
    [
      'beyond its request, and room again',
      { used: 51 * MIB, requested: 50 * MIB, free: 2.6 * GIB },
      'floor',
      undefined,
    ],
    ['a little room on the node', { free: 1.2 * GIB }, 'floor', 'floor'],
    ['room on the node', { free: 1.3 * GIB }, 'floor', undefined],
    [
      'room on the node, and none within its limit',
      { used: 99 * MIB, limit: 98 * MIB, free: 9 * GIB },
      'floor',
      'limit',
    ],
  ];
  for (const [what, { used = 0, grown = 0, limit, requested = 0, free = 50 * GIB }, before, after] of cases)
    assert.equal(
      diskPauseOf({ used, grown, limit, requested, space: { free, total: 100 * GIB } }, before),
      after,
      what,
    );
});

// S-501
test('the floor lies above the marks of the API server on a disk of any size, and pressure above the floor', () => {
  for (const total of [100 * MIB, GIB, 20 * GIB, 4000 * GIB]) {
    const { pause, pressure } = diskFloor(total);
    // `diskMarks` of apiserver/storage: no new objects below it.
    assert.ok(pause > Math.min(total * 0.05, 64 * MIB) && pressure > pause, String(total));
  }
  const total = 100 * GIB;
  assert.equal(hasDiskPressure({ free: 2 * GIB, total }, false), false);
  assert.equal(hasDiskPressure({ free: 1.9 * GIB, total }, false), true);
  assert.equal(hasDiskPressure({ free: 2.4 * GIB, total }, true), true);
  assert.equal(hasDiskPressure({ free: 2.6 * GIB, total }, true), false);
});

// S-501
test('a Pod has the limits of its containers together, or none, and their requests', () => {
  const pod = (...limits: (string | undefined)[]): Pod =>
    ({
      spec: {
        containers: limits.map((limit) => ({ resources: { limits: limit ? { 'ephemeral-storage': limit } : {} } })),
      },
    }) as unknown as Pod;
  const requests = [{ requests: { 'ephemeral-storage': '50M' } }, {}, { requests: { 'ephemeral-storage': '1Mi' } }];
  const placed = { spec: { containers: requests.map((resources) => ({ resources })) } } as unknown as Pod;
  assert.equal(ephemeralRequest(placed), 50_000_000 + MIB);
  assert.equal(ephemeralRequest(pod()), 0);
  assert.equal(ephemeralLimit(pod()), undefined);
  assert.equal(ephemeralLimit(pod(undefined)), undefined);
  assert.equal(ephemeralLimit(pod('1Gi', undefined, '10Mi')), GIB + 10 * MIB);
});
