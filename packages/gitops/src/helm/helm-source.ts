/** A Helm chart as a source: `chart:version` is the commit, what its templates make is the tree. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseYaml } from '@coracle/apimachinery/schema/parse-json';
import { authorityOf, type ReadSecret, type Source, SourceError, type SourceTree } from '../git/source.ts';
import { hasOddName, inOrder } from '../git/tree-rules.ts';
import type { HelmSpec } from '../kinds/kinds.ts';
import { type ChartAccess, pullChart, showChart, templateChart } from './helm-command.ts';

/** A ConfigMap that holds values. */
export interface ValuesMap {
  readonly immutable: boolean;
  readonly data: Readonly<Record<string, string>>;
}

export interface HelmSourceOptions {
  readonly spec: HelmSpec;
  /** That of the release. */
  readonly namespace: string;
  /** Of objects that name none; without it that of the sync. */
  readonly defaultNamespace?: string;
  /** Private to one sync: the chart, and for the time of a call values and credentials. */
  readonly directory: string;
  readonly secret: ReadSecret;
  /** The ConfigMap of that name, where the sync is. Rejects with SourceError when it is not there. */
  readonly configMap: (name: string, signal: AbortSignal) => Promise<ValuesMap>;
  readonly maxMemory?: number;
}

/** One version, and not a range of them. */
const EXACT = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/;
const CHART = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const RELEASE = /^[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?$/;
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** What helm itself calls a release without a name. */
const NO_NAME = 'release-name';
const FILE = 'chart-';

/** What is wrong with the names in a spec; one sentence each. */
export function problemsOf(spec: HelmSpec): string[] {
  const { repo, chart, version = '', releaseName = '', namespace = '', deployNamespace = '' } = spec;
  const wrong: string[] = [];
  const url = URL.parse(repo);
  if (!/^(https?|oci):\/\/[^\s/]/.test(repo) || !url || url.search !== '' || url.hash !== '')
    wrong.push('spec.helm.repo is a URL that begins with https://, http:// or oci://');
  else if (url.username !== '' || url.password !== '')
    wrong.push('spec.helm.repo holds credentials; use auth token and a Secret');
  if (!CHART.test(chart)) wrong.push(`spec.helm.chart ${JSON.stringify(chart)} is not a valid chart name`);
  if (version.length > 256 || hasOddName(version)) wrong.push('spec.helm.version is not a version');
  if (releaseName !== '' && !RELEASE.test(releaseName))
    wrong.push(`spec.helm.releaseName ${JSON.stringify(releaseName)} is not a valid release name`);
  for (const [field, value] of Object.entries({ namespace, deployNamespace }))
    if (value !== '' && !NAMESPACE.test(value))
      wrong.push(`spec.helm.${field} ${JSON.stringify(value)} is not a namespace`);
  if (namespace !== '' && deployNamespace !== '')
    wrong.push('spec.helm.namespace and spec.helm.deployNamespace do not go together');
  return wrong;
}

/** The version in a commit. */
export const versionOf = ({ chart }: HelmSpec, commit: string): string => commit.slice(chart.length + 1);

/** Makes the source; nothing is asked before `resolve`. */
export function createHelmSource(options: HelmSourceOptions): Source {
  const { spec, directory, namespace, defaultNamespace, secret, maxMemory } = options;
  const { repo, chart } = spec;
  const call = (signal: AbortSignal) => ({ directory, signal, ...(maxMemory !== undefined && { maxMemory }) });
  const wanted = spec.version === 'latest' ? '' : (spec.version ?? '');
  const fileOf = (version: string): string => {
    const key = createHash('sha256')
      .update(JSON.stringify([repo, chart, version]))
      .digest('hex')
      .slice(0, 24);
    return join(directory, `${FILE}${key}.tgz`);
  };
  const pull = async (version: string, to: string, signal: AbortSignal): Promise<void> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await pullChart(await accessOf(spec, { version, secret, signal }), to, call(signal));
  };
  const keepOnly = async (file: string): Promise<void> => {
    for (const name of await readdir(directory))
      if (name.startsWith(FILE) && join(directory, name) !== file) await rm(join(directory, name), { force: true });
  };

  const read = async (commit: string, signal: AbortSignal): Promise<SourceTree> => {
    const version = versionOf(spec, commit);
    const file = fileOf(version);
    const values = await valuesOf(options, signal);
    if (!existsSync(file)) await pull(version, file, signal);
    await keepOnly(file);
    const release = {
      name: spec.releaseName || NO_NAME,
      namespace,
      values,
      includesCrds: spec.includeCRDs ?? false,
    };
    const text = await templateChart(file, release, call(signal));
    return {
      ...treeOf(text, chart),
      isRendered: true,
      ...(defaultNamespace !== undefined && { defaultNamespace }),
    };
  };

  return {
    async resolve(signal) {
      if (EXACT.test(wanted)) return `${chart}:${wanted}`;
      const file = join(directory, `${FILE}new.tgz`);
      await pull(wanted, file, signal);
      const version = versionIn(await showChart(file, call(signal)));
      await rename(file, fileOf(version));
      return `${chart}:${version}`;
    },
    read,
    readAll: read,
  };
}

async function accessOf(
  spec: HelmSpec,
  { version, secret, signal }: { readonly version: string; readonly secret: ReadSecret; readonly signal: AbortSignal },
): Promise<ChartAccess> {
  const ca = await authorityOf(spec, secret, signal);
  const base: ChartAccess = {
    repo: spec.repo.replace(/\/+$/, ''),
    chart: spec.chart,
    ...(version !== '' && { version }),
    ...(ca !== undefined && { ca }),
  };
  if (spec.auth !== 'token') return base;
  const name = spec.secretRef?.name ?? '';
  const { username, password } = await secret(name, signal);
  if (!username || !password)
    throw new SourceError(`secret ${JSON.stringify(name)} has no keys username and password, which auth token needs`);
  return { ...base, credentials: { username, password } };
}

/** Texts of values, in the order in which later ones win. */
async function valuesOf({ spec, configMap }: HelmSourceOptions, signal: AbortSignal): Promise<string[]> {
  const values: string[] = [];
  for (const { name, dataKey = 'values.yaml' } of spec.valuesFileRefs ?? []) {
    const { immutable, data } = await configMap(name, signal);
    if (!immutable)
      throw new SourceError(
        `ConfigMap ${JSON.stringify(name)} has values and is not immutable: set immutable: true, and give each change a new name`,
      );
    const text = Object.hasOwn(data, dataKey) ? data[dataKey] : undefined;
    if (!text) throw new SourceError(`ConfigMap ${JSON.stringify(name)} has no key ${JSON.stringify(dataKey)}`);
    values.push(text);
  }
  if (spec.values) values.push(JSON.stringify(spec.values));
  return values;
}

function versionIn(chartYaml: string): string {
  let value: unknown;
  try {
    value = parseYaml(chartYaml).value;
  } catch (error) {
    throw new SourceError(`Chart.yaml cannot be read: ${(error as Error).message}`);
  }
  const version = (value as { version?: unknown } | null)?.version;
  if (typeof version !== 'string' || version === '' || version.length > 256 || hasOddName(version))
    throw new SourceError('Chart.yaml has no version');
  return version;
}

/** Documents by the template that made them, which helm names before each. */
function treeOf(text: string, chart: string): Pick<SourceTree, 'files' | 'unread'> {
  const byPath = new Map<string, string[]>();
  let path = `${chart}/templates`;
  for (const document of text.split(/^---[ \t]*\r?$/m)) {
    if (document.trim() === '') continue;
    const named = /^\s*# Source: (\S.*)$/m.exec(document)?.[1]?.trim();
    if (named !== undefined && !hasOddName(named) && named.length < 1024) path = named;
    const texts = byPath.get(path);
    if (texts) texts.push(document);
    else byPath.set(path, [document]);
  }
  const files = [...byPath].map(([at, texts]) => ({ path: at, bytes: Buffer.from(texts.join('\n---\n')) }));
  return inOrder({ files, unread: [] });
}
