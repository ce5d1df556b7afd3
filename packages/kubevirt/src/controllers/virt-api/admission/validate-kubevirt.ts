/** Rules about the KubeVirt object. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { KubeVirt } from '../../../kinds/kubevirt.ts';
import { DUPLICATE_UUIDS, DUPLICATE_UUIDS_ANNOTATION } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Cause, duplicateValue, invalidValue } from './causes.ts';

type Kv = DeepReadonly<KubeVirt>;

/** There is one such object in a cluster. */
export const validateNewKubeVirt = (existing: readonly Kv[]): Cause[] =>
  existing.length === 0
    ? []
    : [
        duplicateValue(
          '',
          `KubeVirt is already created: ${existing.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ')}`,
        ),
      ];

export function validateKubeVirt({ metadata, spec }: Kv): Cause[] {
  const causes: Cause[] = [];
  const policy = metadata.annotations?.[DUPLICATE_UUIDS_ANNOTATION];
  if (policy !== undefined && !DUPLICATE_UUIDS.some((known) => known === policy)) {
    const field = `metadata.annotations[${DUPLICATE_UUIDS_ANNOTATION}]`;
    causes.push(invalidValue(field, `${field} must be one of ${DUPLICATE_UUIDS.join(', ')}, not ${policy}`));
  }
  const developer = spec.configuration?.developerConfiguration;
  const path = 'spec.configuration.developerConfiguration';
  const both = (developer?.featureGates ?? []).filter((gate) => developer?.disabledFeatureGates?.includes(gate));
  if (both.length > 0) {
    causes.push(
      invalidValue(`${path}.featureGates`, `feature gates cannot be enabled and disabled at once: ${both.join(', ')}`),
    );
  }
  const binding = spec.configuration?.network?.defaultNetworkInterface;
  if (binding !== undefined && !['', 'bridge', 'masquerade'].includes(binding)) {
    causes.push(
      invalidValue(
        'spec.configuration.network.defaultNetworkInterface',
        `default network interface must be bridge or masquerade, not ${binding}`,
      ),
    );
  }
  const replicas = spec.infra?.replicas;
  if (replicas === 0) causes.push(invalidValue('spec.infra.replicas', 'infra replica count can not be 0'));
  return causes;
}

/** What the settings ask for and nobody here follows: the components are one program, whose log has one level. */
export function kubeVirtWarnings({ spec }: Kv): string[] {
  const asked = Object.keys(spec?.configuration?.developerConfiguration?.logVerbosity ?? {});
  return asked.length === 0
    ? []
    : [
        'spec.configuration.developerConfiguration.logVerbosity: has no effect here; the environment variable CORACLE_LOG sets the level of the program',
      ];
}

/** Deletion waits for the workloads when the object says so. `workloads`: kind -> number of objects. */
export function validateKubeVirtDeletion({ spec }: Kv, workloads: Readonly<Record<string, number>>): Cause[] {
  if (spec.uninstallStrategy !== 'BlockUninstallIfWorkloadsExist') return [];
  const left = Object.entries(workloads).filter(([, count]) => count > 0);
  return left.length === 0
    ? []
    : [
        invalidValue(
          '',
          `refusing to uninstall while there are ${left.map(([kind, count]) => `${count} ${kind}`).join(', ')}: delete them, or set spec.uninstallStrategy to RemoveWorkloads`,
        ),
      ];
}
