/** `coracle delete NAME...`: deletes as kubectl does and waits until it is gone; `--what-if` shows what that would mean. */

import { qualifiedResource, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { unprotectCommand } from '@coracle/kubevirt/rules/deletion-preview/deletion-preview';
import { isDeleteProtected } from '@coracle/kubevirt/rules/protection/delete-protection';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { clusterReader } from './cluster-reader.ts';
import { type CommandContext, CommandError, numberFlag, oneLine, textFlag, UsageError } from './command.ts';
import { previewMachine, previewNamespace } from './delete-preview.ts';
import { machinePreviewText, namespacePreviewText } from './delete-preview-text.ts';
import { machineWords } from './machine-target.ts';
import { equivalent, isExplained } from './machines/equivalent.ts';
import { needVm, withMachine } from './machines/find-machine.ts';
import { outputFlag } from './output-flag.ts';

const POLL_MS = 200;
/** What lasts no longer is not worth a word. */
const QUIET_MS = 1_000;
const DEFAULT_TIMEOUT_S = 3600;

/** `namespace NAME`, `ns/NAME`. */
const NAMESPACE = /^(?:ns|namespaces?)\/([^/]+)$/;
/** A kind without a name is a call that was not finished. An instance goes with its machine. */
const UNFINISHED = /^(ns|namespaces?|vms?|virtualmachines?(\.kubevirt\.io)?)$|^(vmi|virtualmachineinstance)[^/]*\//;

/** Exit code 0 when all are gone (or would be), 1 when one is refused; those behind it stay. */
export async function delete_(context: CommandContext): Promise<number> {
  const { flags, words, signal } = context;
  const [, namespace] = NAMESPACE.exec(words.join('/')) ?? [];
  if (namespace === undefined && (words.length === 0 || UNFINISHED.test(words.join('/'))))
    throw new UsageError('delete takes machines ([vm] NAME...) or namespace NAME (see: coracle delete --help)');
  outputFlag(flags);
  const wait = textFlag(flags, 'wait') ?? 'true';
  if (wait !== 'true' && wait !== 'false') throw new UsageError(`--wait takes true or false, not "${wait}"`);
  const timeout = numberFlag(flags, 'timeout', { min: 1, max: 604_800, or: DEFAULT_TIMEOUT_S });
  const go = async (target: Target): Promise<number> =>
    isExplained(context)
      ? explain(context, target)
      : flags['what-if'] === true
        ? whatIf(context, target)
        : run(context, { ...target, wait: wait === 'true', timeout });
  if (namespace === undefined) {
    const names = machineWords(words);
    // None is deleted where one is written wrong, or not there.
    if (names.length > 1) for (const name of names) await withMachine(context, name, async () => 0);
    let code = 0;
    for (const name of names)
      code ||= await withMachine(context, name, (call) => {
        const object = flags['what-if'] === true ? needVm(call) : call.vm;
        return go({ client: call.client, type: VIRTUAL_MACHINES, found: { key: call.key, object } });
      });
    return code;
  }
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  return await go({ client, type: NAMESPACES, found: await findNamespace(client, namespace, signal) });
}

function explain(context: CommandContext, { type, found: { key } }: Target): number {
  const where = key.namespace === '' ? [] : ['-n', key.namespace];
  const wait = textFlag(context.flags, 'wait') === 'false' ? ['--wait=false'] : [];
  return equivalent(context, [
    'kubectl',
    'delete',
    type === NAMESPACES ? 'namespace' : 'vm',
    key.name,
    ...where,
    ...wait,
  ]);
}

interface Found {
  readonly key: ObjectKey;
  /** Absent where the caller may not get it. */
  readonly object: KubeObject | undefined;
}

/** Where the caller may not look the server has the last word. */
async function findNamespace(client: Client, name: string, signal: AbortSignal): Promise<Found> {
  const key = { namespace: '', name };
  try {
    return { key, object: await client.get(NAMESPACES, key, { signal }) };
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return { key, object: undefined };
    throw isNotFound(error) ? new CommandError(`there is no namespace ${name}`) : error;
  }
}

const textOf = ({ namespace, name }: ObjectKey): string => (namespace === '' ? name : `${namespace}/${name}`);

interface Target {
  readonly client: Client;
  readonly type: ResourceType<KubeObject>;
  readonly found: Found;
}

async function whatIf({ flags, print, signal }: CommandContext, { client, type, found }: Target): Promise<number> {
  if (!found.object) throw new CommandError(`you may not get ${textOf(found.key)}, so there is nothing to show of it`);
  const reader = clusterReader(client, signal);
  const asJson = outputFlag(flags) === 'json';
  if (type === NAMESPACES) {
    const preview = await previewNamespace(reader, found.object, signal);
    print(asJson ? JSON.stringify(preview, undefined, 2) : namespacePreviewText(preview));
    return preview.verdict.allowed ? 0 : 1;
  }
  const preview = await previewMachine(reader, found.object as never, signal);
  print(asJson ? JSON.stringify(preview, undefined, 2) : machinePreviewText(preview));
  return preview.verdict.allowed ? 0 : 1;
}

async function run(
  { flags, print, progress, signal }: CommandContext,
  { client, type, found, wait, timeout }: Target & { readonly wait: boolean; readonly timeout: number },
): Promise<number> {
  const { key, object } = found;
  try {
    await client.delete(type, key, { signal });
  } catch (error) {
    throw refusal(error, { type, found });
  }
  const { uid } = object?.metadata ?? {};
  const asJson = outputFlag(flags) === 'json';
  const from = key.namespace === '' ? '' : ` from ${key.namespace} namespace`;
  if (!asJson)
    print(`${qualifiedResource({ ...type, resource: type.kind.toLowerCase() })} "${key.name}" deleted${from}`);
  // Who may not look cannot wait.
  if (wait && object) await untilGone({ client, type, key, uid, timeout, progress, signal });
  if (asJson)
    print(
      JSON.stringify({
        kind: type.kind,
        ...key,
        ...(uid && { uid }),
        deleted: true,
        gone: wait && object !== undefined,
      }),
    );
  return 0;
}

/** One line: what the server said, and the way out. */
function refusal(error: unknown, { type, found: { key, object } }: Omit<Target, 'client'>): unknown {
  if (!(error instanceof ApiError) || error.code >= 500) return error;
  if (isNotFound(error)) return new CommandError(error.message);
  const isMachine = type === VIRTUAL_MACHINES;
  const target = isMachine ? `vm ${key.name} -n ${key.namespace}` : `namespace ${key.name}`;
  const ways = [`all that holds it: coracle delete ${target} --what-if`];
  if (isMachine && object && isDeleteProtected(object)) ways.unshift(unprotectCommand(key));
  return new CommandError(`${oneLine(error)} (${ways.join('; ')})`);
}

async function untilGone({
  client,
  type,
  key,
  uid,
  timeout,
  progress,
  signal,
}: {
  readonly client: Client;
  readonly type: ResourceType<KubeObject>;
  readonly key: ObjectKey;
  readonly uid: string | undefined;
  readonly timeout: number;
  readonly progress: CommandContext['progress'];
  readonly signal: AbortSignal;
}): Promise<void> {
  const begun = systemClock.monotonic();
  for (;;) {
    let finalizers: readonly string[];
    try {
      const { metadata } = await client.get(type, key, { signal, metadataOnly: true });
      if (uid !== undefined && metadata.uid !== uid) return;
      finalizers = metadata.finalizers ?? [];
    } catch (error) {
      if (isNotFound(error)) return;
      throw error;
    }
    const held = finalizers.length === 0 ? '' : `, held by ${finalizers.join(', ')}`;
    const waited = systemClock.monotonic() - begun;
    if (waited > timeout * 1000) {
      throw new CommandError(`${textOf(key)} is being deleted and still there after ${timeout} s${held}`);
    }
    if (waited > QUIET_MS) progress(`waiting until ${textOf(key)} is gone${held}`);
    await systemClock.sleep(POLL_MS, signal);
  }
}
