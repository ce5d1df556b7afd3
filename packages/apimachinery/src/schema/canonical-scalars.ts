/**
 * The text forms in which the typed API hands scalars out: a Quantity is decoded and printed again (`1000m` -> `1`, the
 * number 2 -> `"2"`), a Time is UTC with whole seconds, a MicroTime has six decimals, bytes are base64 in one piece.
 * Built-in kinds only: in custom resources such text stays as it was written.
 */

import { decodeBase64, encodeBase64, isBase64 } from '../meta/base64.ts';
import { quantityText, resourceText } from '../quantity/quantity.ts';
import { parseGoTime, secondsText } from './go-time.ts';
import { goTypeName, type Schema } from './schema.ts';
import { createReach, oncePerSchema } from './schema-reach.ts';

type Rewrite = (value: unknown) => unknown;
type Walk = (value: unknown) => void;

const REWRITES = new Map<string, Rewrite>([
  ['Quantity', (value) => rewriteWith(quantityText, value)],
  ['Time', (value) => rewriteTime(value, 0)],
  ['MicroTime', (value) => rewriteTime(value, 6)],
]);
const reachesScalar = createReach((schema) => rewriteOf(schema) !== undefined);
const LEAVE: Walk = () => {};

/**
 * Rewrites, in place, every Quantity, Time, MicroTime and base64 text below `value`; values that do not decode are left alone. One
 * closure per schema node, compiled on first use, that looks only where such a scalar may be: this runs on every write.
 */
export const canonicalizeScalars = (schema: Schema, value: unknown): void => walkOf(schema)(value);

const walkOf = oncePerSchema((schema) => (reachesScalar(schema) ? compile(schema) : LEAVE));

/** Puts the canonical form of one member or item in its place. */
type Place = (holder: Record<string | number, unknown>, key: string | number) => void;

/** Amounts by name are a list of resources, as which upstream rounds them (SetDefaults_ResourceList). */
function placeOfEach(schema: Schema): Place | undefined {
  return rewriteOf(schema) === REWRITES.get('Quantity')
    ? placing((value) => rewriteWith(resourceText, value))
    : placeOf(schema);
}

/** Schemas may be cyclic, so what lies below a node is compiled when a value first reaches it. */
function placeOf(schema: Schema): Place | undefined {
  const rewrite = rewriteOf(schema);
  if (rewrite !== undefined) return placing(rewrite);
  if (!reachesScalar(schema)) return undefined;
  return (holder, key) => walkOf(schema)(holder[key]);
}

function placing(rewrite: Rewrite): Place {
  return (holder, key) => {
    const value = holder[key];
    const canonical = rewrite(value);
    if (canonical !== value) holder[key] = canonical;
  };
}

function compile(schema: Schema): Walk {
  const { properties, items } = schema;
  const members = Object.keys(properties ?? {}).flatMap((key) => {
    const place = placeOf(properties![key]!);
    return place === undefined || key === '__proto__' ? [] : [{ key, place }];
  });
  const rest = typeof schema.additionalProperties === 'object' ? placeOfEach(schema.additionalProperties) : undefined;
  const item = items && placeOf(items);
  return (value) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      if (item === undefined) return;
      for (let i = 0; i < value.length; i++) item(value as unknown as Record<number, unknown>, i);
      return;
    }
    const object = value as Record<string, unknown>;
    for (const { key, place } of members) if (Object.hasOwn(object, key)) place(object, key);
    if (rest === undefined) return;
    for (const key of Object.keys(object)) {
      if (key !== '__proto__' && !(properties && Object.hasOwn(properties, key))) rest(object, key);
    }
  };
}

function rewriteOf(schema: Schema): Rewrite | undefined {
  if (schema.format === 'byte') return rewriteBytes;
  return REWRITES.get(goTypeName(schema) ?? '');
}

/** Letters at the end of which some bits mean nothing: Go ignores them, and writes them as 0. */
const LAST_LETTER = /[^AQgw]==$|[^AEIMQUYcgkosw048]=$/;

function rewriteBytes(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const whole = /[\r\n]/.test(value) ? value.replace(/[\r\n]/g, '') : value;
  return LAST_LETTER.test(whole) && isBase64(whole) ? encodeBase64(decodeBase64(whole)) : whole;
}

function rewriteWith(textOf: (text: string) => string, value: unknown): unknown {
  if (typeof value !== 'string' && typeof value !== 'number') return value;
  try {
    return textOf(String(value).trim());
  } catch {
    return value;
  }
}

/** Times found canonical lately: every write of a second carries the same ones. At most this many are kept. */
const MAX_KNOWN_TIMES = 256;
const knownTimes = new Set<string>();

function rewriteTime(value: unknown, decimals: number): unknown {
  if (typeof value !== 'string') return value;
  if (decimals === 0 && knownTimes.has(value)) return value;
  const time = parseGoTime(value, decimals > 0 ? 'micro' : 'time');
  if (typeof time === 'string') return value;
  const { fraction } = time;
  const seconds = secondsText(time.seconds);
  if (decimals > 0) return `${seconds}.${fraction.padEnd(decimals, '0').slice(0, decimals)}Z`;
  const canonical = `${seconds}Z`;
  if (knownTimes.size >= MAX_KNOWN_TIMES) knownTimes.clear();
  knownTimes.add(canonical);
  return canonical;
}
