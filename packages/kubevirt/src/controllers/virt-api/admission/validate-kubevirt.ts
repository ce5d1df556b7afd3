/** Rules about the KubeVirt object. */

import type { ReadonlyKubeVirt } from '../../../kinds/kubevirt.ts';
import { DUPLICATE_UUIDS, DUPLICATE_UUIDS_ANNOTATION } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Cause, duplicateValue, Findings, invalidValue } from './causes.ts';

/** There is one such object in a cluster. */
export function validateNewKubeVirt(existing: readonly ReadonlyKubeVirt[]): Cause[] {
  const names = existing.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ');
  return existing.length === 0 ? [] : [duplicateValue('', `KubeVirt is already created: ${names}`)];
}

export function validateKubeVirt({ metadata, spec }: ReadonlyKubeVirt): readonly Cause[] {
  const found = new Findings();
  const policy = metadata.annotations?.[DUPLICATE_UUIDS_ANNOTATION];
  if (policy !== undefined && !DUPLICATE_UUIDS.some((known) => known === policy)) {
    const field = `metadata.annotations[${DUPLICATE_UUIDS_ANNOTATION}]`;
    found.invalid(field, `${field} must be one of ${DUPLICATE_UUIDS.join(', ')}, not ${policy}`);
  }
  const settings = found.at('spec.configuration');
  const { featureGates = [], disabledFeatureGates = [] } = spec.configuration?.developerConfiguration ?? {};
  const both = featureGates.filter((gate) => disabledFeatureGates.includes(gate));
  if (both.length > 0) {
    const text = `feature gates cannot be enabled and disabled at once: ${both.join(', ')}`;
    settings.invalid('.developerConfiguration.featureGates', text);
  }
  const binding = spec.configuration?.network?.defaultNetworkInterface;
  if (binding !== undefined && !['', 'bridge', 'masquerade'].includes(binding)) {
    const text = `default network interface must be bridge or masquerade, not ${binding}`;
    settings.invalid('.network.defaultNetworkInterface', text);
  }
  if (spec.infra?.replicas === 0) found.invalid('spec.infra.replicas', 'infra replica count can not be 0');
  return found.causes;
}

/** What the settings ask for and nobody here follows: the components are one program, whose log has one level. */
export function kubeVirtWarnings({ spec }: ReadonlyKubeVirt): string[] {
  const asked = Object.keys(spec?.configuration?.developerConfiguration?.logVerbosity ?? {});
  return asked.length === 0
    ? []
    : [
        'spec.configuration.developerConfiguration.logVerbosity: has no effect here; the environment variable CORACLE_LOG sets the level of the program',
      ];
}

/** Deletion waits for the workloads when the object says so. `workloads`: kind -> number of objects. */
export function validateKubeVirtDeletion(
  { spec }: ReadonlyKubeVirt,
  workloads: Readonly<Record<string, number>>,
): Cause[] {
  if (spec.uninstallStrategy !== 'BlockUninstallIfWorkloadsExist') return [];
  const left = Object.entries(workloads).filter(([, count]) => count > 0);
  if (left.length === 0) return [];
  const what = left.map(([kind, count]) => `${count} ${kind}`).join(', ');
  const text = `refusing to uninstall while there are ${what}: delete them`;
  return [invalidValue('', `${text}, or set spec.uninstallStrategy to RemoveWorkloads`)];
}
