/**
 * Defaults that are values alone, from `kind-defaults.json`: by kind (`group/resource`; `podSpec` wherever one stands), then
 * by where they are set. A step with `+` is made where it is not there, `[]` stands for each item, `{a,b}` for both;
 * `(field=a|b)` behind a step means a part whose field is one of these, `(field!=a)` one whose is not. The empty path is the
 * object itself.
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import table from './kind-defaults.json' with { type: 'json' };
import { ensureObject, isUnset, type MutableObject, member, members } from './preset.ts';

const TABLE: Readonly<Record<string, Readonly<Record<string, MutableObject>>>> = table;

/** What is set in one place, and in the places below it. */
interface Presets {
  values: readonly (readonly [key: string, value: unknown])[];
  readonly below: Map<string, { readonly partsOf: PartsOf; readonly presets: Presets }>;
}

type PartsOf = (holder: MutableObject) => readonly MutableObject[];

/** Sets what the table says of a kind; undefined where it says nothing. */
export function presetsOf(kind: string): ((object: MutableObject) => void) | undefined {
  const rows = Object.entries(TABLE[kind] ?? {});
  if (rows.length === 0) return undefined;
  const root: Presets = { values: [], below: new Map() };
  for (const [path, values] of rows) {
    for (const steps of alternatives(path)) placeOf(root, steps).values = Object.entries(values);
  }
  return (object) => setPresets(object, root);
}

/** `a.{b,c}` as `a.b` and `a.c`, in steps. */
function alternatives(path: string): string[][] {
  const [whole, before = '', names = '', behind = ''] = /^([^{]*)\{([^}]*)\}(.*)$/s.exec(path) ?? [];
  if (whole === undefined) return [path === '' ? [] : path.split('.')];
  return names.split(',').flatMap((name) => alternatives(`${before}${name}${behind}`));
}

function placeOf(root: Presets, steps: readonly string[]): Presets {
  let place = root;
  for (const step of steps) {
    const next = place.below.get(step) ?? { partsOf: readStep(step), presets: { values: [], below: new Map() } };
    place.below.set(step, next);
    place = next.presets;
  }
  return place;
}

function readStep(step: string): PartsOf {
  const [, name = '', mark, field = '', not, values = ''] = /^(\w+)(\[\]|\+)?(?:\((\w+)(!)?=(.*)\))?$/.exec(step) ?? [];
  const partsOf: PartsOf = (holder) => {
    if (mark === '[]') return members(holder, name);
    const part = mark === '+' ? ensureObject(holder, name) : member(holder, name);
    return part === undefined ? NO_PARTS : [part];
  };
  if (field === '') return partsOf;
  const named = values.split('|');
  return (holder) => partsOf(holder).filter((part) => named.includes(String(part[field])) === (not === undefined));
}

const NO_PARTS: readonly MutableObject[] = [];

function setPresets(holder: MutableObject, { values, below }: Presets): void {
  for (const [key, value] of values) if (isUnset(holder, key)) holder[key] = cloneJson(value);
  for (const { partsOf, presets } of below.values()) {
    for (const part of partsOf(holder)) setPresets(part, presets);
  }
}
