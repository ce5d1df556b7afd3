/**
 * Writes the project's own descriptor tables of the built-in Kubernetes types and resources from two files of facts.
 * Run by hand when the Kubernetes release moves: see README.md beside this file.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { encodeResources, type ResourceFacts } from './encode-resources.ts';
import { encodeTypes, type TypeFacts } from './encode-types.ts';

/** One line per type or resource keeps differences between releases readable. */
export function renderTypes(facts: Readonly<Record<string, TypeFacts>>): string {
  const { packages, types } = encodeTypes(facts);
  const groups = Object.entries(types).map(([alias, members]) => {
    const lines = Object.entries(members).map(([name, text]) => `${JSON.stringify(name)}:${JSON.stringify(text)}`);
    return `${JSON.stringify(alias)}:{\n${lines.join(',\n')}\n}`;
  });
  return `{"packages":${JSON.stringify(packages)},\n"types":{${groups.join(',\n')}}}\n`;
}

/** See `renderTypes`. */
export function renderResources(facts: ResourceFacts): string {
  const { groupVersions } = encodeResources(facts) as {
    groupVersions: { group: string; version: string; resources: unknown[] }[];
  };
  const blocks = groupVersions.map(
    ({ group, version, resources }) =>
      `{"group":${JSON.stringify(group)},"version":${JSON.stringify(version)},"resources":[\n${resources
        .map((r) => JSON.stringify(r))
        .join(',\n')}\n]}`,
  );
  return `{"groupVersions":[${blocks.join(',\n')}]}\n`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { types: { type: 'string' }, resources: { type: 'string' }, out: { type: 'string' } },
  });
  if (!values.types || !values.resources || !values.out) {
    throw new Error('usage: derive.ts --types FILE --resources FILE --out FOLDER');
  }
  const types = JSON.parse(await readFile(values.types, 'utf8')) as Record<string, TypeFacts>;
  const resources = JSON.parse(await readFile(values.resources, 'utf8')) as ResourceFacts;
  await writeFile(join(values.out, 'apimachinery/src/types/types.generated.json'), renderTypes(types));
  await writeFile(join(values.out, 'apiserver/src/kinds/builtin/resources.generated.json'), renderResources(resources));
}

if (import.meta.main) await main();
