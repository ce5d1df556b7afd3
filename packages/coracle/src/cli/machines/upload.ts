/** `coracle upload NAME FILE`: a disk from an image on this host, sent as virtctl sends it. */
import { createReadStream, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import { CDI_CONFIGS, DATA_VOLUMES, type DataVolume } from '@coracle/kubevirt/kinds/kinds';
import { UPLOAD_GROUP } from '@coracle/kubevirt/rules/data-volume/cdi-roles';
import { imageFormat } from '@coracle/node-agent/fill/image-format';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../../config/cluster.ts';
import {
  type CommandContext,
  CommandError,
  fileProblem,
  numberFlag,
  oneLine,
  textFlag,
  UsageError,
} from '../command.ts';
import { readSize } from './create-manifest.ts';
import { equivalent, isExplained } from './equivalent.ts';

const POLL_MS = 200;
const DEFAULT_TIMEOUT_S = 300;
const LONGEST_TIMEOUT_S = 86_400;
const MIB = 1024 * 1024;
/** An answer is a sentence; more of it is not shown. */
const MAX_ANSWER_CHARS = 4096;

/** `coracle upload`. */
export async function upload(context: CommandContext): Promise<number> {
  const { words, flags, print, signal } = context;
  const [name, file, ...more] = words;
  if (name === undefined || file === undefined || more.length > 0)
    throw new UsageError('upload takes NAME and FILE (see: coracle upload --help)');
  const path = resolve(file);
  const size = await sizeOf(context, path);
  const namespace = textFlag(flags, 'namespace');
  const storageClass = textFlag(flags, 'storage-class');
  if (isExplained(context))
    return equivalent(context, [
      ...['virtctl', 'image-upload', 'dv', name, '--size', size, '--image-path', file, '--insecure'],
      ...(storageClass === undefined ? [] : ['--storage-class', storageClass]),
      ...(namespace === undefined ? [] : ['-n', namespace]),
    ]);
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: LONGEST_TIMEOUT_S, or: DEFAULT_TIMEOUT_S });
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const key = { namespace: namespace ?? cluster.namespace, name };
  print(`dv/${name} ${await ensureTarget(client, dataVolume(key, { size, storageClass }), signal)}`);
  await reached(client, key, { phase: 'UploadReady', seconds, signal });
  const config = await client.get(CDI_CONFIGS, { namespace: '', name: 'config' }, { signal });
  const url = config.spec?.uploadProxyURLOverride ?? config.status?.uploadProxyURL;
  if (!url) throw new CommandError('the cluster names no upload proxy (CDIConfig config)');
  const body = { spec: { pvcName: name } };
  const tokens = `/apis/${UPLOAD_GROUP}/v1beta1/namespaces/${key.namespace}/uploadtokenrequests`;
  const { status } = (await client.raw('POST', tokens, { body, signal })) as { status: { token: string } };
  await send(path, { url, ca: config.status?.uploadProxyCA, token: status.token, signal });
  print(`dv/${name} uploaded`);
  await reached(client, key, { phase: 'Succeeded', seconds: LONGEST_TIMEOUT_S, signal });
  print(`dv/${name} Succeeded`);
  return 0;
}

/** What a guest sees of the image, where nothing is said. Throws UsageError, or CommandError for what is no image. */
async function sizeOf({ flags }: CommandContext, path: string): Promise<string> {
  const size = textFlag(flags, 'size');
  try {
    const format = await imageFormat(path);
    if (size !== undefined) return readSize(size, 'size');
    if (format.type !== 'packed') return `${Math.max(1, Math.ceil(format.virtualSize / MIB))}Mi`;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new CommandError(fileProblem(path, error));
  }
  throw new UsageError('a compressed image does not say how large its disk is: give --size SIZE');
}

const dataVolume = (
  { namespace, name }: ObjectKey,
  { size, storageClass }: { readonly size: string; readonly storageClass: string | undefined },
): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  // A class that waits for a first Pod has the disk made at once: the bytes are here now.
  metadata: { name, namespace, annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': '' } },
  spec: {
    source: { upload: {} },
    storage: {
      ...(storageClass !== undefined && { storageClassName: storageClass }),
      resources: { requests: { storage: size } },
    },
  },
});

/**
 * Makes the DataVolume, or takes one that waits for its bytes, as after an upload that was interrupted. Throws CommandError for
 * one that is full, or that something else fills.
 */
async function ensureTarget(
  client: Client,
  wanted: DataVolume,
  signal: AbortSignal,
): Promise<'created' | 'waits for it'> {
  const { namespace = '', name = '' } = wanted.metadata;
  try {
    await client.create(DATA_VOLUMES, wanted, { signal });
    return 'created';
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
  }
  const { spec, status } = await client.get(DATA_VOLUMES, { namespace, name }, { signal });
  const anew = `another name, or: kubectl delete dv ${name} -n ${namespace}`;
  if (!spec?.source?.upload)
    throw new CommandError(`disk ${namespace}/${name} already exists, and is filled from another source (${anew})`);
  if (status?.phase === 'Succeeded') throw new CommandError(`disk ${namespace}/${name} already exists (${anew})`);
  return 'waits for it';
}

/** Waits for a phase. Throws CommandError with what the DataVolume says meanwhile. */
async function reached(
  client: Client,
  key: ObjectKey,
  { phase, seconds, signal }: { readonly phase: string; readonly seconds: number; readonly signal: AbortSignal },
): Promise<void> {
  const end = systemClock.monotonic() + seconds * 1000;
  for (;;) {
    const { status } = await client.get(DATA_VOLUMES, key, { signal });
    if (status?.phase === phase) return;
    const running = conditionOf({ status }, 'Running');
    if (running?.reason === 'Error')
      throw new CommandError(`dv/${key.name}: ${running.message ?? 'it does not say why'}`);
    if (systemClock.monotonic() > end)
      throw new CommandError(
        `dv/${key.name} is still ${status?.phase || 'Pending'}: ${running?.message ?? 'no reason is given'}`,
      );
    await systemClock.sleep(POLL_MS, signal);
  }
}

interface Sending {
  readonly url: string;
  readonly ca: string | undefined;
  readonly token: string;
  readonly signal: AbortSignal;
}

/** Throws CommandError with what the proxy says of the image. */
async function send(path: string, { url, ca, token, signal }: Sending): Promise<void> {
  const target = new URL('/v1beta1/upload-async', url.includes('://') ? url : `https://${url}`);
  const request = process.getBuiltinModule('node:https').request(target, {
    method: 'POST',
    ...(ca !== undefined && { ca }),
    agent: false,
    signal,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/octet-stream',
      'content-length': statSync(path).size,
    },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  });
  // Whoever refuses an image answers before all of it is there.
  const sent = pipeline(createReadStream(path, { highWaterMark: MIB }), request).catch(() => {});
  let answer: IncomingMessage;
  try {
    answer = await answered;
  } catch (error) {
    if (signal.aborted)
      throw new CommandError('interrupted: the disk still waits for its data (run the same command again to send it)');
    throw new CommandError(`the upload to ${target.host} was interrupted: ${oneLine(error)}`);
  }
  let text = '';
  for await (const chunk of answer) if (text.length < MAX_ANSWER_CHARS) text += String(chunk);
  if (answer.statusCode !== 200) throw new CommandError(`the upload is refused (${answer.statusCode}): ${text}`);
  await sent;
}
