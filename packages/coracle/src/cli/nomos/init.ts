/** `coracle nomos init`: a directory that is a source of format hierarchy. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CommandContext, CommandError, textFlag } from '../command.ts';

const README = `# A source of format hierarchy

Four directories are read, and no other:

- \`system/\`: the Repo object, which says that this is such a source, and HierarchyConfigs.
- \`cluster/\`: objects that lie in no namespace.
- \`namespaces/\`: a directory with a Namespace of its name is that namespace, and its objects lie in it. Objects in a
  directory above are inherited by every namespace below it.
- \`clusterregistry/\`: Clusters and ClusterSelectors, by which objects are meant for some clusters alone.

Check it with \`coracle nomos vet\`; see what a cluster would get with \`coracle nomos hydrate\`.
`;
const SYSTEM_README = `# system

\`repo.yaml\` stays as it is. A HierarchyConfig here names kinds that are not inherited (\`hierarchyMode: none\`).
`;
const REPO = `apiVersion: configmanagement.gke.io/v1
kind: Repo
metadata:
  name: repo
spec:
  version: "1.0.0"
`;
const FILES: Readonly<Record<string, string>> = {
  'README.md': README,
  'system/README.md': SYSTEM_README,
  'system/repo.yaml': REPO,
};
const DIRECTORIES = ['cluster', 'clusterregistry', 'namespaces'];

/** Makes it, in a directory that holds nothing but hidden files; elsewhere with --force. */
export async function init({ flags, print }: CommandContext): Promise<number> {
  const path = textFlag(flags, 'path') ?? '.';
  try {
    await mkdir(path, { recursive: true });
    const found = (await readdir(path)).find((name) => !name.startsWith('.'));
    if (found !== undefined && flags['force'] !== true)
      throw new CommandError(`${path} is not empty: it holds ${found}; --force writes there all the same`);
    for (const directory of DIRECTORIES) await mkdir(join(path, directory), { recursive: true });
    for (const [name, content] of Object.entries(FILES)) {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), content);
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`cannot make ${path}: ${(error as Error).message}`);
  }
  print(`${path} is a source of format hierarchy now`);
  return 0;
}
