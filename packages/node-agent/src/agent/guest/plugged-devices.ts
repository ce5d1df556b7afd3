/** Devices that come to a running guest, and go, as QEMU has them. */
import { type QmpConnection, QmpError } from '../../qmp/qmp-connection.ts';

/** True once the guest has let go of it. It is asked again each time: some overlook the first word. */
export async function removeDevice(qmp: QmpConnection, id: string): Promise<boolean> {
  if (!(await devicesOf(qmp)).has(id)) return true;
  // Refused while the guest is asked already.
  await qmp.execute('device_del', { id }).catch(ignoreRefusal);
  return !(await devicesOf(qmp)).has(id);
}

/** Ids of the devices that were given one. */
export async function devicesOf(qmp: QmpConnection): Promise<ReadonlySet<string>> {
  return new Set((await qmp.execute('qom-list', { path: '/machine/peripheral' })).map(({ name }) => name));
}

/** Throws what is no answer of QEMU. */
export function ignoreRefusal(error: unknown): void {
  if (!(error instanceof QmpError && error.failure === 'refused')) throw error;
}
