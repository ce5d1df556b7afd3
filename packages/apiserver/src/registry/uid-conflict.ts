/** Conflicts about another incarnation of a name. */
import { type ApiError, conflict, type GroupResource } from '@coracle/apimachinery/meta/status';
import type { WriteCall } from './write-contract.ts';

/** The conflict as upstream's store words it, with its key. */
export function storedUidConflict(
  { info, namespace, name, dryRun }: Pick<WriteCall, 'info' | 'namespace' | 'name' | 'dryRun'>,
  { wanted, found }: { readonly wanted: string; readonly found: string },
): ApiError {
  const { group, resource } = info;
  const { server, keyName = resource } = info.strategy;
  const place = server === 'extension' ? `${group}/${resource}` : keyName;
  const key = `${dryRun ? '' : '/registry'}/${place}/${namespace === '' ? '' : `${namespace}/`}${name}`;
  const why = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found}`;
  const text = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
  return conflict(info, name, text);
}

/** 409 because the caller meant another incarnation of the name. */
export const uidConflict = (
  info: GroupResource,
  name: string,
  { wanted, found }: { readonly wanted: string; readonly found: string },
): ApiError =>
  conflict(info, name, `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found}`);
