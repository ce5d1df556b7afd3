/**
 * Kubeconfig files: the admin's own, and a context added to the user's. The user's file is edited as a YAML document,
 * so comments, order and foreign keys stay as they are, and is replaced atomically under the lock file kubectl uses.
 */
import { closeSync, existsSync, openSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { systemClock } from '@coracle/runtime/clock/clock';
import type { Document, YAMLMap, YAMLSeq } from 'yaml';
import { makePrivateDirs } from './data-dir.ts';
import { readFileIfAny, writePrivateFile } from './write-file.ts';

export interface ClusterAccess {
  /** Name of the context, the cluster and (with `-admin`) the user. */
  readonly name: string;
  readonly server: string;
  /** PEM. */
  readonly ca: string;
  readonly user: { readonly certificate: string; readonly key: string } | { readonly token: string };
}

/** Loaded when a kubeconfig of the user's is read: synchronously, as editing it is. */
const yaml = (): typeof import('yaml') => createRequire(import.meta.url)('yaml') as typeof import('yaml');

const base64 = (text: string): string => encodeBase64(new TextEncoder().encode(text));

const clusterEntry = (access: ClusterAccess) => ({
  server: access.server,
  'certificate-authority-data': base64(access.ca),
});
const userEntry = ({ user }: ClusterAccess) =>
  'token' in user
    ? { token: user.token }
    : { 'client-certificate-data': base64(user.certificate), 'client-key-data': base64(user.key) };

/** A whole kubeconfig for one cluster. Written by hand: it is made at every start, and the YAML library takes long to load. */
export function renderKubeconfig(access: ClusterAccess): string {
  const name = scalar(access.name);
  const user = scalar(`${access.name}-admin`);
  const members = (entry: Readonly<Record<string, string>>): string[] =>
    Object.entries(entry).map(([key, value]) => `      ${key}: ${scalar(value)}`);
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `  - name: ${name}`,
    '    cluster:',
    ...members(clusterEntry(access)),
    'users:',
    `  - name: ${user}`,
    '    user:',
    ...members(userEntry(access)),
    'contexts:',
    `  - name: ${name}`,
    '    context:',
    `      cluster: ${name}`,
    `      user: ${user}`,
    `current-context: ${name}`,
    '',
  ].join('\n');
}

/**
 * What a YAML parser makes of a text of `renderKubeconfig`; undefined for every other text. Loading that parser takes half
 * of the time in which a command starts, and most commands read such a file only.
 */
export function parseRendered(text: string): Readonly<Record<string, unknown>> | undefined {
  const values = new Map<string, string>();
  for (const [, key = '', value = ''] of text.matchAll(/^ *(?:- )?([a-z-]+): (.+)$/gm)) {
    try {
      values.set(key, value.startsWith('"') ? (JSON.parse(value) as string) : value);
    } catch {
      return undefined;
    }
  }
  const of = (key: string): string => values.get(key) ?? '';
  const decoded = (key: string): string => Buffer.from(of(key), 'base64').toString('utf8');
  const access: ClusterAccess = {
    name: of('current-context'),
    server: of('server'),
    ca: decoded('certificate-authority-data'),
    user: values.has('token')
      ? { token: of('token') }
      : { certificate: decoded('client-certificate-data'), key: decoded('client-key-data') },
  };
  // Whatever the lines above made of a text of another origin: only what is written the same way again is taken.
  if (renderKubeconfig(access) !== text) return undefined;
  const lists = entriesOf(access).map(([field, , entry]) => [field, [entry]] as const);
  return { apiVersion: 'v1', kind: 'Config', ...Object.fromEntries(lists), 'current-context': access.name };
}

/** The lists of a kubeconfig, and what an entry of ours is called and is in each. */
function entriesOf(access: ClusterAccess) {
  const { name } = access;
  const user = `${name}-admin`;
  return [
    ['clusters', name, { name, cluster: clusterEntry(access) }],
    ['users', user, { name: user, user: userEntry(access) }],
    ['contexts', name, { name, context: { cluster: name, user } }],
  ] as const;
}

/** A YAML scalar that is text for every reader: plain where no reader could take it for something else, else quoted. */
function scalar(text: string): string {
  const isPlain = /^[A-Za-z][A-Za-z0-9+/=:._-]*$/.test(text) && !text.endsWith(':');
  const isWord = /^(y|yes|n|no|on|off|true|false|null|nan|inf)$/i.test(text);
  return isPlain && !isWord ? text : JSON.stringify(text);
}

/** The same without what the entries are. */
const places = (name: string): readonly (readonly [field: string, name: string])[] => [
  ['clusters', name],
  ['users', `${name}-admin`],
  ['contexts', name],
];

/** What a context of that name leads to, and the entries that make it up, those that are there. */
export interface ContextEntries {
  readonly server: unknown;
  readonly entries: readonly (readonly [field: string, name: string, entry: unknown])[];
}

/** Throws when the text is not a kubeconfig. */
export function contextEntries(text: string, name: string): ContextEntries {
  const document = open(text);
  const entries = places(name).map(
    ([field, entry]) => [field, entry, entryOf(document, field, entry)?.toJSON()] as const,
  );
  return { server: serverIn(document, name), entries: entries.filter(([, , entry]) => entry !== undefined) };
}

/** Puts the cluster, user and context into a kubeconfig text ('' for none); an existing current context stays. Throws when the text is not a kubeconfig. */
export function mergeKubeconfig(text: string, access: ClusterAccess): string {
  const document = open(text);
  for (const [field, name, entry] of entriesOf(access)) put(document, field, name, entry);
  if (!document.get('current-context')) document.set('current-context', access.name);
  return document.toString({ lineWidth: 0 });
}

/**
 * Takes the cluster, user and context out again, and puts back what they replaced, if that is given; the rest, and a current context
 * of another name, stay. Entries that by now lead to another server are somebody else's and stay too.
 */
export function unmergeKubeconfig(
  text: string,
  { name, server }: Pick<ClusterAccess, 'name' | 'server'>,
  replaced?: ContextEntries,
): string {
  const document = open(text);
  if (serverIn(document, name) !== server) return text;
  for (const [field, entry] of places(name)) drop(document, field, entry);
  for (const [field, entry, value] of replaced?.entries ?? []) put(document, field, entry, value);
  if (!replaced && document.get('current-context') === name) document.set('current-context', '');
  return document.toString({ lineWidth: 0 });
}

const serverIn = (document: Document, name: string): unknown =>
  entryOf(document, 'clusters', name)?.getIn(['cluster', 'server']);

function itemsOf(document: Document, field: string): unknown[] | undefined {
  const list = document.get(field);
  return yaml().isSeq(list) ? (list as YAMLSeq).items : undefined;
}

const entryOf = (document: Document, field: string, name: string): YAMLMap | undefined =>
  itemsOf(document, field)?.find((item) => nameOf(item) === name) as YAMLMap | undefined;

function open(text: string): Document {
  const document = yaml().parseDocument(text.trim() === '' ? 'apiVersion: v1\nkind: Config\n' : text);
  if (document.errors.length > 0) throw new Error(`not valid YAML: ${document.errors[0]!.message.split('\n')[0]}`);
  if (!yaml().isMap(document.contents)) throw new Error('not a kubeconfig: the top level is not a map');
  return document as Document;
}

const nameOf = (item: unknown): unknown => (yaml().isMap(item) ? (item as YAMLMap).get('name') : undefined);

function put(document: Document, field: string, name: string, entry: unknown): void {
  const items = itemsOf(document, field);
  if (!items) return void document.set(field, document.createNode([entry]));
  const at = items.findIndex((item) => nameOf(item) === name);
  items[at < 0 ? items.length : at] = document.createNode(entry);
}

function drop(document: Document, field: string, name: string): void {
  const list = document.get(field);
  if (yaml().isSeq(list)) (list as YAMLSeq).items = (list as YAMLSeq).items.filter((item) => nameOf(item) !== name);
}

/** The file kubectl would write to: the last of $KUBECONFIG, else ~/.kube/config. */
export function userKubeconfigPath(environment: Readonly<Record<string, string | undefined>>): string {
  const listed = (environment['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  return (
    listed.find((path) => existsSync(path)) ?? listed.at(-1) ?? join(environment['HOME'] || homedir(), '.kube/config')
  );
}

/** What a path leads to, also where that is not there yet: a symlinked kubeconfig keeps being one, its target is written. */
function linkTarget(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  try {
    return resolve(dirname(path), readlinkSync(path));
  } catch {
    return path; // no link
  }
}

/** A lock older than this was left behind by a process that died. */
const STALE_LOCK_MS = 10_000;

/** Applies `edit` to the user's kubeconfig under kubectl's own lock file. Throws when the lock is held or the file is not a kubeconfig. */
export function editUserKubeconfig(path: string, edit: (text: string) => string): void {
  makePrivateDirs(dirname(resolve(path)));
  const target = linkTarget(path);
  const lock = `${path}.lock`;
  let handle: number;
  try {
    handle = openSync(lock, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (systemClock.now() - statSync(lock).mtimeMs < STALE_LOCK_MS)
      throw new Error(`${lock} is held by another program; try again, or remove it if none runs`);
    rmSync(lock, { force: true });
    handle = openSync(lock, 'wx', 0o600);
  }
  try {
    const before = readFileIfAny(target) ?? '';
    const after = edit(before);
    if (after !== before) writePrivateFile(target, after);
  } finally {
    closeSync(handle);
    rmSync(lock, { force: true });
  }
}
