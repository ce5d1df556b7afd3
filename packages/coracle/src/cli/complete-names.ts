/** `coracle complete-names KIND`: names for completion scripts, one a line; machines of other namespaces as `NAME.NAMESPACE`. What cannot be asked completes nothing. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { NAMESPACES, NODES } from '@coracle/apimachinery/types/resource-types';
import {
  DELETED_VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/kinds';
import { listImages } from '@coracle/node-agent/image/local-images';
import { storedEntries } from '@coracle/node-agent/image/store-entries';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { binItems } from './bin-records.ts';
import { type CommandContext, type NameKind, textFlag } from './command.ts';

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
    const { images } = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
    const { IMAGE_CATALOGUE } = await import('./machines/image-catalogue.ts');
    const here = await listImages({ entries: () => storedEntries(images) });
    return [...IMAGE_CATALOGUE.map(({ name }) => name), ...here.map(({ reference }) => reference)];
  }
  if (!Object.hasOwn(TYPES, kind)) return [];
  const cluster = await clusterFrom({ flags, environment });
  const { client } = cluster;
  const namespace = textFlag(flags, 'namespace') ?? cluster.namespace;
  const listed = async (where: { readonly namespace?: string }): Promise<string[]> => {
    const { items } = await client.list(TYPES[kind], { ...where, metadataOnly: true, signal });
    const isOther = (of?: string): boolean => TYPES[kind].namespaced && of !== namespace;
    return items.map(({ metadata: { name = '', namespace: of } }) => (isOther(of) ? `${name}.${of}` : name));
  };
  try {
    if (kind === 'deleted') {
      const items = await binItems(client, { namespace, command: 'undelete', signal });
      return [...new Set(items.map(({ name }) => name))];
    }
    // Machines of all namespaces, where the line names none and they may be listed.
    const everywhere = kind === 'machines' && textFlag(flags, 'namespace') === undefined;
    const own = TYPES[kind].namespaced ? { namespace } : {};
    return await listed(everywhere ? {} : own).catch((error: unknown) => {
      if (everywhere) return listed(own);
      throw error;
    });
  } finally {
    await cluster.close();
  }
}

const TYPES: Readonly<Record<Exclude<NameKind, 'images'>, ResourceType<KubeObject>>> = {
  machines: VIRTUAL_MACHINES,
  deleted: DELETED_VIRTUAL_MACHINES,
  nodes: NODES,
  namespaces: NAMESPACES,
  instancetypes: VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  preferences: VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
};
