/** Rules about labels and annotations. */
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Cause, invalidValue, unsupportedValue } from './causes.ts';
import { gateMissing } from './validate-resources.ts';

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

const SIDECARS = 'hooks.kubevirt.io/hookSidecars';
const IGNITION = 'kubevirt.io/ignitiondata';

/** The reserved labels of an object, with their values. */
export const reservedLabels = (metadata: Metadata | undefined): Record<string, string> =>
  Object.fromEntries(
    RESERVED_LABELS.flatMap((label) => {
      const labels = metadata?.labels;
      return labels !== undefined && Object.hasOwn(labels, label) ? [[label, labels[label]!]] : [];
    }),
  );

export function validateMetadata(
  path: string,
  metadata: Metadata | undefined,
  { config, trusted }: { readonly config: ClusterConfig; readonly trusted: boolean },
): Cause[] {
  const causes: Cause[] = [];
  const reserved = Object.keys(reservedLabels(metadata));
  if (!trusted && reserved.length > 0) {
    causes.push(
      unsupportedValue(
        `${path}.labels`,
        `creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited: ${reserved.join(', ')}`,
      ),
    );
  }
  if (metadata?.annotations?.[IGNITION] && !config.isEnabled('ExperimentalIgnitionSupport')) {
    causes.push(
      invalidValue(
        `${path}.annotations`,
        `${gateMissing('ExperimentalIgnitionSupport')}, invalid entry ${path}.annotations.${IGNITION}`,
      ),
    );
  }
  if (metadata?.annotations?.[SIDECARS] && !config.isEnabled('Sidecar')) {
    causes.push(
      invalidValue(`${path}.annotations`, `${gateMissing('Sidecar')}, invalid entry ${path}.annotations.${SIDECARS}`),
    );
  }
  return causes;
}
