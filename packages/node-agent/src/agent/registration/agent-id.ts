/**
 * Which agent a Node belongs to. Two agents of one name would each take the other's guests for lost, so an agent keeps an
 * id in its directory, shows it on its Node, and leaves a Node alone that is Ready under another id.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyNode } from '@coracle/apimachinery/types/types';
import { isUid } from '../../disk/vm-directory.ts';
import { writeFileAtomic } from '../../image/atomic-file.ts';
import { AGENT_ID_ANNOTATION } from './node-object.ts';

const FILE = 'agent.id';

/** The id of the agent that works in `directory`, made when it is the first there. Only one may ask at a time. */
export async function agentId(directory: string): Promise<string> {
  const known = await knownAgentId(directory);
  if (known !== undefined) return known;
  const made = randomUUID();
  await writeFileAtomic(join(directory, FILE), made);
  return made;
}

/** The id of the agent that worked in `directory` before; undefined when none did. */
export async function knownAgentId(directory: string): Promise<string | undefined> {
  const text = await readFile(join(directory, FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return isUid(text) ? text : undefined;
}

/** Whether an agent other than `id` serves the node. One that has stopped reporting (Ready is not True) has left it. */
export function servedByAnother(node: ReadonlyNode, id: string | undefined): boolean {
  const shown = node.metadata.annotations?.[AGENT_ID_ANNOTATION];
  const ready = isConditionTrue(node, 'Ready');
  return shown !== undefined && shown !== id && ready;
}

/** What is said of such a node. */
export const takenMessage = (name: string): string =>
  `another agent serves a node named "${name}", and it is Ready: give this one a name of its own, or stop the other one and wait until its node is not Ready`;
