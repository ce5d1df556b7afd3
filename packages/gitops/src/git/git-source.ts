/** A Git repository as a source: spec and secrets in, commits and files out. */

import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { GitSpec } from '../kinds/kinds.ts';
import type { GitAccess } from './git-command.ts';
import { type Mirror, openMirror } from './mirror.ts';
import { type ReadOptions, readChanged, readTree } from './read-tree.ts';
import { checkRef, parseRepositoryUrl, treePath } from './repository-url.ts';
import { authorityOf, type ReadSecret, type Source, SourceError } from './source.ts';

export interface GitSourceOptions {
  readonly spec: GitSpec;
  readonly depth?: number;
  /** file:// is for those who may read this host. */
  readonly allowsFile: boolean;
  /** Private to one sync: mirrors, and for the time of a call the files that hold credentials. */
  readonly directory: string;
  readonly secret: ReadSecret;
  readonly clock: Clock;
  readonly maxBytes?: number;
}

/** What of a spec is wanted: the branch, or the revision that goes before it. Throws SourceError for what is no ref. */
export function wantedRef({ branch = '', revision = '' }: GitSpec): { branch: string; revision?: string } {
  const wanted = { branch: branch === '' ? 'master' : branch };
  checkRef(wanted.branch);
  if (revision === '' || revision === 'HEAD') return wanted;
  checkRef(revision);
  return { ...wanted, revision };
}

/** Makes the source; nothing is asked before `resolve`. Throws SourceError for a spec that cannot be meant. */
export function createGitSource(options: GitSourceOptions): Source {
  const { spec, depth = 1, directory, clock } = options;
  const repository = parseRepositoryUrl(spec.repo, options);
  const wanted = wantedRef(spec);
  const path = treePath(spec.dir ?? '');
  // Another URL is another repository: commits of one are not looked for in the other.
  const name = `${createHash('sha256').update(repository.url).digest('hex').slice(0, 24)}.git`;
  let mirror: Mirror | undefined;

  const open = async (): Promise<Mirror> => {
    if (mirror) return mirror;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const other of await readdir(directory))
      if (other !== name && other !== 'known_hosts') await rm(join(directory, other), { recursive: true, force: true });
    mirror = openMirror({
      directory: join(directory, name),
      clock,
      ...(options.maxBytes !== undefined && { maxBytes: options.maxBytes }),
    });
    return mirror;
  };

  const withAccess = async <T>(signal: AbortSignal, act: (access: GitAccess) => Promise<T>): Promise<T> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const place = await mkdtemp(join(directory, 'secret-'));
    try {
      await chmod(place, 0o700);
      return await act(await accessOf(options, { place, signal, repository }));
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  };

  const placeOf = async (commit: string, below: string, signal: AbortSignal): Promise<ReadOptions> => ({
    directory: (await open()).directory,
    commit,
    path: below,
    signal,
  });

  return {
    async resolve(signal) {
      const at = await open();
      return withAccess(signal, (access) => at.fetch({ ...wanted, depth }, access, signal));
    },
    read: async (commit, signal) => readTree(await placeOf(commit, path, signal)),
    readChanged: async (commit, isKnown, signal) => readChanged({ ...(await placeOf(commit, path, signal)), isKnown }),
    readAll: async (commit, signal) => readTree({ ...(await placeOf(commit, '', signal)), isAll: true }),
  };
}

interface AccessPlace {
  /** A directory that is removed after the call. */
  readonly place: string;
  readonly signal: AbortSignal;
  readonly repository: ReturnType<typeof parseRepositoryUrl>;
}

async function accessOf(
  { spec, secret, directory }: GitSourceOptions,
  { place, signal, repository }: AccessPlace,
): Promise<GitAccess> {
  const { protocol, url, credentials } = repository;
  const secrets: string[] = [];
  const file = async (name: string, content: string): Promise<string> => {
    const at = join(place, name);
    await writeFile(at, content.endsWith('\n') ? content : `${content}\n`, { mode: 0o600 });
    return at;
  };
  const basic = (username: string, password: string): string => {
    const encoded = Buffer.from(`${username}:${password}`).toString('base64');
    secrets.push(password, encoded);
    return `Basic ${encoded}`;
  };
  const held = spec.secretRef?.name ? await secret(spec.secretRef.name, signal) : {};
  const key = (name: string): string => {
    const value = held[name];
    if (value === undefined || value === '')
      throw new SourceError(
        `secret ${JSON.stringify(spec.secretRef?.name ?? '')} has no key ${name}, which auth ${spec.auth} needs`,
      );
    return value;
  };
  const cookies = (text: string): string => {
    // The value is the last field of a line (Netscape's form), or comes after the name (Set-Cookie).
    for (const line of text.split(/\r?\n/)) {
      const value = line.split('\t')[6] ?? /^set-cookie:\s*[^=;]+=([^;]+)/i.exec(line)?.[1];
      if (value) secrets.push(value.trim());
    }
    return text;
  };
  const authority = await authorityOf(spec, secret, signal);
  const proxy = spec.proxy || (spec.auth === 'token' ? held['https_proxy'] : undefined);
  return {
    protocol,
    url,
    secrets,
    ...(credentials && { authorization: basic(credentials.username, credentials.password) }),
    ...(spec.auth === 'token' && { authorization: basic(key('username'), key('token')) }),
    ...(spec.auth === 'cookiefile' && { cookieFile: await file('cookies', cookies(key('cookie_file'))) }),
    ...(authority && { caFile: await file('ca.pem', authority) }),
    ...(proxy && { proxy }),
    ...(spec.noSSLVerify && { skipsTlsCheck: true }),
    ...(spec.auth === 'ssh' && {
      ssh: {
        keyFile: await file('key', key('ssh')),
        // Without a list of its own a host is believed the first time, and known from then on.
        knownHostsFile: held['known_hosts']
          ? await file('known_hosts', held['known_hosts'])
          : join(directory, 'known_hosts'),
        acceptsNewHosts: !held['known_hosts'],
      },
    }),
  };
}
