/** CustomResourceDefinition (apiextensions.k8s.io/v1) as the server reads it: defaults are in place, wrong types are not. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type * as types from '@coracle/apimachinery/types/types';

/** A JSONSchemaProps as it was sent. */
export type RawSchema = Readonly<Record<string, unknown>>;

export type CrdNames = DeepReadonly<types.CustomResourceDefinitionNames>;
export type CrdVersion = DeepReadonly<types.CustomResourceDefinitionVersion>;
export type CrdWebhook = DeepReadonly<types.WebhookConversion>;
export type CrdSpec = DeepReadonly<types.CustomResourceDefinitionSpec>;
export type CrdCondition = DeepReadonly<types.Condition>;
export type CrdStatus = DeepReadonly<types.CustomResourceDefinitionStatus>;

/** A definition that has passed validation. */
export interface Crd {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<ObjectMeta>;
  readonly spec: CrdSpec;
  readonly status?: CrdStatus;
}

/** Holds a definition back until its objects are gone. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

/** Reads a stored object, which validation has seen, as a definition. */
export const asCrd = (object: Readonly<UnstructuredObject>): Crd => object as unknown as Crd;

export const conditionOf = (status: CrdStatus | undefined, type: string): CrdCondition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);

/** The conditions with one of them set; its transition time moves only when the status does. */
export function withCondition(
  conditions: readonly CrdCondition[],
  wanted: Omit<CrdCondition, 'lastTransitionTime'>,
  now: string,
): CrdCondition[] {
  const before = conditions.find(({ type }) => type === wanted.type);
  const moved = before === undefined || before.status !== wanted.status;
  const next = { ...wanted, lastTransitionTime: moved ? now : (before.lastTransitionTime ?? now) };
  return before === undefined ? [...conditions, next] : conditions.map((one) => (one === before ? next : one));
}

/** The version that objects are stored in. */
export const storageVersionOf = (spec: CrdSpec): CrdVersion | undefined => spec.versions.find((v) => v.storage);

/** The generation moves with the spec. */
export const hasSameSpec = (a: Crd, b: Crd): boolean =>
  a.metadata.uid === b.metadata.uid &&
  a.metadata.generation !== undefined &&
  a.metadata.generation === b.metadata.generation;

/** Nothing that readers could see has changed. */
export const sameService = (a: Crd, b: Crd): boolean =>
  deepEqual(a.spec, b.spec) && deepEqual(a.status?.acceptedNames, b.status?.acceptedNames);
