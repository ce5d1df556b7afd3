/** Whether a guest's cards may join the networks beside that of Pods: each has a definition, of a type that is served. */
import { isNotFound } from '@coracle/client/api-failure';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '@coracle/kubevirt/kinds/network-attachment';
import { definitionProblem } from '@coracle/kubevirt/rules/launcher/network-attachments';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { AgentEnvironment } from '../environment.ts';

/** A network that a guest cannot be on; waiting may help. */
export class NetworkError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NetworkError';
  }
}

/** Reads the definitions. Throws NetworkError with the words of Multus where one is missing, and what the API says. */
export async function joinNetworks(
  { client }: Pick<AgentEnvironment, 'client'>,
  cards: MachinePlan['interfaces'],
  signal: AbortSignal,
): Promise<void> {
  for (const definition of new Set(cards.flatMap(({ segment }) => segment?.definition ?? []))) {
    const [namespace = '', name = ''] = definition.split('/');
    let problem: string | undefined;
    try {
      problem = definitionProblem(await client.get(NETWORK_ATTACHMENT_DEFINITIONS, { namespace, name }, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new NetworkError(`cannot find a network-attachment-definition (${name}) in namespace (${namespace})`);
    }
    if (problem !== undefined) throw new NetworkError(`network-attachment-definition ${definition}: ${problem}`);
  }
}
