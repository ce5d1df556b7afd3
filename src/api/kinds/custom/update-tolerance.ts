/** Finds in the accepted definition what its next version may keep: see `crd-tolerance`. */

import { deepEqual } from '../../meta/deep-equal.ts';
import { finish } from '../../meta/steps.ts';
import { caBundleProblem } from './conversion-rules.ts';
import { type Crd, type CrdSpec, type CrdVersion, conditionOf, type RawSchema } from './crd.ts';
import { MAX_SELECTABLE_FIELDS, REVIEW_VERSIONS, type Tolerance } from './crd-tolerance.ts';
import { hasUnprunedDefaults } from './default-rules.ts';
import { mapKeyErrors, SCHEMA_TYPES } from './schema-rules.ts';
import { anySchema, childOf, structuralErrors, structuralProblem, typeText } from './structural-rules.ts';

/** What an update over `old` is let pass. */
export function toleranceOf({ spec, status }: Crd, next: CrdSpec): Tolerance {
  // What was stored by hand may have none.
  const old: Partial<CrdSpec> = spec ?? {};
  const schemas = schemasOf(old.versions ?? []);
  const has = (test: (schema: RawSchema) => boolean): boolean => schemas.some((schema) => anySchema(schema, test));
  const reviewVersions = old.conversion?.webhook?.conversionReviewVersions ?? [];
  return {
    withoutSchema: schemas.length < (old.versions ?? []).length,
    unknownTypes: has((schema) => typeText(schema) !== '' && !SCHEMA_TYPES.includes(typeText(schema))),
    notStructural: schemas.some((schema) => !isStructural(schema)),
    unprunedDefaults: schemas.some((schema) => isStructural(schema) && hasUnprunedDefaults(schema)),
    granularSetItems: has(hasGranularSetItems),
    looseMapKeys: has((schema) => mapKeyErrors(schema, '').length > 0),
    unknownReviewVersions:
      reviewVersions.length > 0 && !reviewVersions.some((version) => REVIEW_VERSIONS.includes(version)),
    brokenCaBundle:
      conditionOf(status, 'Established')?.status !== 'True' ||
      caBundleProblem(old.conversion?.webhook?.clientConfig?.caBundle) !== undefined,
    manySelectableFields: new Set(
      (old.versions ?? [])
        .filter(({ name, selectableFields = [] }) => {
          const now = next.versions?.find((version) => version.name === name)?.selectableFields;
          return selectableFields.length > MAX_SELECTABLE_FIELDS && deepEqual(now, selectableFields);
        })
        .map(({ name }) => name),
    ),
  };
}

const schemasOf = (versions: readonly CrdVersion[]): readonly RawSchema[] =>
  versions.flatMap(({ schema }) => (schema?.openAPIV3Schema === undefined ? [] : [schema.openAPIV3Schema]));

const isStructural = (schema: RawSchema): boolean =>
  structuralProblem(schema) === undefined && finish(structuralErrors(schema, '')).length === 0;

function hasGranularSetItems(schema: RawSchema): boolean {
  const items = childOf(schema, 'items');
  if (schema['x-kubernetes-list-type'] !== 'set' || items === undefined) return false;
  if (typeText(items) === 'array') return (items['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic';
  return typeText(items) === 'object' && items['x-kubernetes-map-type'] !== 'atomic';
}
