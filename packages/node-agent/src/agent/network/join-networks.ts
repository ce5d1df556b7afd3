/** Whether a guest's cards may join the networks beside that of Pods: each has a definition, of a type that is served. */
import { isNotFound } from '@coracle/client/api-failure';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '@coracle/kubevirt/kinds/kinds';
import { readDefinition } from '@coracle/kubevirt/rules/launcher/network-attachments';
import type { PlannedInterface } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { AgentEnvironment } from '../environment.ts';

/** A network that a guest cannot be on; waiting may help. */
export class NetworkError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NetworkError';
  }
}

/**
 * The cards with what their definitions say of them. Throws NetworkError with the words of Multus where one is missing, and
 * what the API says.
 */
export async function joinNetworks(
  { client }: Pick<AgentEnvironment, 'client'>,
  cards: readonly PlannedInterface[],
  signal: AbortSignal,
): Promise<PlannedInterface[]> {
  const read = async (definition: string) => {
    const [namespace = '', name = ''] = definition.split('/');
    try {
      return readDefinition(await client.get(NETWORK_ATTACHMENT_DEFINITIONS, { namespace, name }, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new NetworkError(`cannot find a network-attachment-definition (${name}) in namespace (${namespace})`);
    }
  };
  const joined: PlannedInterface[] = [];
  const known = new Map<string, Awaited<ReturnType<typeof read>>>();
  for (const card of cards) {
    const definition = card.segment?.definition;
    if (definition === undefined) {
      joined.push(card);
      continue;
    }
    const said = known.get(definition) ?? (await read(definition));
    known.set(definition, said);
    if ('problem' in said) throw new NetworkError(`network-attachment-definition ${definition}: ${said.problem}`);
    joined.push({ ...card, ...said });
  }
  return joined;
}
