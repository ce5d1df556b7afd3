/**
 * The built-in kinds that are read and written here, as types: generated from the table of all of them (`builtin-types.ts`),
 * which the server prunes and validates by. What is added here are names for parts of them.
 */
import type { DeepReadonly, KubeObject } from '../meta/object.ts';
import type { Node, PersistentVolumeClaim, Pod, PodSpec, PodStatus, Taint } from './kinds.generated.ts';

export type * from './basic-types.ts';
export type * from './kinds.generated.ts';

export type TaintEffect = Taint['effect'];

/** A Pod as it may be before it is validated: what is asked of it may be missing. */
export interface PodParts extends KubeObject {
  spec?: Partial<PodSpec>;
  status?: PodStatus;
}

/** As stores and caches hand them out: nobody changes them. */
export type ReadonlyPod = DeepReadonly<Pod>;
export type ReadonlyClaim = DeepReadonly<PersistentVolumeClaim>;
export type ReadonlyNode = DeepReadonly<Node>;
