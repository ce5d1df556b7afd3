/** Who a guest lets in, and where its host keys are kept: read from the manifest of its machine. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import { parse } from 'yaml';

type Spec = DeepReadonly<VirtualMachineInstance['spec']>;

/** Longest user data that is read for the name; cloud-init's inline limit is 2048 bytes. */
const MAX_USER_DATA = 65_536;

/**
 * The user that cloud-init makes, or gives the keys to: `user` of the inline #cloud-config, else the first of its `users` with a
 * name. Undefined where it does not say.
 */
export function cloudInitUser(spec: Spec | undefined): string | undefined {
  for (const { cloudInitNoCloud, cloudInitConfigDrive } of spec?.volumes ?? []) {
    const source = cloudInitNoCloud ?? cloudInitConfigDrive;
    if (!source) continue;
    const text = source.userData ?? decoded(source.userDataBase64 ?? '');
    return text.startsWith('#cloud-config') && text.length <= MAX_USER_DATA ? userOf(text) : undefined;
  }
  return undefined;
}

function userOf(text: string): string | undefined {
  let config: unknown;
  try {
    config = parse(text);
  } catch {
    return undefined; // the guest will say what is wrong with it
  }
  if (typeof config !== 'object' || config === null) return undefined;
  const { user, users } = config as { readonly user?: unknown; readonly users?: unknown };
  return [user, ...(Array.isArray(users) ? users : [])].map(nameOf).find((name) => name !== undefined);
}

/** Manifests are other people's: what is no name of a user goes into no call of ssh. */
const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

const nameOf = (user: unknown): string | undefined => {
  const name = typeof user === 'object' && user !== null ? (user as { readonly name?: unknown }).name : user;
  return typeof name === 'string' && name !== 'default' && USER.test(name) ? name : undefined;
};

function decoded(base64: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
  } catch {
    return '';
  }
}

/** True when the disk that the guest starts from outlives its instance, and its SSH host keys with it. */
export function hasLastingRoot(spec: Spec | undefined): boolean {
  const disks = spec?.domain?.devices?.disks ?? [];
  const ordered = disks.filter(({ bootOrder }) => bootOrder !== undefined);
  const first = ordered.length > 0 ? ordered.reduce((a, b) => (a.bootOrder! <= b.bootOrder! ? a : b)) : disks[0];
  const volume = spec?.volumes?.find(({ name }) => name === (first?.name ?? spec.volumes?.[0]?.name));
  return (
    volume?.persistentVolumeClaim !== undefined || volume?.dataVolume !== undefined || volume?.hostDisk !== undefined
  );
}
