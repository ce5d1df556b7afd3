/**
 * Who depends on a declared object, as annotation `coracle.dev/dependents` of it says: what decides on its deletion by hand
 * reads that alone, in this process or as a webhook. It is written only where a sync or the object asks for it.
 */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ObjectRef } from '../kinds/kinds.ts';
import { DELETE_WITH_DEPENDENTS } from '../status/metadata-keys.ts';
import type { Declared } from './declared.ts';
import { refId, refText } from './object-ref.ts';
import { compareRefs, dependencies } from './order.ts';

/** What becomes of a deletion by hand: annotation `coracle.dev/delete-with-dependents`. */
export type DeleteMode = 'allow' | 'warn' | 'refuse';

const MODES: readonly string[] = ['allow', 'warn', 'refuse'] satisfies DeleteMode[];
/** For errors. */
export const MODES_TEXT = 'allow, warn or refuse';
/** Dependents that an object names. */
const MAX_NAMED = 10;
/** Characters of one: names have 253 at most, and so have groups. */
const MAX_TEXT = 1024;

/** True for a mode. */
export const isDeleteMode = (text: string): text is DeleteMode => MODES.includes(text);

/** What an object says of those who depend on it. */
export interface Dependents {
  readonly mode: DeleteMode;
  /** For people, in the order in which they are applied; at most ten. */
  readonly objects: readonly string[];
  /** There are more than are named. */
  readonly hasMore: boolean;
}

/** Declared objects, those that others depend on with what they say of them. `mode`: of objects that say none themselves. */
export function withDependents(declared: readonly Declared[], mode: DeleteMode): readonly Declared[] {
  const modeOf = ({ object }: Declared): DeleteMode => {
    const own = object.metadata.annotations?.[DELETE_WITH_DEPENDENTS];
    return own !== undefined && isDeleteMode(own) ? own : mode;
  };
  if (declared.every((one) => modeOf(one) === 'allow')) return declared;
  const needs = dependencies(declared);
  const found = new Map<string, ObjectRef[]>();
  for (const { ref } of [...declared].sort((a, b) => compareRefs(a.ref, b.ref)))
    for (const needed of needs.get(refId(ref)) ?? []) {
      const named = found.get(needed);
      if (!named) found.set(needed, [ref]);
      // One more than are named says that there are more.
      else if (named.length <= MAX_NAMED) named.push(ref);
    }
  return declared.map((one) => {
    const refs = found.get(refId(one.ref));
    const own = modeOf(one);
    if (!refs || own === 'allow') return one;
    return { ...one, dependents: dependentsText(own, refs) };
  });
}

const dependentsText = (mode: DeleteMode, refs: readonly ObjectRef[]): string =>
  JSON.stringify({
    onDelete: mode,
    objects: refs.slice(0, MAX_NAMED).map(refText),
    ...(refs.length > MAX_NAMED && { more: true }),
  });

/** Reads the annotation; undefined when it cannot be read, and says nothing therefore. */
export function readDependents(text: string | undefined): Dependents | undefined {
  if (text === undefined || text.length > (MAX_NAMED + 1) * MAX_TEXT) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return undefined;
    const { onDelete, objects, more } = value;
    if (typeof onDelete !== 'string' || !isDeleteMode(onDelete) || !Array.isArray(objects)) return undefined;
    const names = objects.filter((one) => typeof one === 'string').slice(0, MAX_NAMED);
    return { mode: onDelete, objects: names, hasMore: more === true };
  } catch {
    return undefined;
  }
}

/** For people. */
export const dependentsOf = ({ objects, hasMore }: Dependents): string =>
  `${objects.join('; ')}${hasMore ? '; and more' : ''}`;
