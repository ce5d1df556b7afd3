/** Volumes whose content the bin holds for a deleted virtual machine. */

import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { DELETED_VIRTUAL_MACHINE_CONTENTS } from '../../kinds/kinds.ts';
import { holdLabel } from '../../rules/bin/bin-names.ts';

/**
 * Whether it is held: then its content goes by the bin. Asked of the API, as content does not come back; the record was
 * written in the commit of the machine's deletion, long before its volumes are released.
 */
export async function isHeld(client: Client, handle: string, signal: AbortSignal): Promise<boolean> {
  const selection = { labelSelector: holdLabel(handle), metadataOnly: true, signal };
  // Whoever took the definition away has no bin.
  const list = await orAbsent(client.list(DELETED_VIRTUAL_MACHINE_CONTENTS, selection));
  return list?.items.some(({ metadata }) => metadata.deletionTimestamp === undefined) ?? false;
}
