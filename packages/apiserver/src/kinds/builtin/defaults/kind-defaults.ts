/**
 * Defaults that are values alone, from `kind-defaults.json`: by kind (`group/resource`), then by where they are set. A step
 * with `+` is made where it is not there, `[]` stands for each item; the empty path is the object itself.
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import table from './kind-defaults.json' with { type: 'json' };
import { ensureObject, type MutableObject, member, members, preset } from './preset.ts';

const TABLE: Readonly<Record<string, Readonly<Record<string, MutableObject>>>> = table;

/** Sets what the table says of a kind; undefined where it says nothing. */
export function presetsOf(kind: string): ((object: MutableObject) => void) | undefined {
  const rows = Object.entries(TABLE[kind] ?? {}).map(([path, values]) => [path.split('.'), values] as const);
  if (rows.length === 0) return undefined;
  return (object) => {
    for (const [steps, values] of rows) {
      for (const holder of holdersAt(object, steps)) preset(holder, cloneJson(values));
    }
  };
}

const holdersAt = (object: MutableObject, steps: readonly string[]): readonly MutableObject[] =>
  steps.reduce<readonly MutableObject[]>(
    (holders, step) => holders.flatMap((holder) => partsOf(holder, step)),
    [object],
  );

function partsOf(holder: MutableObject, step: string): readonly MutableObject[] {
  if (step === '') return [holder];
  if (step.endsWith('[]')) return members(holder, step.slice(0, -2));
  const part = step.endsWith('+') ? ensureObject(holder, step.slice(0, -1)) : member(holder, step);
  return part === undefined ? [] : [part];
}
