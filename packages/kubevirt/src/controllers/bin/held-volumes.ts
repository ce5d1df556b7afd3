/** Volumes whose content the bin holds for a deleted virtual machine. */

import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { DELETED_VIRTUAL_MACHINE_CONTENTS } from '../../kinds/coracle/kinds.ts';
import { holdLabel } from '../../rules/bin/bin-names.ts';

/**
 * Whether it is held: then its content goes by the bin. Asked of the API, as content does not come back; the record was
 * written in the commit of the machine's deletion, long before its volumes are released.
 */
export async function isHeld(client: Client, handle: string, signal: AbortSignal): Promise<boolean> {
  try {
    const selection = { labelSelector: holdLabel(handle), metadataOnly: true, signal };
    const { items } = await client.list(DELETED_VIRTUAL_MACHINE_CONTENTS, selection);
    return items.some(({ metadata }) => metadata.deletionTimestamp === undefined);
  } catch (error) {
    // Whoever took the definition away has no bin.
    if (isNotFound(error)) return false;
    throw error;
  }
}
