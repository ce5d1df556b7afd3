/** The kind SSP of ssp.kubevirt.io/v1beta3 as a TypeScript type, and its name as clients use it. */
import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';

export const SSP_GROUP = 'ssp.kubevirt.io';

export type SspPhase = 'Deploying' | 'Deployed' | 'Deleting' | 'Deleted' | 'Error' | 'Upgrading';

/** OpenShift's condition, which has a heartbeat beside the transition. */
export interface SspCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  /** RFC 3339. */
  lastHeartbeatTime?: string;
  /** RFC 3339. */
  lastTransitionTime?: string;
}

export interface SspStatus {
  phase?: SspPhase;
  conditions?: SspCondition[];
  operatorVersion?: string;
  targetVersion?: string;
  observedVersion?: string;
  paused?: boolean;
  observedGeneration?: number;
}

/** Asks for what ssp-operator adds to KubeVirt; of its spec only what decides something here. */
export interface Ssp extends KubeObject {
  spec: {
    enableMultipleArchitectures?: boolean;
    cluster?: { workloadArchitectures?: string[]; controlPlaneArchitectures?: string[] };
    commonTemplates: {
      namespace: string;
      dataImportCronTemplates?: { metadata?: { name?: string } }[];
    };
    [field: string]: unknown;
  };
  status?: SspStatus;
}

export const SSPS = namespacedType<Ssp>(`${SSP_GROUP}/v1beta3`, 'ssps', 'SSP');
