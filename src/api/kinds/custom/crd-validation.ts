/** Validation of CustomResourceDefinitions, with the paths and texts of apiextensions (validation.go). */
import { deepEqual } from '../../meta/deep-equal.ts';
import { checkDns1035Label, checkSubdomain } from '../../meta/name-rules.ts';
import { isJsonObject } from '../../meta/own-property.ts';
import type { FieldError } from '../../meta/status.ts';
import { forbidden, immutable, invalid, required, unsupported } from '../builtin/validation/field-errors.ts';
import { approvalErrors } from './api-approval.ts';
import { conversionErrors } from './conversion-rules.ts';
import { asCrd, type Crd, type CrdNames, type CrdSpec, type CrdVersion, conditionOf } from './crd.ts';
import { defaultErrors } from './default-rules.ts';
import { ruleErrors } from './rule-errors.ts';
import { schemaErrors } from './schema-rules.ts';
import { structuralErrors } from './structural-rules.ts';
import { columnErrors, rootKeywordErrors, selectableFieldErrors, subresourceErrors } from './version-rules.ts';

/**
 * What is wrong with a definition, in upstream's order; [] when it can be served. On an update whose spec is what it was,
 * only the rest is looked at.
 */
export function validateCrd(
  object: Readonly<Record<string, unknown>>,
  old?: Readonly<Record<string, unknown>>,
): readonly FieldError[] {
  if (!isJsonObject(object['spec'])) return [required('spec')];
  const crd = asCrd(object as never);
  const before = old === undefined ? undefined : asCrd(old as never);
  const { names, group } = crd.spec;
  const errors: FieldError[] = [];
  if (before === undefined && crd.metadata.name !== `${names?.plural ?? ''}.${group ?? ''}`) {
    const detail = 'must be spec.names.plural+"."+spec.group';
    errors.push(invalid('metadata.name', crd.metadata.name ?? '', detail));
  }
  if (before === undefined || !deepEqual(crd.spec, before.spec)) errors.push(...specErrors(crd.spec, before?.spec));
  if (before !== undefined) errors.push(...changeErrors(crd, before));
  const accepted = crd.status?.acceptedNames;
  if (accepted !== undefined) errors.push(...nameErrors(accepted, 'status.acceptedNames'));
  errors.push(...storedVersionErrors(crd), ...approvalErrors(crd, before));
  if (crd.spec.preserveUnknownFields === true && before?.spec.preserveUnknownFields !== true) {
    errors.push(
      invalid(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    );
  }
  return errors;
}

/** What may not change: names that are part of every path, and what is stored under them once it is served. */
function changeErrors(crd: Crd, before: Crd): FieldError[] {
  const paths = ['spec.group', 'spec.names.plural'];
  if (conditionOf(before.status, 'Established')?.status === 'True') paths.unshift('spec.scope', 'spec.names.kind');
  return paths.flatMap((path) => immutable({ object: crd as never, old: before as never, path }));
}

function specErrors(spec: CrdSpec, before: CrdSpec | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const group = spec.group ?? '';
  if (group === '') errors.push(required('spec.group'));
  else if (checkSubdomain(group).length > 0) errors.push(invalid('spec.group', group, checkSubdomain(group).join(',')));
  else if (!group.includes('.')) errors.push(invalid('spec.group', group, 'should be a domain with at least one dot'));
  if (!spec.scope) errors.push(required('spec.scope'));
  else if (spec.scope !== 'Cluster' && spec.scope !== 'Namespaced') {
    errors.push(unsupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']));
  }
  const versions = spec.versions ?? [];
  const shared = sharedBy(versions);
  if (!shared.has('schema') || versions[0]?.schema?.openAPIV3Schema === undefined) {
    for (const [i, { schema }] of versions.entries()) {
      if (schema?.openAPIV3Schema === undefined) {
        errors.push(required(`spec.versions[${i}].schema.openAPIV3Schema`, 'schemas are required'));
      }
    }
  }
  for (const [i, version] of versions.entries()) {
    const at = `spec.versions[${i}]`;
    const problems = checkDns1035Label(version.name ?? '');
    if (problems.length > 0) errors.push(invalid(`${at}.name`, version.name, problems.join(',')));
    errors.push(...deprecationErrors(version, at));
    // What all versions share stands in the CRD's older, common fields as upstream sees it.
    errors.push(...partErrors(version, { at, skip: shared, unchanged: unchangedIn(version, before) }));
  }
  errors.push(...versionSetErrors(versions));
  for (const name of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if (!spec.names?.[name]) errors.push(required(`spec.names.${name}`));
  }
  if (spec.names !== undefined) errors.push(...nameErrors(spec.names, 'spec.names'));
  const first = versions[0];
  if (first !== undefined) {
    const rest = new Set(PARTS.filter((part) => !shared.has(part)));
    errors.push(...partErrors(first, { at: 'spec', skip: rest, unchanged: unchangedIn(first, before) }));
  }
  errors.push(...conversionErrors(spec));
  return errors;
}

/** The parts of a version that stand at the top of the internal form when every version has the same. */
const PARTS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;
type Part = (typeof PARTS)[number];

const sharedBy = (versions: readonly CrdVersion[]): ReadonlySet<Part> =>
  new Set(PARTS.filter((part) => versions.every((version) => deepEqual(version[part], versions[0]?.[part]))));

const unchangedIn = (version: CrdVersion, before: CrdSpec | undefined): boolean =>
  before !== undefined && deepEqual(before.versions.find(({ name }) => name === version.name)?.schema, version.schema);

function partErrors(
  version: CrdVersion,
  { at, skip, unchanged }: { readonly at: string; readonly skip: ReadonlySet<Part>; readonly unchanged: boolean },
): FieldError[] {
  const errors: FieldError[] = [];
  const schema = version.schema?.openAPIV3Schema;
  if (!skip.has('schema') && schema !== undefined) {
    const path = `${at}.${at === 'spec' ? 'validation' : 'schema'}.openAPIV3Schema`;
    errors.push(...openApiErrors(schema, { path, hasStatus: version.subresources?.status !== undefined, unchanged }));
  }
  if (!skip.has('subresources')) errors.push(...subresourceErrors(version.subresources, `${at}.subresources`));
  if (!skip.has('additionalPrinterColumns')) {
    for (const [i, column] of (version.additionalPrinterColumns ?? []).entries()) {
      errors.push(...columnErrors(column, `${at}.additionalPrinterColumns[${i}]`));
    }
  }
  if (!skip.has('selectableFields') && schema !== undefined) {
    errors.push(...selectableFieldErrors(version.selectableFields ?? [], schema, `${at}.selectableFields`));
  }
  return errors;
}

function openApiErrors(
  schema: Readonly<Record<string, unknown>>,
  { path, hasStatus, unchanged }: { readonly path: string; readonly hasStatus: boolean; readonly unchanged: boolean },
): FieldError[] {
  const errors = hasStatus ? rootKeywordErrors(schema, path) : [];
  if (schema['nullable'] === true) {
    errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  }
  const structural = structuralErrors(schema, path);
  const shape = schemaErrors(schema, path);
  // Defaults and rules are only judged against a schema that can be turned into one of ours.
  const sound = structural.length === 0 && shape.length === 0;
  const defaults = sound ? defaultErrors(schema, path) : [];
  errors.push(...structural, ...defaults, ...shape);
  if (sound && defaults.length === 0) errors.push(...ruleErrors(schema, { path, unchanged }));
  return errors;
}

function deprecationErrors({ deprecated, deprecationWarning: text }: CrdVersion, at: string): FieldError[] {
  if (text === undefined) return [];
  const field = `${at}.deprecationWarning`;
  if (!deprecated) return [invalid(field, text, 'can only be set for deprecated versions')];
  const errors: FieldError[] = [];
  if (new TextEncoder().encode(text).length > 256) errors.push(invalid(field, text, 'must be <= 256 characters long'));
  if (text === '') errors.push(invalid(field, text, 'must not be an empty string'));
  const bad = text.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u);
  if (bad >= 0) {
    const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${bad}`;
    errors.push(invalid(field, text, detail));
  }
  return errors;
}

function versionSetErrors(versions: readonly CrdVersion[]): FieldError[] {
  const errors: FieldError[] = [];
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    errors.push(invalid('spec.versions', versions, 'must contain unique version names'));
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    errors.push(invalid('spec.versions', versions, 'must have exactly one version marked as storage version'));
  }
  return errors;
}

function nameErrors(names: CrdNames, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (field: string, value: string | undefined, mixed = false): void => {
    if (!value) return;
    const problems = checkDns1035Label(mixed ? value.toLowerCase() : value);
    if (problems.length === 0) return;
    const prefix = mixed ? 'may have mixed case, but should otherwise match: ' : '';
    errors.push(invalid(`${at}.${field}`, value, prefix + problems.join(',')));
  };
  check('plural', names.plural);
  check('singular', names.singular);
  check('kind', names.kind, true);
  check('listKind', names.listKind, true);
  for (const [i, name] of (names.shortNames ?? []).entries()) check(`shortNames[${i}]`, name);
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalid(`${at}.listKind`, names.listKind, 'kind and listKind may not be the same'));
  }
  for (const [i, name] of (names.categories ?? []).entries()) check(`categories[${i}]`, name);
  return errors;
}

/** Data may lie in every version named here, so none of them may be forgotten. */
function storedVersionErrors({ spec, status }: Crd): FieldError[] {
  const field = 'status.storedVersions';
  const stored = status?.storedVersions ?? [];
  const versions = spec.versions ?? [];
  if (stored.length === 0) return [invalid(field, stored, 'must have at least one stored version')];
  const errors: FieldError[] = [];
  for (const { name, storage } of versions) {
    if (storage && !stored.includes(name)) errors.push(invalid(field, stored, `must have the storage version ${name}`));
  }
  for (const [i, name] of stored.entries()) {
    if (versions.some((version) => version.name === name)) continue;
    const detail = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(invalid(`${field}[${i}]`, name, detail));
  }
  return errors;
}
