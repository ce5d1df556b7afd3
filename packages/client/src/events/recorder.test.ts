import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { EVENTS, PODS } from '../../../apimachinery/src/types/resource-types.ts';
import type { Event } from '../../../apimachinery/src/types/types.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createClient } from '../create-client.ts';
import { createFakeApi } from '../fake-api.fixture.ts';
import { createEventRecorder } from './recorder.ts';

function harness(clock = createFakeClock()) {
  const api = createFakeApi([PODS, EVENTS] as ResourceType<never>[]);
  const recorder = createEventRecorder(createClient(api.handler), { component: 'tester', host: 'n1', clock });
  const events = () => api.all(EVENTS) as unknown as Event[];
  return { clock, api, recorder, events };
}
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'ns', uid: 'u', resourceVersion: '4' } };
const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid: 'u2' } };

test('event() writes a core Event about the object', async () => {
  const { recorder, events } = harness();
  recorder.event(pod, 'Warning', 'Failed', 'it failed');
  await recorder.flush();
  const [event] = events();
  assert.equal(event?.metadata.namespace, 'ns');
  assert.match(event?.metadata.name ?? '', /^p\.[0-9a-f]+$/);
  assert.deepEqual(event?.involvedObject, {
    apiVersion: 'v1',
    kind: 'Pod',
    namespace: 'ns',
    name: 'p',
    uid: 'u',
    resourceVersion: '4',
  });
  assert.deepEqual(event?.source, { component: 'tester', host: 'n1' });
  const { type, reason, message, count, reportingComponent } = event!;
  assert.deepEqual(
    { type, reason, message, count, reportingComponent },
    { type: 'Warning', reason: 'Failed', message: 'it failed', count: 1, reportingComponent: 'tester' },
  );
});

// S-024: Events are counted, combined and bounded for each object.
test('the same event again is counted on the first, also when that has expired meanwhile', async () => {
  const { clock, api, recorder, events } = harness();
  recorder.event(pod, 'Normal', 'Tick', 'tick');
  recorder.event(pod, 'Normal', 'Tick', 'tick');
  await recorder.flush();
  await clock.advance(5_000);
  recorder.event(pod, 'Normal', 'Tick', 'tick');
  await recorder.flush();
  assert.equal(events().length, 1);
  assert.equal(events()[0]?.count, 3);
  assert.equal(events()[0]?.firstTimestamp, '2030-01-01T00:00:00Z');
  assert.equal(events()[0]?.lastTimestamp, '2030-01-01T00:00:05Z');
  api.remove(EVENTS, 'ns', events()[0]!.metadata.name!);
  recorder.event(pod, 'Normal', 'Tick', 'tick');
  await recorder.flush();
  assert.equal(events()[0]?.count, 1);
});

test('events about cluster-scoped objects live in namespace default', async () => {
  const { recorder, events } = harness();
  recorder.event(node, 'Normal', 'Up', 'up');
  await recorder.flush();
  assert.equal(events()[0]?.metadata.namespace, 'default');
});

// S-024
test('one object gets 25 events at once, then one in five minutes', async () => {
  const { clock, api, recorder } = harness();
  for (let i = 0; i < 40; i++) recorder.event(pod, 'Normal', `Reason${i}`, 'x');
  recorder.event(node, 'Normal', 'Up', 'another object is not held back');
  await recorder.flush();
  assert.equal(api.requests.length, 26);
  await clock.advance(300_000);
  for (let i = 0; i < 3; i++) recorder.event(pod, 'Normal', `Later${i}`, 'x');
  await recorder.flush();
  assert.equal(api.requests.length, 27);
});

test('many messages of one reason are combined into one event', async () => {
  const { recorder, events } = harness();
  for (let i = 0; i < 15; i++) recorder.event(pod, 'Normal', 'Same', `message ${i}`);
  await recorder.flush();
  assert.equal(events().length, 11);
  const combined = events().filter((one) => one.message?.startsWith('(combined from similar events)'));
  assert.deepEqual(
    combined.map(({ count, message }) => [count, message]),
    [[5, '(combined from similar events): message 14']],
  );
});

test('refusals are dropped, lost connections tried again, and the caller hears of neither', async () => {
  const { clock, api, recorder, events } = harness();
  api.intercept = () => {
    throw new ApiError({ code: 403, reason: 'Forbidden', message: 'no' });
  };
  recorder.event(pod, 'Normal', 'One', 'refused');
  await recorder.flush();
  let failures = 2;
  api.intercept = () => {
    if (failures-- > 0) throw new Error('connection reset');
  };
  recorder.event(pod, 'Normal', 'Two', 'late');
  await clock.advance(5_000);
  await recorder.flush();
  assert.deepEqual(
    events().map((one) => one.reason),
    ['Two'],
  );
});

// S-1442: Events are written when the process has nothing else to do, at the latest three seconds after they were reported.
test('events wait for a moment without other work, each within three seconds of its report', async () => {
  const clock = createFakeClock();
  const moments: { readonly ms: number; readonly come: () => void }[] = [];
  const whenIdle = (ms: number, signal: AbortSignal) =>
    new Promise<void>((come) => {
      moments.push({ ms, come });
      signal.addEventListener('abort', () => come());
    });
  const { recorder, events } = harness({ ...clock, whenIdle });
  recorder.event(pod, 'Normal', 'One', 'first');
  recorder.event(pod, 'Normal', 'Two', 'second');
  await clock.advance(1_000);
  assert.deepEqual(events(), []);
  moments.shift()!.come();
  await clock.advance(0);
  const [next] = moments;
  assert.deepEqual([events().length, next?.ms], [1, 2_000]);
  // Who stops waits for no such moment.
  await recorder.flush();
  assert.deepEqual(
    events().map(({ reason, firstTimestamp }) => [reason, firstTimestamp]),
    [
      ['One', '2030-01-01T00:00:00Z'],
      ['Two', '2030-01-01T00:00:00Z'],
    ],
  );
});
