/**
 * What an administrator asks for beyond upstream's label, in annotations of the KubeVirt object or of an SSP object:
 * one that says `true` is enough. Who may write those kinds administers the cluster.
 */
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';

/** Label of a VirtualMachine, and annotation for all of them: `true` lets a machine be deleted only when it is stopped. */
export const DELETE_ONLY_WHEN_STOPPED = 'coracle.dev/delete-only-when-stopped';

/** Annotation: `true` asks for the verb `unprotect` of whoever switches the protection of a machine off. */
export const UNPROTECT_PERMISSION_ANNOTATION = 'coracle.dev/unprotect-needs-permission';

export interface ProtectionSettings {
  readonly unprotectNeedsPermission: boolean;
  /** Of every machine, whatever its label says. */
  readonly deleteOnlyWhenStopped: boolean;
}

/** Reads the settings off KubeVirt and SSP objects; none are off. */
export function protectionSettingsOf(
  objects: readonly { readonly metadata: DeepReadonly<ObjectMeta> }[],
): ProtectionSettings {
  const says = (annotation: string): boolean =>
    objects.some(({ metadata }) => metadata.annotations?.[annotation] === 'true');
  return {
    unprotectNeedsPermission: says(UNPROTECT_PERMISSION_ANNOTATION),
    deleteOnlyWhenStopped: says(DELETE_ONLY_WHEN_STOPPED),
  };
}
