/** `coracle sync explain KIND/NAME`: who owns each field of an object. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import { discover, preferredWith } from '@coracle/client/discovery/discover';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from '../command.ts';
import { outputFlag } from '../output-flag.ts';
import { textTable } from '../text-table.ts';
import { fieldOwners, type Ownership } from './field-owners.ts';

/** Short names that kubectl has for what is declared most. */
const SHORT: Readonly<Record<string, string>> = {
  vm: 'virtualmachine',
  vmi: 'virtualmachineinstance',
  dv: 'datavolume',
  pvc: 'persistentvolumeclaim',
  cm: 'configmap',
  ns: 'namespace',
  sa: 'serviceaccount',
  svc: 'service',
  deploy: 'deployment',
};

export async function explain(context: CommandContext): Promise<number> {
  const { flags, words, signal, print } = context;
  const asJson = outputFlag(flags) === 'json';
  const [kind = '', name = ''] = words.length === 2 ? words : (words[0]?.split('/') ?? []);
  if (kind === '' || name === '' || words.length > 2 || words.join('/').split('/').length !== 2)
    throw new UsageError('sync explain takes one object: KIND/NAME or KIND NAME (see: coracle sync explain --help)');
  const cluster = await clusterFrom(context);
  try {
    const { client } = cluster;
    const type = await typeOf(client, kind, signal);
    const namespace = type.namespaced ? (textFlag(flags, 'namespace') ?? cluster.namespace) : '';
    const object = await client.get(type, { namespace, name }, { signal });
    const ownership = fieldOwners(object);
    const what = `${type.kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
    print(asJson ? JSON.stringify({ object: what, ...ownership }, undefined, 2) : text(what, ownership));
    return 0;
  } catch (error) {
    if (error instanceof ApiError) throw new CommandError(error.message);
    throw error;
  } finally {
    await cluster.close();
  }
}

/** By kind, resource or short name, each also with its group behind a dot. */
async function typeOf(client: Client, word: string, signal: AbortSignal): Promise<ResourceType<KubeObject>> {
  const [first = '', ...groups] = word.toLowerCase().split('.');
  const name = SHORT[first] ?? first;
  const group = groups.length === 0 ? undefined : groups.join('.');
  const served = preferredWith(await discover(client, signal), ['get']);
  const fits = served.filter(
    (type) =>
      (type.kind.toLowerCase() === name || type.resource === name) && (group === undefined || type.group === group),
  );
  // Of two of one name kubectl takes the group that is served first; Kubernetes' own come before others.
  const [found] = fits;
  if (!found) throw new CommandError(`the server has no kind ${JSON.stringify(word)} (kubectl api-resources)`);
  return found;
}

function text(what: string, { git, fields }: Ownership): string {
  const head = git
    ? `${what} is managed by ${git.sync}, commit ${git.commit}${git.file === '' ? '' : `, file ${git.file}`}`
    : `${what} is managed by no sync`;
  const rows = fields.map(({ path, owners, why }) => [path, owners.join(', '), why ?? '']);
  return `${head}\n\n${textTable(['FIELD', 'OWNER', 'WHY'], rows)}`;
}
