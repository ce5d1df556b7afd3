/** The CustomResourceDefinition of a kind that is served from the start: its names are accepted, it is established. */
import { formatTime } from '../meta/object.ts';
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from './types.ts';

export interface DefinedKind {
  readonly group: string;
  readonly kind: string;
  /** The kind in lower case with an s when absent. */
  readonly plural?: string;
  /** The kind in lower case when absent. */
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Namespaced when absent. */
  readonly scope?: 'Namespaced' | 'Cluster';
  readonly labels?: Record<string, string>;
  /** Where the definition was approved, of a group that is protected. */
  readonly approval?: string;
  /** Version that objects are stored in; the first when absent. */
  readonly storage?: string;
  readonly versions: readonly Omit<CustomResourceDefinitionVersion, 'served' | 'storage'>[];
}

/** `now`, in milliseconds, is the time that its conditions carry. */
export function establishedDefinition(defined: DefinedKind, now: number): CustomResourceDefinition {
  const { group, kind, labels, approval, storage = defined.versions[0]!.name } = defined;
  const plural = defined.plural ?? `${kind.toLowerCase()}s`;
  const names = {
    plural,
    singular: defined.singular ?? kind.toLowerCase(),
    ...(defined.shortNames && { shortNames: [...defined.shortNames] }),
    kind,
    listKind: `${kind}List`,
    ...(defined.categories && { categories: [...defined.categories] }),
  };
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: 'True' as const,
    lastTransitionTime: formatTime(now),
    reason,
    message,
  });
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${group}`,
      ...(labels && { labels }),
      ...(approval && { annotations: { 'api-approved.kubernetes.io': approval } }),
    },
    spec: {
      group,
      names,
      scope: defined.scope ?? 'Namespaced',
      versions: defined.versions.map((version) => ({ ...version, served: true, storage: version.name === storage })),
      conversion: { strategy: 'None' },
    },
    status: {
      conditions: [
        condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
        condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
        ...(approval
          ? [condition('KubernetesAPIApprovalPolicyConformant', 'ApprovedAnnotation', `approved in ${approval}`)]
          : []),
      ],
      acceptedNames: names,
      storedVersions: [storage],
    },
  };
}

const text = (description: string) => ({ type: 'string', description });

/** A schema with the members that every object has before those of the kind. */
export const rootSchema = (
  description: string,
  properties: Readonly<Record<string, unknown>>,
  required?: readonly string[],
): { openAPIV3Schema: Record<string, unknown> } => ({
  openAPIV3Schema: {
    type: 'object',
    description,
    ...(required && { required }),
    properties: {
      apiVersion: text('Version of the API this object is written in.'),
      kind: text('Kind of this object.'),
      metadata: { type: 'object' },
      ...properties,
    },
  },
});
