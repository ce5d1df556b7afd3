/**
 * Who may have an image that is in the store already. As a kubelet does (KubeletEnsureSecretPulledImages), it is written
 * down with the image how it was pulled: from which repository, and under which credential (its hash). Who comes with
 * neither that credential nor a reason to need none has to ask the registry.
 */
import { createHash } from 'node:crypto';
import type { ImageReference } from '@coracle/runtime/oci/reference';
import type { Credentials } from '@coracle/runtime/oci/registry-client';

/** For each repository that gave the image: `anyone`, or hashes of the credentials that it was given for. */
export type ImageAccess = Readonly<Record<string, 'anyone' | readonly string[]>>;

/** Credentials remembered for one repository; the oldest goes first, and has to ask again. */
const MAX_CREDENTIALS = 64;

/** Key of a repository in `ImageAccess`. */
export const repositoryOf = ({ registry, repository }: ImageReference): string => `${registry}/${repository}`;

const hashOf = (repository: string, { username, password }: Credentials): string =>
  createHash('sha256')
    .update(JSON.stringify([repository, username, password]))
    .digest('hex');

/** True when the image may be given to who comes with these credentials, without asking. No record means no. */
export function mayHave(access: ImageAccess | undefined, repository: string, credentials?: Credentials): boolean {
  const known = access && Object.hasOwn(access, repository) ? access[repository] : undefined;
  if (known === undefined) return false;
  return known === 'anyone' || (credentials !== undefined && known.includes(hashOf(repository, credentials)));
}

/** The record after a pull; `credentials` are those that the registry was shown, absent when it wanted none. */
export function withAccess(
  access: ImageAccess | undefined,
  repository: string,
  credentials: Credentials | undefined,
): ImageAccess {
  const known = access && Object.hasOwn(access, repository) ? access[repository] : undefined;
  if (credentials === undefined || known === 'anyone') return { ...access, [repository]: 'anyone' };
  const hash = hashOf(repository, credentials);
  const others = (known ?? []).filter((one) => one !== hash);
  return { ...access, [repository]: [...others, hash].slice(-MAX_CREDENTIALS) };
}
