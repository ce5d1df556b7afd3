/**
 * What ssp-operator's webhook asks of an SSP object (webhooks/ssp_webhook.go), in its words. It also tries the placement
 * of the template validator out on a Deployment; here nothing is placed.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Ssp } from '../../kinds/kinds.ts';

/** Named in refusals. */
export const SSP_WEBHOOK = 'validation.v1beta3.ssp.kubevirt.io';

const ARCHITECTURES = new Set(['amd64', 'arm64', 's390x']);

/** Why it may not be made beside those that exist; there is one at most. */
export function otherSsp(existing: readonly DeepReadonly<Pick<Ssp, 'metadata'>>[]): string | undefined {
  const [first] = existing;
  if (!first) return undefined;
  const { namespace = '', name = '' } = first.metadata;
  return `creation failed, an SSP CR already exists in namespace ${namespace}: ${name}`;
}

/** What is wrong with it; undefined when nothing is. */
export function sspProblem({ spec }: DeepReadonly<Ssp>): string | undefined {
  const cluster = clusterProblem(spec);
  if (cluster !== undefined) return `cluster validation error: ${cluster}`;
  const crons = spec?.commonTemplates?.dataImportCronTemplates ?? [];
  if (crons.some(({ metadata }) => !metadata?.name))
    return 'dataImportCronTemplates validation error: missing name in DataImportCronTemplate';
  return undefined;
}

function clusterProblem(spec: DeepReadonly<Ssp>['spec'] | undefined): string | undefined {
  if (!spec?.cluster)
    return spec?.enableMultipleArchitectures
      ? '.spec.cluster needs to be non-nil, if multi-architecture is enabled'
      : undefined;
  const { workloadArchitectures = [], controlPlaneArchitectures = [] } = spec.cluster;
  if (workloadArchitectures.length === 0 && controlPlaneArchitectures.length === 0)
    return 'at least one architecture needs to be defined, if multi-architecture is enabled';
  for (const [what, architectures] of [
    ['workload', workloadArchitectures],
    ['control plane', controlPlaneArchitectures],
  ] as const) {
    const unknown = architectures.find((one) => !ARCHITECTURES.has(one));
    if (unknown !== undefined) return `invalid ${what} architecture: unknown architecture: ${unknown}`;
  }
  return undefined;
}
