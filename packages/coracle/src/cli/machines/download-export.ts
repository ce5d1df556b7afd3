/** An export made, waited for, downloaded and taken back: the file appears whole or not at all. */
import { randomBytes } from 'node:crypto';
import { access, type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { SECRETS } from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import { EXPORT_GROUP, VIRTUAL_MACHINE_EXPORTS, type VirtualMachineExport } from '@coracle/kubevirt/kinds/kinds';
import { EXPORT_TOKEN_HEADER, EXPORT_TOKEN_KEY } from '@coracle/kubevirt/rules/export/export-names';
import { systemClock } from '@coracle/runtime/clock/clock';
import { type CommandContext, CommandError } from '../command.ts';
import { sizeText } from '../size-text.ts';

const POLL_MS = 200;
/** An answer that is no file is a sentence; more of it is not shown. */
const MAX_ANSWER_CHARS = 4096;
const PROGRESS_MS = 1000;
/** For who is killed in the middle: then the export goes by itself. */
const TTL = '2h';
/** Reasons that no waiting changes. */
const HOPELESS = ['InUse', 'VMNotFound', 'VMSnapshotNotFound', 'VMNoVolumes'];

export type ExportedVolume = NonNullable<
  NonNullable<NonNullable<NonNullable<VirtualMachineExport['status']>['links']>['external']>['volumes']
>[number];

export interface ExportRequest {
  readonly namespace: string;
  readonly source: { readonly apiGroup: string; readonly kind: string; readonly name: string };
  /** Waits so long until it is ready. */
  readonly seconds: number;
}

/** What is fetched, how, and into which file. */
export interface Wanted {
  readonly url: string;
  readonly isPacked: boolean;
  readonly file: string;
}

/** Makes the export, has `choose` say what is wanted of its volumes, fetches that and removes the export. Throws CommandError. */
export async function downloadExport(
  { progress, flags, signal }: Pick<CommandContext, 'progress' | 'flags' | 'signal'>,
  client: Client,
  { namespace, source, seconds }: ExportRequest,
  choose: (volumes: readonly ExportedVolume[]) => Wanted,
): Promise<{ readonly file: string; readonly bytes: number }> {
  const key = { namespace, name: `coracle-${randomBytes(5).toString('hex')}` };
  await client.create(
    VIRTUAL_MACHINE_EXPORTS,
    {
      apiVersion: `${EXPORT_GROUP}/v1`,
      kind: 'VirtualMachineExport',
      metadata: key,
      spec: { source, ttlDuration: TTL },
    },
    { signal },
  );
  try {
    const status = await ready(client, key, { seconds, progress, signal });
    const external = status.links?.external;
    const wanted = choose(external?.volumes ?? []);
    const secret = await client.get(SECRETS, { namespace, name: status.tokenSecretRef ?? '' }, { signal });
    const token = Buffer.from(secret.data?.[EXPORT_TOKEN_KEY] ?? '', 'base64').toString();
    const answer = await request(wanted.url, { ca: external?.cert, token, signal });
    const isForced = flags['force'] === true;
    const bytes = await writeWhole(wanted.file, isForced, (file) =>
      receive(answer, file, { isPacked: wanted.isPacked, progress }),
    );
    return { file: wanted.file, bytes };
  } finally {
    // Also after Ctrl-C; what is left where nobody answers goes with its ttl.
    await client.delete(VIRTUAL_MACHINE_EXPORTS, key).catch(() => {});
  }
}

async function ready(
  client: Client,
  key: { readonly namespace: string; readonly name: string },
  {
    seconds,
    progress,
    signal,
  }: { readonly seconds: number; readonly progress: (text: string) => void; readonly signal: AbortSignal },
): Promise<NonNullable<VirtualMachineExport['status']>> {
  const begun = systemClock.monotonic();
  for (;;) {
    const { status } = await client.get(VIRTUAL_MACHINE_EXPORTS, key, { signal });
    if (status?.phase === 'Ready' && status.links?.external) return status;
    const condition = conditionOf({ status }, 'Ready');
    const other = status?.conditions?.find(({ type, message }) => type !== 'Ready' && message);
    const text = condition?.message || other?.message || 'no reason is given';
    if (HOPELESS.includes(condition?.reason ?? '') || other?.reason === 'PVCNotFound')
      throw new CommandError(
        condition?.reason === 'InUse' ? `${text}: stop it, or export a snapshot of it (snapshot/NAME)` : text,
      );
    const waited = systemClock.monotonic() - begun;
    if (waited > seconds * 1000) throw new CommandError(`the export is still ${status?.phase ?? 'Pending'}: ${text}`);
    if (waited > PROGRESS_MS) progress(`waits: ${text}`);
    await systemClock.sleep(POLL_MS, signal);
  }
}

/** Throws CommandError with what the server says. */
async function request(
  url: string,
  { ca, token, signal }: { readonly ca: string | undefined; readonly token: string; readonly signal: AbortSignal },
): Promise<IncomingMessage> {
  const asked = process.getBuiltinModule('node:https').get(url, {
    ...(ca !== undefined && { ca }),
    agent: false,
    signal,
    headers: { [EXPORT_TOKEN_HEADER]: token },
  });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve);
    asked.once('error', (error) =>
      reject(new CommandError(`${new URL(url).origin} cannot be reached: ${error.message}`)),
    );
  });
  if (answer.statusCode === 200) return answer;
  let text = '';
  for await (const chunk of answer) if (text.length < MAX_ANSWER_CHARS) text += String(chunk);
  throw new CommandError(
    `the server of exports answers ${answer.statusCode}: ${text.slice(0, MAX_ANSWER_CHARS).trim()}`,
  );
}

/** Bytes written; what is all zeros stays a hole. Throws CommandError when it breaks off. */
async function receive(
  answer: IncomingMessage,
  file: FileHandle,
  { isPacked, progress }: { readonly isPacked: boolean; readonly progress: (text: string) => void },
): Promise<number> {
  const total = Number(answer.headers['content-length'] ?? Number.NaN);
  const begun = systemClock.monotonic();
  let said = begun;
  let got = 0;
  let at = 0;
  answer.on('data', (chunk: Buffer) => {
    got += chunk.length;
  });
  const bytes = isPacked ? answer.pipe(createGunzip()) : answer;
  answer.once('error', (error) => bytes.destroy(error));
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      if (chunk.some((byte) => byte !== 0)) await file.write(chunk, 0, chunk.length, at);
      at += chunk.length;
      const now = systemClock.monotonic();
      if (now - said < PROGRESS_MS) continue;
      said = now;
      const share = Number.isNaN(total) ? sizeText(got) : `${Math.floor((100 * got) / total)} % of ${sizeText(total)}`;
      progress(`downloads: ${share}, ${sizeText(Math.round((1000 * got) / (now - begun)))}/s`);
    }
  } catch (error) {
    throw new CommandError(`the download was interrupted after ${sizeText(got)}: ${(error as Error).message}`);
  }
  if (!answer.complete) throw new CommandError(`the download was interrupted after ${sizeText(got)}`);
  await file.truncate(at);
  return at;
}

/** Throws CommandError for a file that is there, unless `isForced`. */
export async function checkFree(path: string, isForced: boolean): Promise<void> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  if (isThere && !isForced) throw new CommandError(`${path} already exists: --force replaces it`);
}

/** The file is whole when it appears, and nothing is left where it does not. Throws CommandError. */
async function writeWhole<T>(path: string, isForced: boolean, fill: (file: FileHandle) => Promise<T>): Promise<T> {
  const part = `${path}.${randomBytes(4).toString('hex')}.part`;
  try {
    // A disk may hold what only its user is to see.
    const file = await open(part, 'wx', 0o600);
    let result: T;
    try {
      result = await fill(file);
      await file.sync();
    } finally {
      await file.close();
    }
    if (isForced) await rename(part, path);
    else await link(part, path);
    return result;
  } catch (error) {
    if (error instanceof CommandError || (error as Error).name === 'AbortError') throw error;
    throw new CommandError(`${path} cannot be written: ${(error as Error).message}`);
  } finally {
    await rm(part, { force: true });
  }
}
