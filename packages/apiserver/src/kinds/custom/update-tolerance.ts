/** Finds in the accepted definition what its next version may keep: see `crd-tolerance`. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
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
  const looks = { unknownType: false, granularSet: false, looseKeys: false };
  let notStructural = false;
  let unprunedDefaults = false;
  for (const schema of schemas) {
    anySchema(schema, (node) => {
      looks.unknownType ||= typeText(node) !== '' && !SCHEMA_TYPES.includes(typeText(node));
      looks.granularSet ||= hasGranularSetItems(node);
      looks.looseKeys ||= mapKeyErrors(node, '').length > 0;
      return false;
    });
    const isStructural = structuralProblem(schema) === undefined && structuralErrors(schema, '').length === 0;
    notStructural ||= !isStructural;
    if (isStructural && !unprunedDefaults) unprunedDefaults = hasUnprunedDefaults(schema);
  }
  const reviewVersions = old.conversion?.webhook?.conversionReviewVersions ?? [];
  return {
    withoutSchema: schemas.length < (old.versions ?? []).length,
    unknownTypes: looks.unknownType,
    notStructural,
    unprunedDefaults,
    granularSetItems: looks.granularSet,
    looseMapKeys: looks.looseKeys,
    unknownReviewVersions:
      reviewVersions.length > 0 && !reviewVersions.some((version) => REVIEW_VERSIONS.includes(version)),
    brokenCaBundle:
      conditionOf(status, 'Established')?.status !== 'True' ||
      caBundleProblem(old.conversion?.webhook?.clientConfig?.caBundle) !== undefined,
    manySelectableFields: new Set(
      (old.versions ?? [])
        .filter(({ name, selectableFields = [] }) => {
          if (selectableFields.length <= MAX_SELECTABLE_FIELDS) return false;
          const now = next.versions?.find((version) => version.name === name)?.selectableFields;
          return deepEqual(now, selectableFields);
        })
        .map(({ name }) => name),
    ),
  };
}

const schemasOf = (versions: readonly CrdVersion[]): readonly RawSchema[] =>
  versions.flatMap(({ schema }) => (schema?.openAPIV3Schema === undefined ? [] : [schema.openAPIV3Schema]));

function hasGranularSetItems(schema: RawSchema): boolean {
  const items = childOf(schema, 'items');
  if (schema['x-kubernetes-list-type'] !== 'set' || items === undefined) return false;
  if (typeText(items) === 'array') return (items['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic';
  return typeText(items) === 'object' && items['x-kubernetes-map-type'] !== 'atomic';
}
