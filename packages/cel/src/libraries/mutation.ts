/** What MutatingAdmissionPolicies make: `Object{spec: Object.spec{...}}`, `JSONPatch{...}`, `jsonpatch.escapeKey`. */
import { type Overload, overload, type StructType } from '../declarations.ts';
import { type CelType, DYN, STRING } from '../types.ts';

const structNamed = (name: string): CelType => ({ kind: 'object', name, params: [] });

/** The result type of an ApplyConfiguration expression. */
export const MUTATION_OBJECT: CelType = structNamed('Object');
/** An element of the result list of a JSONPatch expression. */
export const JSON_PATCH: CelType = structNamed('JSONPatch');

const PATCH_FIELDS: Readonly<Record<string, CelType>> = { op: STRING, path: STRING, from: STRING, value: DYN };

/**
 * `Object` and `Object.any.path` take any field; that the name of each nested object follows the path of its field is
 * checked when the result becomes JSON.
 */
export function mutationStruct(name: string): StructType | undefined {
  if (name === 'JSONPatch') {
    return {
      type: JSON_PATCH,
      field: (field) => (Object.hasOwn(PATCH_FIELDS, field) ? PATCH_FIELDS[field] : undefined),
    };
  }
  if (name === 'Object' || name.startsWith('Object.')) return { type: structNamed(name), field: () => DYN };
  return undefined;
}

export const MUTATION_LIBRARY: readonly Overload[] = [
  overload('jsonpatch.escapeKey', '(string): string', (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')),
];
