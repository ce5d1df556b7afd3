import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstanceSpec } from '../../kinds/kinds.ts';

/** Names of the claims that the volumes of an instance, or of a template of some, are. */
export const claimNames = (spec: DeepReadonly<Pick<VirtualMachineInstanceSpec, 'volumes'>> | undefined): string[] =>
  (spec?.volumes ?? []).flatMap(
    ({ persistentVolumeClaim, ephemeral, dataVolume }) =>
      persistentVolumeClaim?.claimName ?? ephemeral?.persistentVolumeClaim?.claimName ?? dataVolume?.name ?? [],
  );
