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
  const ratio = spec.configuration?.additionalGuestMemoryOverheadRatio;
  if (ratio && !(Number(ratio) >= 1)) {
    const at = settings.at('.additionalGuestMemoryOverheadRatio');
    at.invalid('', `${at.path} must be a number of at least 1, not ${ratio}`);
  }
  if (spec.infra?.replicas === 0) found.invalid('spec.infra.replicas', 'infra replica count can not be 0');
  return found.causes;
}

const ONE_PROGRAM = 'the components are one program';
const NO_DEVICES = 'host devices are not passed through';

/** Settings that nobody here follows, and why, or what does instead. */
const UNFOLLOWED: readonly (readonly [path: string, why: string])[] = [
  [
    'configuration.developerConfiguration.logVerbosity',
    'the environment variable CORACLE_LOG sets the level of the program',
  ],
  ['configuration.developerConfiguration.diskVerification', 'disks are read without a helper process'],
  ['configuration.developerConfiguration.minimumClusterTSCFrequency', 'nodes publish no frequency'],
  ['configuration.apiConfiguration', ONE_PROGRAM],
  ['configuration.webhookConfiguration', ONE_PROGRAM],
  ['configuration.controllerConfiguration', ONE_PROGRAM],
  ['configuration.handlerConfiguration', ONE_PROGRAM],
  ['configuration.tlsConfiguration', ONE_PROGRAM],
  ['customizeComponents', ONE_PROGRAM],
  ['infra.nodePlacement', ONE_PROGRAM],
  ['workloads', ONE_PROGRAM],
  ['certificateRotateStrategy', ONE_PROGRAM],
  ['configuration.ksmConfiguration', 'the host decides'],
  ['configuration.permittedHostDevices', NO_DEVICES],
  ['configuration.mediatedDevicesConfiguration', NO_DEVICES],
  ['configuration.selinuxLauncherType', 'launchers are not containers'],
  ['configuration.ovmfPath', 'the firmware of the host is used'],
  ['configuration.memBalloonStatsPeriod', 'guests are queried when metrics are read'],
  ['configuration.virtualMachineInstancesPerNode', 'a node takes as many guests as it has room for'],
];

/** One warning for each that is set; an empty object, or false, sets nothing. */
export function kubeVirtWarnings({ spec }: ReadonlyKubeVirt): string[] {
  return UNFOLLOWED.flatMap(([path, why]) => {
    let value: unknown = spec;
    for (const part of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[part];
    const isSet = typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
    return isSet ? [`spec.${path}: has no effect here; ${why}`] : [];
  });
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
