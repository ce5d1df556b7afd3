/** Rules about labels and annotations. */
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Findings, gateMissing } from './causes.ts';

interface Metadata {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Labels that only KubeVirt's own components may set on an instance. */
const RESERVED_LABELS = [
  'kubevirt.io/created-by',
  'kubevirt.io/migrationJobUID',
  'kubevirt.io/nodeName',
  'kubevirt.io/migrationTargetNodeName',
  'kubevirt.io/schedulable',
  'kubevirt.io/install-strategy',
];

const GATED_ANNOTATIONS = [
  ['kubevirt.io/ignitiondata', 'ExperimentalIgnitionSupport'],
  ['hooks.kubevirt.io/hookSidecars', 'Sidecar'],
] as const;

/** The reserved labels of an object, with their values. */
export const reservedLabels = (metadata: Metadata | undefined): Record<string, string> =>
  Object.fromEntries(
    RESERVED_LABELS.flatMap((label) => {
      const labels = metadata?.labels;
      return labels !== undefined && Object.hasOwn(labels, label) ? [[label, labels[label]!]] : [];
    }),
  );

export function validateMetadata(
  found: Findings,
  metadata: Metadata | undefined,
  { config, trusted }: { readonly config: ClusterConfig; readonly trusted: boolean },
): void {
  const reserved = Object.keys(reservedLabels(metadata)).join(', ');
  if (!trusted && reserved !== '') {
    const text = 'creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited';
    found.unsupported('.labels', `${text}: ${reserved}`);
  }
  for (const [annotation, gate] of GATED_ANNOTATIONS)
    if (metadata?.annotations?.[annotation] && !config.isEnabled(gate)) {
      const at = found.at('.annotations');
      at.invalid('', `${gateMissing(gate)}, invalid entry ${at.path}.${annotation}`);
    }
}
