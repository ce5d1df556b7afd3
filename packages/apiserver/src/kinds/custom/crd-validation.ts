/** Validation of CustomResourceDefinitions, with the paths and texts of apiextensions (validation.go). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { byteLength, checkDns1035Label } from '@coracle/apimachinery/meta/name-rules';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { addAll, forbidden, immutable, invalid, required } from '@coracle/apimachinery/validation/field-errors';
import { validateByRules } from '../builtin/validation/table-rules.ts';
import { approvalErrors } from './api-approval.ts';
import { caBundleProblem, validateConversion } from './conversion-rules.ts';
import { asCrd, type Crd, type CrdNames, type CrdSpec, type CrdVersion, conditionOf, type RawSchema } from './crd.ts';
import { defaultErrors } from './default-rules.ts';
import rules from './definition-rules.json' with { type: 'json' };
import { ruleErrors } from './rule-errors.ts';
import { samePart, VERSION_PARTS, type VersionPart } from './same-parts.ts';
import { schemaProblems } from './schema-rules.ts';
import { anySchema, structuralErrors, structuralProblem } from './structural-rules.ts';
import { rootKeywordErrors, selectableFieldErrors } from './version-rules.ts';

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
  const isChanged = before === undefined || !deepEqual(crd.spec, before.spec);
  if (isChanged) for (const error of specErrors(crd.spec, before)) errors.push(error);
  if (before !== undefined) addAll(errors, changeErrors(crd, before));
  const accepted = crd.status?.acceptedNames;
  if (accepted !== undefined) validateNames(errors, accepted, 'status.acceptedNames');
  // Who migrates objects takes versions out of this list through /status, where nobody asks about the rest.
  if (isChanged) addAll(errors, storedVersionErrors(crd));
  errors.push(...approvalErrors(crd, before));
  if (crd.spec.preserveUnknownFields === true && before?.spec.preserveUnknownFields !== true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(invalid('spec.preserveUnknownFields', true, detail));
  }
  return errors;
}

/** What may not change: names that are part of every path, and what is stored under them once it is served. */
function changeErrors(crd: Crd, before: Crd): FieldError[] {
  const paths = ['spec.group', 'spec.names.plural'];
  if (conditionOf(before.status, 'Established')?.status === 'True') paths.unshift('spec.scope', 'spec.names.kind');
  return paths
    .flatMap((path) => immutable({ object: crd as never, old: before as never, path }))
    .map((error) => ({ ...error, value: error.value ?? '' }));
}

/** What the parts of a spec are validated by. */
interface Decision {
  readonly spec: CrdSpec;
  readonly before: CrdSpec | undefined;
  readonly shared: ReadonlySet<VersionPart>;
}

function specErrors(spec: CrdSpec, old: Crd | undefined): FieldError[] {
  const versions = spec.versions ?? [];
  const shared = sharedBy(versions);
  const decision: Decision = { spec, before: old?.spec, shared };
  const errors: FieldError[] = [];
  validateByRules(errors, rules.spec, { self: spec, at: 'spec' });
  addAll(errors, missingSchemaErrors(decision));
  if (spec.preserveUnknownFields === true && hasDefaults(spec)) {
    errors.push(invalid('spec.preserveUnknownFields', true, 'must be false in order to use defaults in the schema'));
  }
  for (const [i, version] of versions.entries()) {
    const at = `spec.versions[${i}]`;
    const problems = checkDns1035Label(version.name ?? '');
    if (problems.length > 0) errors.push(invalid(`${at}.name`, version.name ?? '', problems.join(',')));
    errors.push(...deprecationErrors(version, at));
    // What all versions share stands in the CRD's older, common fields as upstream sees it.
    const hasStatus = hasStatusOf(version);
    const here = { ...decision, at, hasStatus, isHere: (part: VersionPart) => !shared.has(part) };
    for (const error of partErrors(version, here)) errors.push(error);
  }
  errors.push(...versionSetErrors(versions));
  const first = versions[0];
  const firstProblems = first?.name ? checkDns1035Label(first.name) : [];
  if (firstProblems.length > 0) errors.push(invalid('spec.version', first!.name, firstProblems.join(',')));
  for (const name of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if (!spec.names?.[name]) errors.push(required(`spec.names.${name}`));
  }
  if (spec.names !== undefined) validateNames(errors, spec.names, 'spec.names');
  if (first !== undefined) {
    const hasStatus = versions.some(hasStatusOf);
    const here = { ...decision, at: 'spec', hasStatus, isHere: (part: VersionPart) => shared.has(part) };
    for (const error of partErrors(first, here)) errors.push(error);
  }
  validateConversion(errors, spec, { readsCaBundle: old !== undefined && isReached(old) });
  return errors;
}

/** Before a definition is established its certificates may come later; one whose bundle cannot be read may keep it. */
const isReached = ({ spec, status }: Crd): boolean =>
  conditionOf(status, 'Established')?.status === 'True' &&
  caBundleProblem(spec?.conversion?.webhook?.clientConfig?.caBundle) === undefined;

const hasDefaults = ({ versions = [] }: CrdSpec): boolean =>
  versions.some(({ schema }) => {
    const root = schema?.openAPIV3Schema;
    return root !== undefined && anySchema(root, (node) => (node['default'] ?? null) !== null);
  });

function missingSchemaErrors({ spec: { versions = [] }, shared }: Decision): FieldError[] {
  if (shared.has('schema') && versions[0]?.schema?.openAPIV3Schema !== undefined) return [];
  return versions.flatMap(({ schema }, i) =>
    schema?.openAPIV3Schema === undefined ? [required(`spec.versions[${i}].schema.openAPIV3Schema`)] : [],
  );
}

const sharedBy = (versions: readonly CrdVersion[]): ReadonlySet<VersionPart> =>
  new Set(VERSION_PARTS.filter((part) => versions.slice(1).every((version) => samePart(versions[0]!, version, part))));

const hasStatusOf = ({ subresources }: CrdVersion): boolean => (subresources?.status ?? null) !== null;

/** A schema that all versions had counts as that of a version that is new, too. */
function unchangedIn(version: CrdVersion, before: CrdSpec | undefined): boolean {
  const versions = before?.versions ?? [];
  const isShared = sharedBy(versions).has('schema');
  const same = isShared ? versions[0] : versions.find(({ name }) => name === version.name);
  return same !== undefined && samePart(same, version, 'schema');
}

/** A version's parts where the internal form has them: `isHere`. */
function partErrors(
  version: CrdVersion,
  where: Decision & {
    readonly at: string;
    readonly hasStatus: boolean;
    readonly isHere: (part: VersionPart) => boolean;
  },
): FieldError[] {
  const { at, isHere } = where;
  const isTop = at === 'spec';
  const errors: FieldError[] = [];
  const schema = isHere('schema') ? version.schema?.openAPIV3Schema : undefined;
  if (schema !== undefined) {
    const path = `${at}.${isTop ? 'validation' : 'schema'}.openAPIV3Schema`;
    const unchanged = unchangedIn(version, where.before);
    for (const error of openApiErrors(schema, { ...where, path, unchanged })) errors.push(error);
  }
  const self = Object.fromEntries(VERSION_PARTS.filter(isHere).map((part) => [part, version[part]]));
  validateByRules(errors, rules.version, { self, at });
  const fields = isHere('selectableFields') ? (version.selectableFields ?? []) : [];
  if (fields.length === 0) return errors;
  const field = `${at}.selectableFields`;
  if (schema === undefined) {
    const detail = isTop
      ? 'may only be set when validations.schema is included'
      : 'may only be set when `version.schema.openAPIV3Schema` is not included';
    return [...errors, invalid(field, '', detail)];
  }
  const problem = structuralProblem(schema);
  if (problem !== undefined) errors.push(invalid(`${at}.schema.openAPIV3Schema`, '', problem));
  addAll(errors, selectableFieldErrors(fields, problem === undefined ? schema : {}, field));
  return errors;
}

function openApiErrors(
  schema: RawSchema,
  { path, hasStatus, unchanged }: { readonly path: string; readonly hasStatus: boolean; readonly unchanged: boolean },
): FieldError[] {
  const errors = hasStatus ? rootKeywordErrors(schema, path) : [];
  if (schema['nullable'] === true) {
    errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  }
  const problem = structuralProblem(schema);
  // Defaults and rules are only validated against a schema that can be turned into one of ours.
  const structural = problem === undefined ? structuralErrors(schema, path) : [];
  const readable = problem === undefined && structural.length === 0;
  const defaults = readable ? defaultErrors(schema, path) : [];
  const { errors: shape, faulty } = schemaProblems(schema, path);
  const rules = readable && defaults.length === 0 ? ruleErrors(schema, { path, unchanged, faulty }) : [];
  for (const found of [structural, defaults, shape, rules]) for (const error of found) errors.push(error);
  return errors.length === 0 && problem !== undefined ? [invalid(path, '', problem)] : errors;
}

function deprecationErrors({ deprecated, deprecationWarning: text }: CrdVersion, at: string): FieldError[] {
  if (text === undefined || text === null) return [];
  const field = `${at}.deprecationWarning`;
  // Upstream holds a pointer to the text, which is printed as JSON.
  const shown = Object(text);
  if (!deprecated) return [invalid(field, shown, 'can only be set for deprecated versions')];
  const errors: FieldError[] = [];
  if (byteLength(text) > 256) errors.push(invalid(field, shown, 'must be <= 256 characters long'));
  if (text === '') errors.push(invalid(field, shown, 'must not be an empty string'));
  const bad = text.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u);
  if (bad >= 0) {
    const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${byteLength(text.slice(0, bad))}`;
    errors.push(invalid(field, shown, detail));
  }
  return errors;
}

function versionSetErrors(versions: readonly CrdVersion[]): FieldError[] {
  const names = versions.map(({ name }) => name);
  const wrong = (isWrong: boolean, detail: string): FieldError[] =>
    isWrong ? [invalid('spec.versions', names, detail)] : [];
  const stored = versions.filter(({ storage }) => storage).length;
  return [
    ...wrong(new Set(names).size < versions.length, 'must contain unique version names'),
    ...wrong(stored !== 1, 'must have exactly one version marked as storage version'),
  ];
}

const validateNames = (errors: FieldError[], names: CrdNames, at: string): void =>
  validateByRules(errors, rules.names, { self: names, at });

/** Data may lie in every version named here, so none of them may be forgotten. */
function storedVersionErrors({ spec, status }: Crd): FieldError[] {
  const field = 'status.storedVersions';
  const stored = status?.storedVersions ?? [];
  const versions = spec.versions ?? [];
  if (stored.length === 0) return [invalid(field, null, 'must have at least one stored version')];
  const errors: FieldError[] = [];
  // A name that stands there twice is only found once.
  const left = new Set(stored);
  for (const { name, storage } of versions) {
    if (storage && !left.has(name)) errors.push(invalid(field, stored, `must have the storage version ${name}`));
    left.delete(name);
  }
  for (const [i, name] of stored.entries()) {
    if (versions.some((version) => version.name === name)) continue;
    const detail = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(invalid(`${field}[${i}]`, name, detail));
  }
  return errors;
}
