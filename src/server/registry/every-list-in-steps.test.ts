/**
 * Lists of objects and maps of the built-in kinds, filled with thousands: what defaults, validates and warns looks into
 * them in steps. Counted are the looks between two stops, so that no clock is asked. Each run takes some of them:
 * CORACLE_SEED takes others.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom, seed } from '../../../test/testkit/seed.ts';
import { builtinResources } from '../../api/kinds/builtin/builtin-resources.ts';
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Steps } from '../../api/meta/steps.ts';
import type { Schema } from '../../api/schema/schema.ts';
import { normalizeSteps, validateSteps } from './normalize-input.ts';
import { warnAboutCreateSteps, warnAboutUpdateSteps } from './write-warnings.ts';

/** Some times as many as are done between two stops. */
const MANY = 5000;
/** Of all looks, how many may come in one step; and how often each item may be looked at without anybody minding. */
const SHARE = 0.7;
const GLANCES = 5;
/** Of all lists and maps, how many a run takes. */
const TAKEN = 1 / 16;
const random = randomFrom(seed);

/** Where a list or map may stand, and what is in it. */
interface Place {
  readonly path: readonly string[];
  readonly item: Schema;
  readonly isMap: boolean;
}

const seen = new Set<Schema>();

/** The places of types that no kind before had. */
function* placesOf(schema: Schema, path: readonly string[]): Generator<Place> {
  if (seen.has(schema)) return;
  seen.add(schema);
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    const place = [...path, key];
    const map = typeof member.additionalProperties === 'object' ? member.additionalProperties : undefined;
    const item = member.items ?? map;
    if (item && (map || item.type === 'object')) yield { path: place, item, isMap: map !== undefined };
    if (member.items) yield* placesOf(member.items, [...place, '']);
    else if (!map) yield* placesOf(member, place);
  }
}

/** A value of a type with all its texts and numbers. */
function sample(schema: Schema, at: number, depth = 0): unknown {
  if (schema.format === 'quantity') return '1';
  if (schema.type === 'string') return schema.format === 'date-time' ? '2026-01-01T00:00:00Z' : `n${at}`;
  if (schema.type === 'integer' || schema.type === 'number') return 1 + (at % 60_000);
  if (schema.type === 'boolean') return true;
  if (schema.type === 'array') return [];
  if (schema.type !== 'object') return `n${at}`;
  const members = Object.entries(schema.properties ?? {}).filter(([, member]) => depth === 0 || isScalar(member));
  return Object.fromEntries(members.map(([key, member]) => [key, sample(member, at, depth + 1)]));
}
const isScalar = ({ type }: Schema): boolean => type !== 'object' && type !== 'array';

/** Counts who looks into an object. */
function watched<T extends object>(object: T, look: () => void): T {
  return new Proxy(object, {
    get(target, key) {
      look();
      return Reflect.get(target, key);
    },
    getOwnPropertyDescriptor(target, key) {
      look();
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
}

/** The work as steps: how many looks there were, and how many of them in the step that had most. */
function longest(work: Steps<unknown>, looks: () => number): { total: number; most: number } {
  const before = looks();
  let most = 0;
  for (let done: boolean | undefined = false; !done; ) {
    const start = looks();
    try {
      ({ done } = work.next());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      done = true;
    }
    most = Math.max(most, looks() - start);
  }
  return { total: looks() - before, most };
}

function filled(info: ResourceInfo, { path, item, isMap }: Place, look: () => void): UnstructuredObject {
  const items = Array.from({ length: MANY }, (_, at) => sample(item, at));
  let value: unknown = isMap
    ? watched(Object.fromEntries(items.map((one, at) => [`k${at}`, one])), look)
    : items.map((one) => watched(one as object, look));
  for (const key of [...path].reverse()) value = key === '' ? [value] : { [key]: value };
  const { metadata, ...rest } = value as Partial<UnstructuredObject>;
  return {
    apiVersion: info.group ? `${info.group}/${info.version}` : info.version,
    kind: info.kind,
    ...rest,
    metadata: { name: 'a', uid: 'u', resourceVersion: '1', ...(info.namespaced && { namespace: 'a' }), ...metadata },
  };
}

for (const info of builtinResources()) {
  const places = [...placesOf(info.schema, [])].filter(() => random() < TAKEN);
  if (places.length === 0) continue;
  // S-328: Lists and maps of every built-in kind are looked into in steps, and so are small bodies that defaults make
  //   large.
  test(`${info.version} ${info.kind}: ${places.length} lists and maps are looked into in steps`, () => {
    for (const place of places) {
      let count = 0;
      const look = (): void => {
        count++;
      };
      const [object, old] = [filled(info, place, look), filled(info, place, () => {})];
      old.metadata.generation = 1;
      const warn = (): void => {};
      const stages: [string, Steps<unknown>][] = [
        ['normalise', normalizeSteps(info, object)],
        ['create', validateSteps(info, object)],
        ['warn of a create', warnAboutCreateSteps(info, { object, warn })],
        ['update', validateSteps(info, object, old, { warn })],
        ['warn of an update', warnAboutUpdateSteps(info, { object, old, warn })],
      ];
      for (const [stage, work] of stages) {
        const { total, most } = longest(work, () => count);
        const fine = total <= GLANCES * MANY || most <= SHARE * total;
        assert.ok(fine, `${place.path.join('.')}, ${stage}: ${most} of ${total} looks in one step`);
      }
    }
  });
}
