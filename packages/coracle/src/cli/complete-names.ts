/** `coracle complete-names KIND`: names for completion scripts, one a line. What cannot be asked completes nothing. */

import { NODES } from '@coracle/apimachinery/types/resource-types';
import { VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { openImageStore } from '@coracle/node-agent/image/image-store';
import { listImages } from '@coracle/node-agent/image/local-images';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import type { CommandContext, NameKind } from './command.ts';

/** Who waits at a prompt waits no longer. */
const PATIENCE_MS = 2_000;

/** Exit code 0 in any case: nothing is said at a prompt. */
export async function completeNames({ words, flags, environment, print, signal }: CommandContext): Promise<number> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
  const names = await namesOf(words[0] as NameKind, { flags, environment, signal: limit }).catch(() => []);
  if (names.length > 0) print(names.join('\n'));
  return 0;
}

async function namesOf(
  kind: NameKind,
  { flags, environment, signal }: Pick<CommandContext, 'flags' | 'environment' | 'signal'>,
): Promise<readonly string[]> {
  if (kind === 'images') {
    const { images } = dataDirAt(defaultDataDir(environment));
    const { IMAGE_CATALOGUE } = await import('./machines/image-catalogue.ts');
    const here = await listImages(await openImageStore(images, { clock: systemClock }));
    return [...IMAGE_CATALOGUE.map(({ name }) => name), ...here.map(({ reference }) => reference)];
  }
  const cluster = await clusterFrom({ flags, environment });
  try {
    const { items } =
      kind === 'nodes'
        ? await cluster.client.list(NODES, { metadataOnly: true, signal })
        : await cluster.client.list(VIRTUAL_MACHINES, { namespace: cluster.namespace, metadataOnly: true, signal });
    return items.map(({ metadata }) => metadata.name ?? '');
  } finally {
    await cluster.close();
  }
}
