/**
 * Where a branch is now, asked without a program: nearly every poll finds nothing new, and git with its helpers takes some
 * hundred milliseconds of processor time to find that out. It answers where that is plain, and leaves everything else to
 * git: proxies, cookies, ssh, redirects, servers that speak only older protocols, and what is to be said of errors.
 *
 * The protocol is version 2 of gitprotocol-v2(5): one `ls-refs`, without the round trip that asks what the server can do.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bodyChunks } from '@coracle/client/transport/response-body';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createHttpsTransport } from '@coracle/runtime/http/https-transport';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { GitAccess } from './git-command.ts';
import { isCommit } from './repository-url.ts';

const LOOK_MS = 5000;
/** Of an answer: of branches whose names begin alike it names all. */
const MAX_ANSWER_BYTES = 64 * 1024;
const SHA256_LENGTH = 64;
const FLUSH = '0000';
const DELIMITER = '0001';

/**
 * The commit of a full ref; undefined when git is to be asked. `known`: any commit of the repository. Rejects with the
 * signal's reason alone.
 */
export async function quickLook(
  ref: string,
  access: GitAccess,
  { clock, known, signal }: { readonly clock: Clock; readonly known: string; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const linked = createLinkedController(signal);
  const stop = clock.schedule(LOOK_MS, () => linked.abort(new Error('the look took too long')));
  try {
    if (access.protocol === 'file') return await inFiles(ref, access.url);
    if (access.protocol === 'ssh' || access.proxy !== undefined || access.cookieFile !== undefined) return undefined;
    return await overHttp(ref, access, { clock, known, signal: linked.signal });
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    stop();
    linked.release();
  }
}

/** Of a repository whose refs are files; a ref that is packed is not looked for. */
async function inFiles(ref: string, url: string): Promise<string | undefined> {
  const path = new URL(url).pathname;
  if (path.includes('%')) return undefined;
  for (const directory of [join(path, '.git'), path]) {
    const head = await readFile(join(directory, 'HEAD')).catch(() => undefined);
    if (head === undefined) continue;
    const text = (await readFile(join(directory, ref), 'latin1')).trim();
    return isCommit(text) ? text : undefined;
  }
  return undefined;
}

async function overHttp(
  ref: string,
  access: GitAccess,
  { clock, known, signal }: { readonly clock: Clock; readonly known: string; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { protocol, pathname, origin, search } = new URL(access.url);
  if (search !== '') return undefined;
  const transport = createHttpsTransport({
    server: origin,
    http1: true,
    plain: protocol === 'http:',
    keepAlive: false,
    clock,
    ...(access.caFile !== undefined && { ca: await readFile(access.caFile, 'latin1') }),
    ...(access.skipsTlsCheck && { insecureSkipTlsVerify: true }),
  });
  try {
    const answer = await transport({
      method: 'POST',
      path: `${pathname.replace(/\/+$/, '')}/git-upload-pack`,
      query: '',
      headers: {
        'user-agent': 'git/2 (coracle)',
        'git-protocol': 'version=2',
        'content-type': 'application/x-git-upload-pack-request',
        accept: 'application/x-git-upload-pack-result',
        ...(access.authorization !== undefined && { authorization: access.authorization }),
      },
      body: Buffer.from(
        [
          packet('command=ls-refs\n'),
          ...(known.length === SHA256_LENGTH ? [packet('object-format=sha256\n')] : []),
          DELIMITER,
          packet(`ref-prefix ${ref}\n`),
          FLUSH,
        ].join(''),
      ),
      peer: { address: '' },
      signal,
    });
    if (answer.status !== 200) return undefined;
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of bodyChunks(answer, signal)) {
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES) return undefined;
      chunks.push(chunk);
    }
    return commitIn(Buffer.concat(chunks), ref);
  } finally {
    transport.close();
  }
}

/** A pkt-line: its length as four hexadecimal digits goes before it, and counts itself. */
const packet = (text: string): string => `${(Buffer.byteLength(text) + 4).toString(16).padStart(4, '0')}${text}`;

/** The commit that an answer gives for a ref; undefined when it is not whole, or does not name it. */
export function commitIn(answer: Buffer, ref: string): string | undefined {
  let found: string | undefined;
  for (let from = 0; from + 4 <= answer.length; ) {
    const header = answer.toString('latin1', from, from + 4);
    if (header === FLUSH) return from + 4 === answer.length ? found : undefined;
    const length = /^[0-9a-f]{4}$/.test(header) ? Number.parseInt(header, 16) : 0;
    if (length <= 4 || from + length > answer.length) return undefined;
    const [commit = '', name] = answer
      .toString('utf8', from + 4, from + length)
      .replace(/\n$/, '')
      .split(' ');
    if (!isCommit(commit)) return undefined;
    if (name === ref) found = commit;
    from += length;
  }
  return undefined;
}
