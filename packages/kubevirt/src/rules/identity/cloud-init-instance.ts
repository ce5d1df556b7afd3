/**
 * The `instance-id` by which cloud-init in a guest knows whether this is a machine that it has set up already. Where it
 * changes, cloud-init makes SSH host keys, host name and network anew; where it stays, a boot is a boot like any other.
 *
 * It is the firmware UUID: random for each new machine, the same after a restart, a migration and a restore in place
 * (kubevirt pkg/cloud-init). There is one case in which that is not enough: a clone whose patches ask for the UUID of its
 * source. Then the template of the clone carries the annotation, and the id follows from both.
 */
import { uuidV5 } from './firmware-identity.ts';

/** Annotation of a template, and so of its instances: what tells this machine from another with the same UUID. */
export const CLOUD_INIT_INSTANCE = 'coracle.dev/cloud-init-instance';

/** The id of a machine with that firmware UUID; `annotations` are those of its instance. */
export function cloudInitInstanceId(
  firmwareUuid: string,
  annotations: Readonly<Record<string, string>> | undefined,
): string {
  const distinction = annotations?.[CLOUD_INIT_INSTANCE];
  return distinction ? uuidV5(firmwareUuid, distinction) : firmwareUuid;
}
