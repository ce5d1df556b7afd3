/**
 * The Pod volumes of a launcher (pkg/virt-controller/services/rendervolumes.go): every object that the machine reads is
 * named here, because what its node may read is what Pods bound to it name.
 */

import type { Pod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { STATE_VOLUME } from '../backend-storage/backend-storage.ts';

type PodVolume = NonNullable<Pod['spec']['volumes']>[number];

/** In the order of the machine's own volumes; none twice. */
export function launcherVolumes(spec: ReadonlyVmi['spec'], stateClaim: string | undefined): PodVolume[] {
  const volumes = new Map<string, PodVolume>();
  const add = (volume: PodVolume): void => void (volumes.has(volume.name) || volumes.set(volume.name, volume));
  const secret = (name: string, secretName: string | undefined, optional?: boolean): void => {
    if (secretName) add({ name, secret: { secretName, ...(optional !== undefined && { optional }) } });
  };
  const configMap = (name: string, of: string | undefined, optional?: boolean): void => {
    if (of) add({ name, configMap: { name: of, ...(optional !== undefined && { optional }) } });
  };
  const claim = (name: string, claimName: string | undefined): void => {
    if (claimName) add({ name, persistentVolumeClaim: { claimName } });
  };
  for (const volume of spec.volumes ?? []) {
    const { name } = volume;
    claim(name, volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name);
    claim(name, volume.ephemeral?.persistentVolumeClaim?.claimName);
    secret(name, volume.secret?.secretName, volume.secret?.optional);
    configMap(name, volume.configMap?.name, volume.configMap?.optional);
    secret(name, volume.sysprep?.secret?.name);
    configMap(name, volume.sysprep?.configMap?.name);
    const cloudInit = volume.cloudInitNoCloud ?? volume.cloudInitConfigDrive;
    secret(`${name}-udata`, cloudInit?.secretRef?.name);
    secret(`${name}-ndata`, cloudInit?.networkDataSecretRef?.name);
  }
  for (const { sshPublicKey, userPassword } of spec.accessCredentials ?? []) {
    const name = (sshPublicKey ?? userPassword)?.source?.secret?.secretName;
    if (name) secret(`${name}-access-cred`, name);
  }
  // Set, not added: a volume of the machine that has this name must not be taken for it.
  if (stateClaim) volumes.set(STATE_VOLUME, { name: STATE_VOLUME, persistentVolumeClaim: { claimName: stateClaim } });
  return [...volumes.values()];
}
