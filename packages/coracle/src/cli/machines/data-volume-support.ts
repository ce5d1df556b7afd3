/** Whether a server fills disks. */
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { CommandError } from '../command.ts';

/** Throws CommandError where nothing would ever fill the disk. */
export async function needDataVolumes(client: Client): Promise<void> {
  try {
    await client.raw('GET', '/apis/cdi.kubevirt.io/v1beta1');
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new CommandError(
      'the server has no DataVolumes (cdi.kubevirt.io), which fill disks that last: take an image of a registry by its reference and leave --disk out, or import the file yourself (coracle image import NAME FILE, then --image localhost/NAME)',
    );
  }
}
