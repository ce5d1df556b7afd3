/**
 * Property: whatever is made and deleted, whichever copies are stale and wherever a pass stops between its writes, no
 * volume is ever two claims', no claim ever has two volumes, and left alone everything comes to rest consistently.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../apimachinery/src/types/types.ts';
import { boundStatus, unboundStatus, withClaim, withPhase, withVolume } from './bind-writes.ts';
import { claimStep } from './claim-step.ts';
import { unbound, volumeStep } from './volume-step.ts';

type Stored = PersistentVolume | PersistentVolumeClaim;
const storageClass = { apiVersion: 'v1', kind: 'StorageClass', metadata: { name: 's' }, provisioner: 'p' };

/** A store with revisions, and a copy of it that lags behind as far as it is set to. */
class World {
  readonly stored = new Map<string, Stored>();
  seen = new Map<string, Stored>();
  #revision = 0;
  /** Writes that the pass under way may still make. */
  #left = Number.POSITIVE_INFINITY;

  put(key: string, object: Stored): void {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#revision) };
    this.stored.set(key, { ...object, metadata } as Stored);
  }

  /** One write of a pass, under the revision that it read. */
  save<T extends Stored>(key: string, before: T, after: T): T {
    if (before === after || JSON.stringify(before) === JSON.stringify(after)) return before;
    if (this.#left-- <= 0) throw new Error('stopped');
    const held = this.stored.get(key);
    if (!held || held.metadata.resourceVersion !== before.metadata.resourceVersion) throw new Error('conflict');
    this.put(key, after);
    return this.stored.get(key) as T;
  }

  pass(key: string, writes: number): void {
    this.#left = writes;
    try {
      if (key.startsWith('v')) this.#volume(key);
      else this.#claim(key);
    } catch (error) {
      if (!/stopped|conflict/.test(String(error))) throw error;
    }
  }

  #claim(key: string): void {
    const claim = this.seen.get(key) as PersistentVolumeClaim | undefined;
    if (!claim) return;
    const volumes = [...this.seen].filter(([name]) => name.startsWith('v')).map(([, one]) => one as PersistentVolume);
    const step = claimStep(claim, {
      volumes: () => volumes,
      volumeNamed: (name) => this.seen.get(name) as PersistentVolume | undefined,
      classNamed: () => storageClass,
      classes: () => [],
      waitingPods: () => [],
    });
    if (step.type === 'bind') {
      const name = step.volume.metadata.name ?? '';
      const reserved = this.save(
        name,
        step.volume as PersistentVolume,
        withClaim(step.volume, claim) as PersistentVolume,
      );
      const taken = this.save(name, reserved, withPhase(reserved, 'Bound') as PersistentVolume);
      const named = this.save(key, claim, withVolume(claim, name) as PersistentVolumeClaim);
      this.save(key, named, boundStatus(named, taken) as PersistentVolumeClaim);
    } else if (step.type === 'lost') {
      if (!this.stored.has(claim.spec?.volumeName ?? ''))
        this.save(key, claim, unboundStatus(claim, 'Lost') as PersistentVolumeClaim);
    } else this.save(key, claim, unboundStatus(claim, 'Pending') as PersistentVolumeClaim);
  }

  #volume(key: string): void {
    const volume = this.seen.get(key) as PersistentVolume | undefined;
    if (!volume) return;
    const { name = '', uid } = volume.spec?.claimRef ?? {};
    const copy = this.seen.get(name);
    const claim = (uid && copy?.metadata.uid !== uid ? this.stored.get(name) : copy) as
      | PersistentVolumeClaim
      | undefined;
    const step = volumeStep(volume, claim);
    if (step.type === 'unbind') {
      const free = this.save(key, volume, unbound(volume) as PersistentVolume);
      this.save(key, free, withPhase(free, 'Available') as PersistentVolume);
    } else if (step.type === 'phase') this.save(key, volume, withPhase(volume, step.phase) as PersistentVolume);
  }

  /** Bindings as both sides tell them. */
  check(): void {
    const held = new Map<string, string>();
    for (const [key, object] of this.stored) {
      if (!key.startsWith('c') || object.status?.phase !== 'Bound') continue;
      const { volumeName = '' } = (object as PersistentVolumeClaim).spec ?? {};
      assert.ok(!held.has(volumeName), `${volumeName} is bound to ${key} and to ${held.get(volumeName)}`);
      held.set(volumeName, key);
      const volume = this.stored.get(volumeName) as PersistentVolume | undefined;
      if (volume) assert.equal(volume.spec?.claimRef?.uid, object.metadata.uid, `${key} has ${volumeName}`);
    }
  }

  rest(): void {
    for (let round = 0; round < 12; round++) {
      this.seen = new Map(this.stored);
      for (const key of [...this.stored.keys()].sort()) {
        this.pass(key, Number.POSITIVE_INFINITY);
        this.seen = new Map(this.stored);
      }
    }
  }
}

const NAMES = { v: ['v1', 'v2', 'v3'], c: ['c1', 'c2', 'c3'] };
const key = fc.constantFrom(...NAMES.v, ...NAMES.c);
const action = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('make' as const),
      key,
      size: fc.integer({ min: 1, max: 3 }),
      names: fc.option(fc.constantFrom(...NAMES.v)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('delete' as const), key: fc.constantFrom(...NAMES.c) }) },
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('pass' as const), key, writes: fc.integer({ min: 0, max: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('see' as const), key }) },
);

// S-524: No volume is two claims' and no claim has two volumes, wherever the controller stops.
test('no volume is two claims’ and no claim has two volumes, whatever stops where', () => {
  let uids = 0;
  fc.assert(
    fc.property(fc.array(action, { minLength: 30, maxLength: 80, size: 'max' }), (actions) => {
      const world = new World();
      for (const one of actions) {
        const held = world.stored.get(one.key);
        if (one.type === 'make' && !held) {
          const metadata = { name: one.key, namespace: one.key.startsWith('c') ? 'n' : '', uid: `u${++uids}` };
          const storage = `${one.size}Gi`;
          const about = { accessModes: ['ReadWriteOnce'], storageClassName: 's' };
          const spec = one.key.startsWith('v')
            ? { ...about, capacity: { storage } }
            : { ...about, resources: { requests: { storage } }, ...(one.names && { volumeName: one.names }) };
          world.put(one.key, { apiVersion: 'v1', kind: 'x', metadata, spec } as Stored);
        } else if (one.type === 'delete') world.stored.delete(one.key);
        else if (one.type === 'pass') world.pass(one.key, one.writes);
        else if (one.type === 'see') {
          if (held) world.seen.set(one.key, held);
          else world.seen.delete(one.key);
        }
        world.check();
      }
      world.rest();
      world.check();
      const before = JSON.stringify([...world.stored]);
      world.rest();
      assert.equal(JSON.stringify([...world.stored]), before, 'it rests');
      for (const [name, object] of world.stored) {
        if (!name.startsWith('v')) continue;
        const { claimRef } = (object as PersistentVolume).spec ?? {};
        const claim = claimRef && (world.stored.get(claimRef.name ?? '') as PersistentVolumeClaim | undefined);
        const isHeld = claim !== undefined && claim.metadata.uid === claimRef?.uid;
        const wanted = claimRef === undefined ? 'Available' : isHeld ? 'Bound' : 'Released';
        assert.equal(object.status?.phase, wanted, name);
        if (isHeld) assert.equal(claim.spec?.volumeName, name);
      }
    }),
    { numRuns: 2500 },
  );
});
