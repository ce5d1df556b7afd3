/** Shapes of RBAC, review, admission and API-registration kinds; see `types.ts` for what these interfaces are and are not. */
import type { KubeObject } from '../meta/object.ts';
import type { Condition, LabelSelector } from './types.ts';

export interface PolicyRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

export interface RoleRef {
  apiGroup: string;
  kind: 'Role' | 'ClusterRole';
  name: string;
}

export interface Subject {
  kind: 'User' | 'Group' | 'ServiceAccount';
  apiGroup?: string;
  name: string;
  namespace?: string;
}

export interface Role extends KubeObject {
  rules?: PolicyRule[];
}

export interface ClusterRole extends KubeObject {
  rules?: PolicyRule[];
  aggregationRule?: { clusterRoleSelectors?: LabelSelector[] };
}

export interface RoleBinding extends KubeObject {
  subjects?: Subject[];
  roleRef: RoleRef;
}

export interface ClusterRoleBinding extends KubeObject {
  subjects?: Subject[];
  roleRef: RoleRef;
}

/** authentication.k8s.io/v1 UserInfo. */
export interface UserInfo {
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

export interface TokenReview extends KubeObject {
  spec: { token?: string; audiences?: string[] };
  status?: { authenticated?: boolean; user?: UserInfo; audiences?: string[]; error?: string };
}

/** authentication.k8s.io/v1 TokenRequest: the body of `serviceaccounts/token`. */
export interface TokenRequest extends KubeObject {
  spec: {
    audiences: string[];
    expirationSeconds?: number;
    boundObjectRef?: { kind?: string; apiVersion?: string; name?: string; uid?: string };
  };
  status?: { token: string; expirationTimestamp: string };
}

export interface SelectorAttributes<R> {
  rawSelector?: string;
  requirements?: R[];
}

export interface ResourceAttributes {
  namespace?: string;
  verb?: string;
  group?: string;
  version?: string;
  resource?: string;
  subresource?: string;
  name?: string;
  fieldSelector?: SelectorAttributes<{ key: string; operator: string; values?: string[] }>;
  labelSelector?: SelectorAttributes<{ key: string; operator: string; values?: string[] }>;
}

export interface NonResourceAttributes {
  path?: string;
  verb?: string;
}

export interface SubjectAccessReviewStatus {
  allowed: boolean;
  denied?: boolean;
  reason?: string;
  evaluationError?: string;
}

/** The same shape serves SelfSubjectAccessReview (which ignores user and groups) and LocalSubjectAccessReview. */
export interface SubjectAccessReview extends KubeObject {
  spec: {
    resourceAttributes?: ResourceAttributes;
    nonResourceAttributes?: NonResourceAttributes;
    user?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
    uid?: string;
  };
  status?: SubjectAccessReviewStatus;
}

// API registration and custom resources.

export interface CustomResourceDefinitionNames {
  plural: string;
  singular?: string;
  shortNames?: string[];
  kind: string;
  listKind?: string;
  categories?: string[];
}

export interface CustomResourceColumnDefinition {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath: string;
}

export interface CustomResourceDefinitionVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  /** `openAPIV3Schema` is JSONSchemaProps as written. */
  schema?: { openAPIV3Schema?: Record<string, unknown> };
  subresources?: {
    status?: Record<string, never>;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: CustomResourceColumnDefinition[];
  selectableFields?: { jsonPath: string }[];
}

/** apiextensions.k8s.io/v1 WebhookClientConfig and its twins in admission and apiregistration. */
export interface WebhookClientConfig {
  url?: string;
  service?: { namespace: string; name: string; path?: string; port?: number };
  /** Base64 PEM. */
  caBundle?: string;
}

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    names: CustomResourceDefinitionNames;
    scope: 'Namespaced' | 'Cluster';
    versions: CustomResourceDefinitionVersion[];
    conversion?: {
      strategy: 'None' | 'Webhook';
      webhook?: { clientConfig?: WebhookClientConfig; conversionReviewVersions: string[] };
    };
    preserveUnknownFields?: boolean;
  };
  status?: {
    conditions?: Condition[];
    acceptedNames?: CustomResourceDefinitionNames;
    storedVersions?: string[];
    observedGeneration?: number;
  };
}

export interface APIService extends KubeObject {
  spec?: {
    service?: { namespace?: string; name?: string; port?: number };
    group?: string;
    version?: string;
    insecureSkipTLSVerify?: boolean;
    caBundle?: string;
    groupPriorityMinimum: number;
    versionPriority: number;
  };
  status?: { conditions?: Condition[] };
}
