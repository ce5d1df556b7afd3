/** What a decision about an object may depend on. */

import type { ClusterConfig } from '../../../domain/machine-defaults/cluster-config.ts';

export interface AdmissionUser {
  readonly username: string;
  readonly groups: readonly string[];
}

export interface AdmissionContext {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly user: AdmissionUser;
  readonly config: ClusterConfig;
  /** True for KubeVirt's own components: they may write what users may not. */
  readonly trusted: boolean;
  randomUuid(): string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const COMPONENTS =
  /^system:serviceaccount:[^:]+:kubevirt-(apiserver|controller|handler|operator|synchronization-controller)$/;

/** KubeVirt's components by the service accounts they usually run under. */
export const isKubeVirtComponent = (user: AdmissionUser): boolean => COMPONENTS.test(user.username);
