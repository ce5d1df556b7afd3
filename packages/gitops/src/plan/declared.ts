import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { GraphNode } from './order.ts';
import type { Substitution } from './substitutions.ts';

/** One object that is to be there. */
export interface Declared extends GraphNode {
  readonly type: ResourceType<KubeObject>;
  /** With its namespace. */
  readonly object: UnstructuredObject;
  /** Fields that are filled in when it is applied. */
  readonly substitutions?: readonly Substitution[];
  /** File that declares it; undefined for what was added. */
  readonly path?: string;
  /** Commit that it was last written for, where that is not the one that is synced: nothing of it has changed since. */
  readonly since?: string;
  /** Value of annotation `coracle.dev/dependents`: what it says of those who depend on it. */
  readonly dependents?: string;
  /** Its namespace is not made for it. */
  readonly needsNoNamespace?: boolean;
}
