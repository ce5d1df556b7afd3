/**
 * helm as a child: of version 3.16 or newer, in a private directory, without plugins, without any configuration of the host.
 * Credentials lie in files that only this user reads, for the time of a call.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { registryOrigin } from '@coracle/runtime/oci/registry-client';
import { programPath } from '@coracle/runtime/process/program';
import { runConfined } from '@coracle/runtime/process/run-confined';
import { withoutSecrets } from '../git/git-command.ts';
import { SourceError } from '../git/source.ts';
import { TREE_LIMITS } from '../git/tree-rules.ts';

export interface ChartAccess {
  /** http://, https:// or oci://, without a slash at the end. */
  readonly repo: string;
  readonly chart: string;
  /** A version or a range; undefined for the newest. */
  readonly version?: string;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** PEM. */
  readonly ca?: string;
}

export interface Release {
  readonly name: string;
  readonly namespace: string;
  /** YAML texts; later ones win. */
  readonly values: readonly string[];
  readonly includesCrds: boolean;
}

export interface HelmCall {
  /** Private to one sync; a directory of ours is made in it for the time of a call. */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly maxMemory?: number;
}

const VERSION_MS = 30_000;
const PULL_MS = 2 * 60_000;
const RENDER_MS = 60_000;
/** Of what Chart.yaml may hold. */
const MAX_CHART_YAML = 1024 * 1024;
const PLACE = 'helm-';
/** The first one that can leave schemas alone, which may name files and URLs. */
const OLDEST = { major: 3, minor: 16 };

/** Pulls a chart to the file `to`; it is there as a whole or not at all. Rejects with SourceError. */
export async function pullChart(access: ChartAccess, to: string, call: HelmCall): Promise<void> {
  await withHelm(call, access.credentials ? [access.credentials.password] : [], async (helm, place) => {
    const out = join(place, 'out');
    await mkdir(out);
    const caFile = join(place, 'ca.pem');
    if (access.ca !== undefined) await writePrivate(caFile, access.ca);
    const version = access.version === undefined ? [] : [`--version=${access.version}`];
    if (access.repo.startsWith('oci://')) {
      const { host } = new URL(access.repo.replace(/^oci:/, 'https:'));
      if (access.credentials) await writeRegistryConfig(join(place, 'registry.json'), host, access.credentials);
      const isPlain = registryOrigin(host, access.ca !== undefined).startsWith('http:');
      const tls = access.ca !== undefined ? [`--ca-file=${caFile}`] : isPlain ? ['--plain-http'] : [];
      await helm(['pull', `${access.repo}/${access.chart}`, ...version, ...tls, `--destination=${out}`], PULL_MS);
    } else {
      const entry = {
        name: 'sync',
        url: access.repo,
        ...access.credentials,
        ...(access.ca !== undefined && { caFile }),
        pass_credentials_all: false,
      };
      await writePrivate(join(place, 'repositories.yaml'), JSON.stringify({ apiVersion: '', repositories: [entry] }));
      const said = Buffer.from(await helm(['repo', 'update', 'sync'], PULL_MS)).toString('utf8');
      // Helm 3 ends well when it could not be had.
      if (!existsSync(join(place, 'cache', 'repository', 'sync-index.yaml'))) {
        const why = NO_UPDATE.exec(said)?.[0] ?? said;
        throw new SourceError(`helm repo update failed: ${shown(why, place, access).slice(0, 1000)}`);
      }
      await helm(['pull', `sync/${access.chart}`, ...version, `--destination=${out}`], PULL_MS);
    }
    const pulled = (await readdir(out)).filter((name) => name.endsWith('.tgz'));
    if (pulled.length !== 1) throw new SourceError(`helm pulled ${pulled.length} charts where one was requested`);
    await rename(join(out, pulled[0]!), to);
  });
}

/** What helm said, in one line, without the credentials that it was given. */
const shown = (text: string, place: string, { credentials }: ChartAccess): string =>
  withoutSecrets(text.replaceAll(`${place}/`, ''), credentials ? [credentials.password] : [])
    .replace(/\s+/g, ' ')
    .trim();

/** What Chart.yaml of a pulled chart says, as text. Rejects with SourceError. */
export async function showChart(file: string, call: HelmCall): Promise<string> {
  return withHelm(call, [], async (helm) =>
    Buffer.from(await helm(['show', 'chart', file], RENDER_MS, MAX_CHART_YAML)).toString('utf8'),
  );
}

/** What the templates of a pulled chart make, hooks included, tests not. Rejects with SourceError. */
export async function templateChart(file: string, release: Release, call: HelmCall): Promise<string> {
  return withHelm(call, [], async (helm, place) => {
    const values: string[] = [];
    for (const [number, text] of release.values.entries()) {
      const path = join(place, `values-${number}.yaml`);
      await writePrivate(path, text);
      values.push(`--values=${path}`);
    }
    const args = ['template', release.name, file, `--namespace=${release.namespace}`, ...values];
    const more = ['--skip-schema-validation', '--skip-tests', ...(release.includesCrds ? ['--include-crds'] : [])];
    return Buffer.from(await helm([...args, ...more], RENDER_MS, TREE_LIMITS.totalBytes)).toString('utf8');
  });
}

/** What helm says when the index of a repository could not be had, with the reason after it. */
const NO_UPDATE = /Unable to get an update.*/s;

type RunHelm = (args: readonly string[], timeoutMs: number, maxStdout?: number) => Promise<Uint8Array>;

async function withHelm<T>(
  { directory, signal, maxMemory }: HelmCall,
  secrets: readonly string[],
  act: (helm: RunHelm, place: string) => Promise<T>,
): Promise<T> {
  const program = programPath('helm');
  if (program === undefined)
    throw new SourceError(
      'charts are rendered by helm, and the host of this process has none in its PATH: install helm 3.16 or newer',
    );
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // What a killed process left.
  for (const old of await readdir(directory))
    if (old.startsWith(PLACE)) await rm(join(directory, old), { recursive: true, force: true });
  const place = await mkdtemp(join(directory, PLACE));
  const helm: RunHelm = async (args, timeoutMs, maxStdout) => {
    const result = await runConfined([program, ...args], {
      cwd: place,
      signal,
      timeoutMs,
      env: {
        HELM_CACHE_HOME: join(place, 'cache'),
        HELM_CONFIG_HOME: join(place, 'config'),
        HELM_DATA_HOME: join(place, 'data'),
        HELM_PLUGINS: join(place, 'plugins'),
        HELM_REPOSITORY_CONFIG: join(place, 'repositories.yaml'),
        HELM_REPOSITORY_CACHE: join(place, 'cache', 'repository'),
        HELM_REGISTRY_CONFIG: join(place, 'registry.json'),
      },
      ...(maxStdout !== undefined && { maxStdout }),
      ...(maxMemory !== undefined && { maxMemory }),
    });
    signal.throwIfAborted();
    if (result.ok) return result.stdout;
    // Helm 4 says on its standard output why an index could not be had.
    const why = NO_UPDATE.exec(Buffer.from(result.stdout).toString('utf8'))?.[0] ?? result.stderr;
    const said = (result.reason === 'exit' ? why : result.message).trim().replaceAll(`${place}/`, '');
    // Its warnings come first, its error last.
    const text = withoutSecrets(said, secrets).replaceAll(`${directory}/`, '').slice(-2000);
    throw new SourceError(`helm ${args[0]} failed: ${text.replace(/^Error: /, '')}`);
  };
  try {
    await checkVersion(helm);
    return await act(helm, place);
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

async function checkVersion(helm: RunHelm): Promise<void> {
  const text = Buffer.from(await helm(['version', '--template={{.Version}}'], VERSION_MS))
    .toString('utf8')
    .trim();
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(text) ?? [];
  const isOld = Number(major) < OLDEST.major || (Number(major) === OLDEST.major && Number(minor) < OLDEST.minor);
  if (major === undefined || isOld)
    throw new SourceError(`the helm of this host is ${JSON.stringify(text)}; charts need 3.16 or newer: install one`);
}

const writePrivate = (path: string, text: string): Promise<void> => writeFile(path, text, { mode: 0o600 });

const writeRegistryConfig = (
  path: string,
  host: string,
  { username, password }: NonNullable<ChartAccess['credentials']>,
): Promise<void> => {
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  return writePrivate(path, JSON.stringify({ auths: { [host]: { auth } } }));
};
