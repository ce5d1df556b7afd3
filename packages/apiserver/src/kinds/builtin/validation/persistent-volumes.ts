/** Validation of PersistentVolumes (core/validation, ValidatePersistentVolumeSpec). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { validateRequiredNodes } from '@coracle/apimachinery/validation/affinity';
import {
  forbidden,
  IMMUTABLE,
  invalid,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { successorOf } from '../warnings/core.ts';
import { positiveErrors, validateAccessModes } from './claims.ts';
import { type RuleCheck, validateByRules } from './table-rules.ts';
import rules from './volume-rules.json' with { type: 'json' };
import { sourcesOf, volumeSourceErrors } from './volume-sources.ts';

export function validateVolume(volume: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [spec, name] = [objectAt(volume, 'spec'), textAt(volume, 'metadata', 'name')];
  if (old !== undefined && deepEqual(spec, valueAt(old, 'spec'))) return errors;
  const hasNodes = isObject(valueAt(spec, 'nodeAffinity', 'required'));
  const beside = (kind: string): FieldError[] =>
    kind === 'local' && !hasNodes ? [required('spec.nodeAffinity', 'Local volume requires node affinity')] : [];
  const source: RuleCheck = (errors, _spec, { at }) =>
    errors.push(...volumeSourceErrors('persistent', spec, { at, name, beside }));
  validateByRules(errors, rules.volume, { self: spec, at: 'spec', name, checks: { ...CHECKS, source } });
  if (old !== undefined) validateUpdate(errors, spec, objectAt(old, 'spec'));
  return errors;
}

const CHECKS: Readonly<Record<string, RuleCheck>> = {
  accessModes: (errors, spec, { at }) => validateAccessModes(errors, spec, { at, detail: '' }),
  capacity(errors, value, { at }) {
    const names = Object.keys(objectAt(value));
    if (names.length === 0) errors.push(required(at));
    if (names.join() !== 'storage') errors.push(unsupported(at, objectAt(value), ['storage']));
    validateEach(errors, names, (name) => positiveErrors(valueAt(value, name), `${at}[${name}]`));
  },
  nodes: (errors, wanted, { at }) => isObject(wanted) && validateRequiredNodes(errors, wanted, at),
  recycled(errors, policy, { at, self: spec }) {
    if (policy !== 'Recycle' || !isRoot(textAt(spec, 'hostPath', 'path'))) return;
    errors.push(forbidden(at, "may not be 'recycle' for a hostPath mount of '/'"));
  },
};

const isRoot = (path: string): boolean => path !== '' && path.split('/').every((part) => part === '' || part === '.');

function validateUpdate(errors: FieldError[], spec: JsonObject, before: JsonObject): void {
  if (!deepEqual(keptSources(spec, before), keptSources(before, before))) {
    const detail = 'spec.persistentvolumesource is immutable after creation';
    errors.push(forbidden('spec.persistentvolumesource', detail));
  }
  const mode = valueAt(spec, 'volumeMode');
  if (mode !== valueAt(before, 'volumeMode')) errors.push(invalid('volumeMode', mode ?? null, IMMUTABLE));
  const at = 'spec.volumeAttributesClassName';
  const [now, was] = [spec, before].map((one) => valueAt(one, 'volumeAttributesClassName') ?? null);
  if (was !== null && now === null) errors.push(forbidden(at, 'update from non-nil value to nil is forbidden'));
  const nodes = valueAt(before, 'nodeAffinity');
  if (!isObject(nodes)) return;
  const next = valueAt(spec, 'nodeAffinity') ?? null;
  if (!deepEqual(withoutBeta(next), withoutBeta(nodes))) {
    errors.push(invalid('nodeAffinity', next, `${IMMUTABLE}, except for updating from beta label to GA`));
  }
}

/** A secret to grow with may be named later. */
function keptSources(spec: JsonObject, before: JsonObject): JsonObject {
  const sources: Record<string, unknown> = {};
  for (const name of sourcesOf('persistent', spec)) sources[name] = spec[name];
  const grows = isObject(valueAt(before, 'csi', 'controllerExpandSecretRef'));
  if (isObject(sources['csi']) && !grows) sources['csi'] = { ...sources['csi'], controllerExpandSecretRef: undefined };
  return sources;
}

/** Labels of old stand for those that came after them. */
function withoutBeta(affinity: unknown): unknown {
  const terms = objectsAt(affinity, 'required', 'nodeSelectorTerms').map((term) => ({
    ...term,
    matchExpressions: objectsAt(term, 'matchExpressions').map((one) => ({
      ...one,
      key: successorOf(textAt(one, 'key')),
    })),
  }));
  return isObject(affinity) ? terms : null;
}
