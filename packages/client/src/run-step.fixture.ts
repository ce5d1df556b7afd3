/**
 * One step of a controller on objects in memory: informers and client over the fake API, a clock that stands still. What
 * the step wrote, what it reported and how it came out is noted and compared with a row of a table.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '../../../test/testkit/partly.ts';
import { apiVersionOf, type ResourceType } from '../../apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../apimachinery/src/meta/object.ts';
import type { ApiError } from '../../apimachinery/src/meta/status.ts';
import { EVENTS } from '../../apimachinery/src/types/resource-types.ts';
import type { Event } from '../../apimachinery/src/types/types.ts';
import { createFakeClock } from '../../runtime/src/clock/fake-clock.fixture.ts';
import type { ApiHandler } from '../../runtime/src/http/seam.ts';
import { silentLogger } from '../../runtime/src/log/log.ts';
import type { ControllerEnvironment } from './controller/environment.ts';
import { createClient } from './create-client.ts';
import { createFakeApi } from './fake-api.fixture.ts';
import type { Informer } from './informer/informer.ts';
import { createInformerSet } from './informer/informer-set.ts';

/** The time at which every step runs. */
export const NOW = '2030-01-01T00:00:00Z';

/** What all rows of a table have in common. */
export interface StepSetting<S> {
  /** The resources there are; other values are left out. */
  readonly types: readonly unknown[];
  readonly make: (environment: ControllerEnvironment) => S;
  /** Informers that the steps made for themselves. */
  readonly own?: (steps: S) => readonly Pick<Informer<KubeObject>, 'start' | 'synced'>[];
  /** What is done where a row does not say. */
  readonly act?: (steps: S) => unknown;
}

/** One case. Nothing is written or reported but what it names. */
export interface StepRow<S> extends Pick<StepSetting<S>, 'act'> {
  readonly name: string;
  /** What there is. */
  readonly objects: readonly object[];
  /** Calls that are refused, as `POST pods`. */
  readonly refuse?: Readonly<Record<string, ApiError>>;
  /** What it resolves with, or the members of it that matter; nothing at all when given as undefined. */
  readonly outcome?: object | string | undefined;
  /** What it throws. */
  readonly error?: RegExp;
  /** `METHOD resource/name`, and what matters of the body. */
  readonly writes?: readonly (readonly [call: string, body?: object])[];
  /** `Type Reason Message` */
  readonly events?: readonly string[];
}

/** An object as the server has it, in the namespace `ns`. */
export function stored<T extends KubeObject>(type: ResourceType<T>, name: string, part: NoInfer<Part<T>>): T {
  const { metadata, ...rest } = part as { readonly metadata?: object };
  const namespace = type.namespaced ? { namespace: 'ns' } : {};
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, ...namespace, uid: `uid-${name}`, creationTimestamp: NOW, ...metadata },
    ...rest,
  } as unknown as T;
}

/** Makes a test of each row. */
export function testTable<S>(setting: StepSetting<S>, rows: readonly StepRow<S>[]): void {
  for (const row of rows) test(row.name, () => assertStep(setting, row));
}

async function assertStep<S>(setting: StepSetting<S>, expected: StepRow<S>): Promise<void> {
  const types = setting.types.filter((one) => typeof one === 'object' && one !== null && 'resource' in one);
  const api = createFakeApi(types as ResourceType<unknown>[]);
  for (const object of expected.objects) api.put(object);
  const writes: { readonly call: string; readonly body: unknown }[] = [];
  const handler: ApiHandler = async (request) => {
    const text = new TextDecoder().decode(request.body);
    const body = text === '' ? undefined : (JSON.parse(text) as KubeObject);
    const isEvent = request.path.endsWith('/events');
    const path = request.path.replace(/^\/(api|apis\/[^/]+)\/[^/]+\/(namespaces\/[^/]+\/)?/, '');
    if (request.method !== 'GET' && !isEvent) writes.push({ call: `${request.method} ${path}`, body: contentOf(body) });
    const refusal = expected.refuse?.[`${request.method} ${path}`];
    if (refusal) throw refusal;
    // What a guest is asked for is done.
    if (request.path.startsWith('/apis/subresources.')) return { status: 200, headers: {}, body: new Uint8Array() };
    const { generateName, name } = body?.metadata ?? {};
    if (request.method !== 'POST' || name !== undefined || generateName === undefined) return api.handler(request);
    const named = { ...body, metadata: { ...body?.metadata, name: `${generateName}x` } };
    return api.handler({ ...request, body: new TextEncoder().encode(JSON.stringify(named)) });
  };
  const [clock, stop] = [createFakeClock(Date.parse(NOW)), new AbortController()];
  const client = createClient(handler);
  const informers = createInformerSet(client, { clock });
  const steps = setting.make({ client, informers, clock, log: silentLogger });
  const own = setting.own?.(steps) ?? [];
  const running = [informers.start(stop.signal), ...own.map((informer) => informer.start(stop.signal))];
  await Promise.all([informers.synced(stop.signal), ...own.map((informer) => informer.synced(stop.signal))]);
  let outcome: unknown;
  let error: unknown;
  try {
    outcome = await (expected.act ?? setting.act)?.(steps);
  } catch (thrown) {
    error = thrown;
  }
  // Events are written behind the back of the step.
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await Promise.all(running);

  const events = (api.all(EVENTS) as unknown as Event[]).map((one) => `${one.type} ${one.reason} ${one.message}`);
  if (expected.error) assert.match(String(error), expected.error);
  else if (error !== undefined) throw error;
  const calls = expected.writes ?? [];
  assert.deepEqual(
    writes.map(({ call }) => call),
    calls.map(([call]) => call),
    JSON.stringify(writes),
  );
  for (const [index, [, body]] of calls.entries()) if (body) assert.deepEqual(pick(writes[index]?.body, body), body);
  assert.deepEqual(events, expected.events ?? []);
  if ('outcome' in expected) assert.deepEqual(pick(outcome, expected.outcome), expected.outcome);
}

/** A status that is sent as a whole (`commit/status-patch.ts`) reads like one that is merged. */
function contentOf(body: unknown): unknown {
  const whole = Array.isArray(body)
    ? body.find(({ path }: { readonly path?: unknown }) => path === '/status')
    : undefined;
  return whole ? { status: whole.value } : body;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** What of a value a row speaks of: lists as a whole, of objects the members that it names. */
function pick(actual: unknown, expected: unknown): unknown {
  if (!isObject(actual) || !isObject(expected)) return actual;
  if (Array.isArray(actual)) return Array.isArray(expected) ? actual.map((one, at) => pick(one, expected[at])) : actual;
  return Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, pick(actual[name], value)]));
}
