/** What a decision about an object may depend on. */

import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';

export interface AdmissionUser {
  readonly username: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface AdmissionContext {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly user: AdmissionUser;
  readonly config: ClusterConfig;
  /** True for KubeVirt's own components: they may write what users may not. */
  readonly trusted: boolean;
  /** True for those who report on instances: KubeVirt's components, and nodes. Of anybody else a status is not taken. */
  readonly reports: boolean;
  randomUuid(): string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const COMPONENTS = ['apiserver', 'controller', 'handler', 'operator', 'synchronization-controller'];

/** KubeVirt's components by the service accounts they run under, in the namespace where KubeVirt is installed. */
export const isKubeVirtComponent = (user: AdmissionUser, namespace = 'kubevirt'): boolean =>
  COMPONENTS.some((name) => user.username === `system:serviceaccount:${namespace}:kubevirt-${name}`);
