/** Validation of PersistentVolumeClaims (core/validation). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { exceeds, quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { isObject, type JsonObject, listAt, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  forbidden,
  IMMUTABLE,
  immutable,
  invalid,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './claim-rules.json' with { type: 'json' };
import { type RuleCheck, validateByRules } from './table-rules.ts';

const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];
const ALONE = 'ReadWriteOncePod';
const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class';

/** Validates how a claim or volume may be used; upstream names the list, not the item. */
export function validateAccessModes(
  errors: FieldError[],
  spec: unknown,
  { at, detail }: { readonly at: string; readonly detail: string },
): void {
  const path = `${at}.accessModes`;
  const modes = listAt(spec, 'accessModes');
  if (modes.length === 0) errors.push(required(path, detail));
  let others = false;
  validateEach(errors, modes, (mode) => {
    const isKnown = ACCESS_MODES.includes(String(mode));
    others ||= isKnown && mode !== ALONE;
    return isKnown ? [] : [unsupported(path, mode, ACCESS_MODES)];
  });
  if (others && modes.includes(ALONE)) {
    errors.push(forbidden(path, 'may not use ReadWriteOncePod with other access modes'));
  }
}

/** What must be more than nothing. */
export function positiveErrors(value: unknown, at: string): FieldError[] {
  const amount = readQuantity(value);
  return amount !== undefined && amount.nano <= 0n ? [invalid(at, value, 'must be greater than zero')] : [];
}

const CHECKS: Readonly<Record<string, RuleCheck>> = {
  accessModes: (errors, spec, { at }) =>
    validateAccessModes(errors, spec, { at, detail: 'at least 1 access mode is required' }),
  storage: (errors, storage, { at }) =>
    errors.push(...(storage === undefined ? [required(at)] : positiveErrors(storage, at))),
  agreement: (errors, spec, { at }) => errors.push(...agreementErrors(spec, at)),
};

/** The two fields say the same. Upstream shows its own way of writing a path as the value, which is an empty object. */
function agreementErrors(spec: unknown, at: string): FieldError[] {
  const [source, reference] = [valueAt(spec, 'dataSource'), valueAt(spec, 'dataSourceRef')];
  if (!isObject(source) || !isObject(reference)) return [];
  if (textAt(reference, 'namespace') !== '') {
    return [invalid(at, {}, 'may not be specified when dataSourceRef.namespace is specified')];
  }
  const isSame = ['apiGroup', 'kind', 'name'].every(
    (field) => (valueAt(source, field) ?? null) === (valueAt(reference, field) ?? null),
  );
  return isSame ? [] : [invalid(at, {}, 'must match dataSourceRef')];
}

const CLAIM_FIXED =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

export function validateClaim(claim: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const isKept = old !== undefined && deepEqual(valueAt(claim, 'spec'), valueAt(old, 'spec'));
  const self = objectAt(claim, 'spec');
  if (!isKept) validateByRules(errors, rules.spec, { self, at: 'spec', tables: rules, checks: CHECKS });
  if (old === undefined) return errors;
  if (!deepEqual(claim['status'], old['status'])) validateStatus(errors, claim);
  const annotation = (one: JsonObject): string => textAt(one, 'metadata', 'annotations', BETA_CLASS);
  const isUpgrade = upgradesClass(claim, old);
  if (!isUpgrade && annotation(claim) !== annotation(old)) {
    errors.push(invalid(`metadata.annotations.${BETA_CLASS}`, annotation(claim), IMMUTABLE));
  }
  if (isKept) return errors;
  const same = deepEqual(fixedFields(claim, old), fixedFields(old, old));
  if (!same) errors.push(forbidden('spec', CLAIM_FIXED));
  errors.push(...sizeErrors(claim, old));
  for (const error of immutable({ object: claim, old, path: 'spec.volumeMode' })) {
    errors.push({ ...error, field: 'volumeMode' });
  }
  const classAt = 'spec.volumeAttributesClassName';
  const now = valueAt(claim, ...classAt.split('.')) ?? null;
  if ((valueAt(old, ...classAt.split('.')) ?? null) === null) return errors;
  if (now === null) errors.push(forbidden(classAt, 'update from non-nil value to nil is forbidden'));
  else if (now === '') errors.push(forbidden(classAt, 'update from non-nil value to an empty string is forbidden'));
  return errors;
}

/** Amounts that a claim has. */
function validateStatus(errors: FieldError[], claim: JsonObject): void {
  for (const field of ['capacity', 'allocatedResources']) {
    const amounts = objectAt(claim, 'status', field);
    validateEach(errors, Object.keys(amounts), (name) => {
      const amount = readQuantity(amounts[name]);
      if (amount === undefined || amount.nano >= 0n) return [];
      return [invalid(`status.${field}[${name}]`, quantityValue(amount), 'must be a valid resource quantity')];
    });
  }
}

/** The class that an annotation of old named becomes the field, and nothing else changes. */
function upgradesClass(claim: JsonObject, old: JsonObject): boolean {
  const before = valueAt(old, 'metadata', 'annotations', BETA_CLASS);
  const after = valueAt(claim, 'metadata', 'annotations', BETA_CLASS) ?? before;
  const isUnset = (valueAt(old, 'spec', 'storageClassName') ?? null) === null;
  return (
    typeof before === 'string' && isUnset && valueAt(claim, 'spec', 'storageClassName') === before && after === before
  );
}

/** The part of a claim's spec that stays: a volume is bound and a class filled in once, a bound claim may grow. */
function fixedFields(claim: JsonObject, old: JsonObject): JsonObject {
  const fixed: Record<string, unknown> = { ...objectAt(claim, 'spec') };
  if (textAt(old, 'spec', 'volumeName') === '') delete fixed['volumeName'];
  const beta = valueAt(old, 'metadata', 'annotations', BETA_CLASS);
  const isFree = beta === undefined || beta === valueAt(claim, 'spec', 'storageClassName');
  if ((valueAt(old, 'spec', 'storageClassName') ?? null) === null && isFree) delete fixed['storageClassName'];
  if (textAt(old, 'status', 'phase') !== 'Bound') return fixed;
  const { storage: _, ...requests } = objectAt(claim, 'spec', 'resources', 'requests');
  fixed['resources'] = { ...objectAt(claim, 'spec', 'resources'), requests };
  delete fixed['volumeAttributesClassName'];
  return fixed;
}

/** A claim whose growth failed may ask for less again, and for no less than it has. */
function sizeErrors(claim: JsonObject, old: JsonObject): FieldError[] {
  const size = (one: JsonObject) => readQuantity(valueAt(one, 'spec', 'resources', 'requests', 'storage'));
  const has = readQuantity(valueAt(old, 'status', 'capacity', 'storage')) ?? readQuantity(0);
  if (!exceeds(size(old), size(claim)) || exceeds(size(claim), has)) return [];
  return [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')];
}
