/** `coracle nomos bugreport`: a zip file of syncs, inventories and their events of each cluster. It holds no secret. */
import { join } from 'node:path';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { EVENTS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { shownUrl } from '@coracle/gitops/git/repository-url';
import { REPO_SYNCS, ROOT_SYNCS, type Sync } from '@coracle/gitops/kinds/kinds';
import { systemClock } from '@coracle/runtime/clock/clock';
import { stringify } from 'yaml';
import { VERSION } from '../../config/version.ts';
import { writePrivateFile } from '../../config/write-file.ts';
import { type CommandContext, textFlag } from '../command.ts';
import { durationFlag } from '../duration-flag.ts';
import { type ClusterState, clusterState, inventoriesOf } from './cluster-state.ts';
import { askContexts } from './contexts.ts';
import { statusText } from './status-text.ts';
import { type ZipEntry, zipFile } from './zip-file.ts';

const TIMEOUT_MS = 15_000;
/** Text of one cluster; what comes after it is left out, and named. */
const MAX_CLUSTER_CHARS = 64 * 1024 * 1024;

interface Report {
  readonly state: ClusterState;
  readonly objects: readonly ZipEntry[];
}

/** Writes `bug_report_SECONDS.zip`, as upstream names it, into the current directory or the one of `--output-dir`. */
export async function bugreport(context: CommandContext): Promise<number> {
  const { flags, print } = context;
  const timeoutMs = durationFlag(flags, 'timeout', { or: TIMEOUT_MS, bareSeconds: true });
  const answers = await askContexts(context, timeoutMs, ({ client }, signal) => report(client, signal));
  const now = new Date(systemClock.now());
  const name = `bug_report_${Math.floor(now.getTime() / 1000)}`;
  const entries = answers.flatMap(({ name: of, isCurrent, answer }): ZipEntry[] => {
    const folder = of.replaceAll(/[^\w.@:-]+/g, '_');
    const state = 'error' in answer ? answer : { value: answer.value.state };
    return [
      ...('error' in answer ? [] : answer.value.objects).map((entry) => ({
        name: `${name}/raw/${folder}/${entry.name}`,
        text: entry.text,
      })),
      {
        name: `${name}/processed/${folder}/status.txt`,
        text: `${statusText([{ name: of, isCurrent, answer: state }], { history: true })}\n`,
      },
      { name: `${name}/processed/${folder}/version.txt`, text: `<nomos CLI> ${VERSION}\n` },
    ];
  });
  const path = join(textFlag(flags, 'output-dir') ?? '.', `${name}.zip`);
  writePrivateFile(path, zipFile(entries, now));
  print(`wrote ${path}: ${entries.length} files of ${answers.length} contexts`);
  return 0;
}

async function report(client: Client, signal: AbortSignal): Promise<Report> {
  const state = await clusterState(client, { resources: true }, signal);
  const objects: ZipEntry[] = [];
  let left = MAX_CLUSTER_CHARS;
  const add = (name: string, object: ReadonlyObject): void => {
    const text = stringify(withoutSecrets(object));
    left -= text.length;
    objects.push({ name: `${name}.yaml`, text: left >= 0 ? text : '# left out: the report would be too large\n' });
  };
  for (const type of [ROOT_SYNCS, REPO_SYNCS]) {
    for (const sync of await syncsOf(client, type, signal)) {
      const { namespace = '', name = '' } = sync.metadata;
      const at = `namespaces/${namespace}`;
      add(`${at}/${type.kind}-${name}`, sync);
      for (const group of await inventoriesOf(client, sync, signal))
        add(`${at}/ResourceGroup-${group.metadata.name}`, group);
      const fieldSelector = `involvedObject.kind=${type.kind},involvedObject.name=${name}`;
      const events = await client.list(EVENTS, { namespace, fieldSelector, signal });
      for (const event of events.items) add(`${at}/Event-${event.metadata.name}`, event as ReadonlyObject);
    }
  }
  return { state, objects };
}

async function syncsOf(client: Client, type: typeof ROOT_SYNCS, signal: AbortSignal): Promise<readonly Sync[]> {
  return ((await orAbsent(client.list(type, { signal })))?.items ?? []) as Sync[];
}

/** Without what may hold credentials: those in addresses, values of charts, and copies of both that clients keep. */
function withoutSecrets(object: ReadonlyObject): KubeObject {
  const copy = cloneJson<KubeObject & { spec?: Record<string, unknown> }>(object as ReadonlyObject);
  delete copy.metadata.managedFields;
  delete copy.metadata.annotations?.['kubectl.kubernetes.io/last-applied-configuration'];
  const { git, helm } = (copy.spec ?? {}) as { git?: Record<string, unknown>; helm?: Record<string, unknown> };
  for (const source of [git, helm])
    for (const field of ['repo', 'proxy'] as const)
      if (typeof source?.[field] === 'string') source[field] = shownUrl(source[field]);
  if (helm?.['values'] !== undefined) helm['values'] = '<left out>';
  return copy;
}
