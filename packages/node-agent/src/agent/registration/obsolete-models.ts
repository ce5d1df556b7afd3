/** Processor models that this node does not offer, as the KubeVirt object says now. */

import type { Client } from '@coracle/client/client';
import { KUBEVIRTS, type ReadonlyKubeVirt } from '@coracle/kubevirt/kinds/kinds';
import { obsoleteCpuModels } from '@coracle/kubevirt/rules/machine-defaults/obsolete-cpu-models';
import type { Logger } from '@coracle/runtime/log/log';

/** Reads them anew at each call; what was read last holds while the API cannot be asked. Rejects only when aborted. */
export function createObsoleteModels(
  client: Client,
  log: Logger,
): (signal: AbortSignal) => Promise<ReadonlySet<string>> {
  let known: ReadonlyKubeVirt | undefined;
  return async (signal) => {
    try {
      [known] = (await client.list(KUBEVIRTS, { signal })).items;
    } catch (error) {
      signal.throwIfAborted();
      log.debug('KubeVirt object not read', { error: (error as Error).message });
    }
    return obsoleteCpuModels(known);
  };
}
