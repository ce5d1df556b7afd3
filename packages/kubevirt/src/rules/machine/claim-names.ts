import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstanceSpec } from '../../kinds/kinds.ts';

/** Names of the claims that the volumes of an instance, or of a template of some, are. */
export const claimNames = (spec: DeepReadonly<Pick<VirtualMachineInstanceSpec, 'volumes'>> | undefined): string[] =>
  (spec?.volumes ?? [])
    .map(
      (volume) =>
        volume.persistentVolumeClaim?.claimName ??
        volume.ephemeral?.persistentVolumeClaim?.claimName ??
        volume.dataVolume?.name,
    )
    .filter((name) => name !== undefined);
