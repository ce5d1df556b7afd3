/** Typed names of the built-in resources that our controllers, the agent and the server itself talk about. */
import { clusterType, namespacedType } from '../meta/gvk.ts';
import type { KubeObject } from '../meta/object.ts';
import type { SubjectAccessReview } from './types.ts';

export * from './resource-types.generated.ts';

export const RESOURCE_CLAIMS = namespacedType<KubeObject>('resource.k8s.io/v1', 'resourceclaims', 'ResourceClaim');

/** Of the shape of a SubjectAccessReview, whose user and groups the server ignores here. */
export const SELF_SUBJECT_ACCESS_REVIEWS = clusterType<SubjectAccessReview>(
  'authorization.k8s.io/v1',
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
);
