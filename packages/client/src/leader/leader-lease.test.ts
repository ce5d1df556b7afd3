import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { CONFIG_MAPS, LEASES } from '../../../apimachinery/src/types/resource-types.ts';
import type { Lease } from '../../../apimachinery/src/types/types.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { nextTurn } from '../../../runtime/src/clock/next-turn.ts';
import { createLogger, silentLogger } from '../../../runtime/src/log/log.ts';
import { createLinkedController } from '../../../runtime/src/signal/linked-controller.ts';
import { createController, ownKeys } from '../controller/controller.ts';
import { createClient } from '../create-client.ts';
import { createFakeApi } from '../fake-api.fixture.ts';
import { createInformer } from '../informer/informer.ts';
import { whileLeading } from './leader-lease.ts';

const lease = { namespace: 'kubevirt', name: 'coracle-vm' };

/** Processes that want to lead, the clock they share, and who runs at the moment. */
function candidates() {
  const api = createFakeApi([LEASES]);
  const clock = createFakeClock();
  const running = new Set<string>();
  const log: string[] = [];
  let most = 0;
  /** Requests of these fail, as through a cut line. */
  const cut = new Set<string>();
  const start = (identity: string) => {
    const stop = new AbortController();
    const client = createClient(async (request) => {
      if (cut.has(identity)) throw new Error('connect ECONNREFUSED');
      return api.handler(request);
    });
    const done = whileLeading(
      {
        client,
        clock,
        log: silentLogger,
        signal: stop.signal,
        lease,
        identity,
        onWaiting: (who) => log.push(`${identity} waits for ${who}`),
      },
      async (signal) => {
        running.add(identity);
        most = Math.max(most, running.size);
        log.push(`${identity} leads`);
        await new Promise<void>((ended) => signal.addEventListener('abort', () => ended(), { once: true }));
        running.delete(identity);
        log.push(`${identity} ends`);
      },
    );
    return { stop: () => stop.abort(new Error('stop')), done };
  };
  const pass = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at++) {
      await clock.advance(1000);
      await nextTurn();
    }
  };
  const stored = (): Lease => api.get(LEASES, lease.namespace, lease.name) as unknown as Lease;
  return { api, clock, running, log, cut, start, pass, stored, most: () => most };
}

// S-318: On an external cluster each controller runs in one process at a time, and another takes over.
test('one of two leads; when it stops, the other begins without waiting for the lease to run out', async () => {
  const { start, pass, running, log, stored, most } = candidates();
  const a = start('a');
  await pass(1);
  const b = start('b');
  await pass(60);
  assert.deepEqual([...running], ['a']);
  assert.deepEqual(log, ['a leads', 'b waits for a']);
  assert.equal(stored().spec?.leaseTransitions, 0);

  a.stop();
  await a.done;
  assert.equal(stored().spec?.holderIdentity, '');
  await pass(4);
  assert.deepEqual([...running], ['b']);
  assert.deepEqual(log.slice(2), ['a ends', 'b leads']);
  assert.equal(stored().spec?.leaseTransitions, 1);
  assert.equal(most(), 1);
  b.stop();
  await b.done;
});

// S-318
test('who cannot reach the API stops before another begins, and comes back as one who waits', async () => {
  const { start, pass, running, log, cut, most, stored } = candidates();
  const a = start('a');
  const b = start('b');
  await pass(10);
  const [first] = running;
  const second = first === 'a' ? 'b' : 'a';
  cut.add(first!);
  await pass(9);
  assert.deepEqual([...running], [first], 'a short break is borne');
  await pass(20);
  assert.deepEqual([...running], [second]);
  assert.equal(most(), 1, 'never both');
  cut.clear();
  await pass(20);
  assert.deepEqual([...running], [second]);
  assert.equal(log.at(-1), `${first} waits for ${second}`);
  assert.equal(stored().spec?.holderIdentity, second);
  for (const one of [a, b]) one.stop();
  await Promise.all([a.done, b.done]);
});

// S-318
test('a holder that died is followed when its lease has stood still for its duration, whatever its times say', async () => {
  const { api, start, pass, running } = candidates();
  api.put({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: lease,
    spec: { holderIdentity: 'gone', leaseDurationSeconds: 15, renewTime: '2019-01-01T00:00:00.000000Z' },
  });
  const a = start('a');
  await pass(14);
  assert.deepEqual([...running], [], 'its clock may be wrong');
  await pass(6);
  assert.deepEqual([...running], ['a']);
  a.stop();
  await a.done;
});

test('a lease that somebody took by hand ends the job; one that was deleted is made again', async () => {
  const { api, start, pass, running, stored } = candidates();
  const a = start('a');
  await pass(5);
  api.remove(LEASES, lease.namespace, lease.name);
  await pass(20);
  assert.deepEqual([...running], ['a']);
  assert.equal(stored().spec?.holderIdentity, 'a');
  api.put({ ...stored(), spec: { ...stored().spec, holderIdentity: 'thief' } });
  await pass(4);
  assert.deepEqual([...running], []);
  await pass(20);
  assert.deepEqual([...running], ['a'], 'which never renewed it');
  a.stop();
  await a.done;
});

test('without the right to the lease nothing runs; with it, it does', async () => {
  const { api, start, pass, running } = candidates();
  api.intercept = () => {
    throw new ApiError({ code: 403, reason: 'Forbidden', message: 'leases is forbidden' });
  };
  const a = start('a');
  await pass(10);
  assert.deepEqual([...running], []);
  api.intercept = () => {};
  await pass(4);
  assert.deepEqual([...running], ['a']);
  a.stop();
  await a.done;
});

test('what the job fails with comes out, and the lease is free', async () => {
  const { api, clock, stored } = candidates();
  const client = createClient(api.handler);
  const { signal } = new AbortController();
  const options = { client, clock, log: silentLogger, signal, lease, identity: 'a' };
  await assert.rejects(
    whileLeading(options, async () => {
      throw new Error('broken');
    }),
    /broken/,
  );
  assert.equal(stored().spec?.holderIdentity, '');
});

// S-419: No controller holds a Lease or counts as healthy while its informers do not sync: it says so, gives the Lease
//   up and tries again.
test('a controller whose informers do not sync gives its lease up, so that another process may hold it', async () => {
  const api = createFakeApi([LEASES, CONFIG_MAPS]);
  const clock = createFakeClock();
  const logged: string[] = [];
  const log = createLogger(
    ({ level, message, fields }) => logged.push(`${level} ${message}: ${fields['error']}`),
    'error',
  );
  const runs = new Map<string, boolean>();
  const stop = new AbortController();
  const start = (identity: string, blind: boolean): Promise<void> => {
    const client = createClient(async (request) => {
      if (blind && request.path.endsWith('/configmaps'))
        throw new ApiError({ code: 403, reason: 'Forbidden', message: 'configmaps is forbidden' });
      return api.handler(request);
    });
    const options = { client, clock, log, signal: stop.signal, lease, identity };
    return whileLeading(options, async (signal) => {
      const informer = createInformer(client, CONFIG_MAPS, { clock });
      const controller = createController({
        name: 'test',
        client,
        clock,
        log,
        sources: [ownKeys(informer)],
        reconcile: async () => {},
      });
      runs.set(identity, true);
      try {
        const term = createLinkedController(signal);
        const following = informer.start(term.signal);
        await controller.start(term.signal).finally(() => term.abort());
        await following;
      } finally {
        runs.set(identity, false);
      }
    });
  };
  const pass = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at++) {
      await clock.advance(1000);
      await nextTurn();
    }
  };
  const blind = start('blind', true);
  await pass(10);
  assert.equal(runs.get('blind'), true);
  const other = start('other', false);
  await pass(70);
  assert.equal(runs.get('blind'), false);
  assert.equal(runs.get('other'), true);
  assert.match(logged.join(), /leadership given up: the controller cannot work: not synced within 60 s: configmaps \(/);
  assert.match(logged.join(), /configmaps is forbidden/);
  stop.abort(new Error('stop'));
  await Promise.all([blind, other]);
});
