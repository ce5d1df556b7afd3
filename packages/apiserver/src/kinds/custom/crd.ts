/** CustomResourceDefinition (apiextensions.k8s.io/v1) as the server reads it: defaults are in place, wrong types are not. */
import type { DeepReadonly, ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { WebhookClientConfig } from '@coracle/apimachinery/types/types';

/** A JSONSchemaProps as it was sent. */
export type RawSchema = Readonly<Record<string, unknown>>;

export interface CrdNames {
  readonly plural: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly kind: string;
  readonly listKind?: string;
  readonly categories?: readonly string[];
}

export interface CrdColumn {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
  readonly jsonPath: string;
}

export interface CrdSubresources {
  readonly status?: object;
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
}

export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema?: { readonly openAPIV3Schema?: RawSchema };
  readonly subresources?: CrdSubresources;
  readonly additionalPrinterColumns?: readonly CrdColumn[];
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
}

export interface CrdWebhook {
  readonly clientConfig?: DeepReadonly<WebhookClientConfig>;
  readonly conversionReviewVersions?: readonly string[];
}

export interface CrdSpec {
  readonly group: string;
  readonly names: CrdNames;
  readonly scope: 'Cluster' | 'Namespaced';
  readonly versions: readonly CrdVersion[];
  readonly conversion?: { readonly strategy: string; readonly webhook?: CrdWebhook };
  readonly preserveUnknownFields?: boolean;
}

export interface CrdCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  readonly observedGeneration?: number;
}

export interface CrdStatus {
  readonly conditions?: readonly CrdCondition[] | null;
  readonly acceptedNames?: CrdNames;
  readonly storedVersions?: readonly string[];
  readonly observedGeneration?: number;
}

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
