/** Objects from a file of YAML or JSON documents, for commands that take one. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { parseAllDocuments } from 'yaml';
import { CommandError } from './command.ts';

/** Every object of the file (`-` = standard input), lists taken apart. Throws CommandError for what cannot be read. */
export async function readManifests(file: string): Promise<KubeObject[]> {
  let content: string;
  try {
    content = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(`cannot read ${file}: ${(error as Error).message}`);
  }
  const objects: KubeObject[] = [];
  for (const document of parseAllDocuments(content)) {
    if ('errors' in document && document.errors.length > 0)
      throw new CommandError(`${file} is not valid YAML: ${document.errors[0]!.message.split('\n')[0]}`);
    const value = document.toJS() as (KubeObject & { items?: KubeObject[] }) | null;
    if (value === null) continue;
    for (const object of value.kind === 'List' ? (value.items ?? []) : [value]) {
      if (typeof object !== 'object' || object === null || typeof object.kind !== 'string' || !object.metadata)
        throw new CommandError(`${file} holds a document that is not an object: it has no kind or no metadata`);
      objects.push(object);
    }
  }
  return objects;
}
