/** Processor models that this node does not offer, as the KubeVirt object says now. */
import { KUBEVIRTS, type KubeVirt } from '../../../api/kinds/kubevirt/kinds.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import type { Logger } from '../../../base/log/log.ts';
import type { Client } from '../../../client/client.ts';
import { obsoleteCpuModels } from '../../../domain/machine-defaults/obsolete-cpu-models.ts';

/** Reads them anew at each call; what was read last holds while the API cannot be asked. Rejects only when aborted. */
export function createObsoleteModels(
  client: Client,
  log: Logger,
): (signal: AbortSignal) => Promise<ReadonlySet<string>> {
  let known: DeepReadonly<KubeVirt> | undefined;
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
