/**
 * Credential plug-ins of kubeconfigs (`users[].user.exec`, client.authentication.k8s.io): a program that the owner of
 * the file named prints an ExecCredential. It is started without a shell, with no standard input, bounded in time and
 * output; what it prints is kept until it expires and never logged.
 */
import { dirname, isAbsolute, join } from 'node:path';
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { Clock } from '@coracle/runtime/clock/clock';
import { plainEnv, run } from '@coracle/runtime/process/run';

/** What a plug-in gave: a token, a client certificate (PEM), or both. */
export interface ExecCredential {
  readonly token?: string;
  readonly certificate?: string;
  readonly key?: string;
  /** Milliseconds since the epoch; kept until the server refuses it when absent. */
  readonly expires?: number;
}

/** The stanza, read and checked. */
export interface ExecPlugin {
  readonly apiVersion: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
}

/** The cluster as a plug-in that asks for it is shown it (`ExecCredential.spec.cluster`). */
export interface ExecClusterInfo {
  readonly server: string;
  /** PEM. */
  readonly ca?: string | undefined;
  readonly serverName?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean;
  /** The cluster's extension `client.authentication.k8s.io/exec`. */
  readonly config?: unknown;
}

const GROUP = 'client.authentication.k8s.io';
const VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`];
/** A plug-in may ask a far service; one that waits for a person who is not there must end. */
const TIMEOUT_MS = 60_000;
/** Largest ExecCredential: a chain of certificates is far below it. */
const MAX_OUTPUT = 1024 * 1024;

type Entry = Readonly<Record<string, unknown>>;

const isMap = (value: unknown): value is Entry => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reads an `exec` stanza of the kubeconfig at `path`. Throws an Error of one line that names what is wrong. */
export function readExecPlugin(stanza: unknown, path: string): ExecPlugin {
  if (!isMap(stanza)) throw new Error('exec is not a map');
  const { apiVersion, command, args, env, interactiveMode, installHint, provideClusterInfo } = stanza;
  if (typeof apiVersion !== 'string' || !VERSIONS.includes(apiVersion))
    throw new Error(`exec.apiVersion must be ${VERSIONS.join(' or ')}, not ${JSON.stringify(apiVersion)}`);
  if (typeof command !== 'string' || command === '') throw new Error('exec.command must be specified');
  const list = (args ?? []) as unknown;
  if (!Array.isArray(list) || list.some((one) => typeof one !== 'string'))
    throw new Error('exec.args must be a list of texts');
  const variables = (env ?? []) as unknown;
  if (!Array.isArray(variables)) throw new Error('exec.env must be a list');
  const named: Record<string, string> = {};
  for (const one of variables) {
    if (!isMap(one) || typeof one['name'] !== 'string' || one['name'] === '')
      throw new Error('exec.env: each entry needs a name');
    named[one['name']] = typeof one['value'] === 'string' ? one['value'] : '';
  }
  // Required in v1; v1beta1 takes IfAvailable for it.
  const mode = interactiveMode ?? (apiVersion.endsWith('/v1beta1') ? 'IfAvailable' : undefined);
  if (mode === 'Always') throw new Error('exec.interactiveMode is Always, and plug-ins have no standard input here');
  if (mode !== 'Never' && mode !== 'IfAvailable')
    throw new Error('exec.interactiveMode must be specified: Never, IfAvailable or Always');
  // As kubectl: a path with a separator counts from the directory of the file, a bare name is looked up in PATH.
  const program = command.includes('/') && !isAbsolute(command) ? join(dirname(path), command) : command;
  return {
    apiVersion,
    argv: [program, ...(list as string[])],
    env: named,
    installHint: typeof installHint === 'string' ? installHint : '',
    provideClusterInfo: provideClusterInfo === true,
  };
}

/** Runs the plug-in once. Rejects with one line; what it wrote on stderr is in it, what it printed is not. */
export async function runExecPlugin(
  plugin: ExecPlugin,
  options: {
    readonly cluster: ExecClusterInfo;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
    readonly timeoutMs?: number;
  },
): Promise<ExecCredential> {
  // A process without PATH finds no plug-in.
  const inherited: Record<string, string> = plainEnv();
  for (const [name, value] of Object.entries(options.environment)) if (value !== undefined) inherited[name] = value;
  const info = {
    kind: 'ExecCredential',
    apiVersion: plugin.apiVersion,
    spec: { interactive: false, ...(plugin.provideClusterInfo && { cluster: clusterInfo(options.cluster) }) },
  };
  const result = await run(plugin.argv, {
    env: { ...inherited, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    signal: options.signal,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    maxStdout: MAX_OUTPUT,
  });
  if (!result.ok) {
    const hint = result.reason === 'spawn' && plugin.installHint !== '' ? `: ${plugin.installHint}` : '';
    throw new Error(`credential plug-in failed: ${oneLine(result.message + hint)}`);
  }
  return readExecCredential(new TextDecoder().decode(result.stdout), plugin.apiVersion);
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

function clusterInfo(cluster: ExecClusterInfo): Entry {
  return {
    server: cluster.server,
    ...(cluster.serverName !== undefined && { 'tls-server-name': cluster.serverName }),
    ...(cluster.insecureSkipTlsVerify && { 'insecure-skip-tls-verify': true }),
    ...(cluster.ca !== undefined && {
      'certificate-authority-data': encodeBase64(new TextEncoder().encode(cluster.ca)),
    }),
    ...(cluster.config !== undefined && { config: cluster.config }),
  };
}

/** Reads what a plug-in printed. Throws an Error of one line, without any of it. */
export function readExecCredential(text: string, apiVersion: string): ExecCredential {
  let printed: unknown;
  try {
    printed = JSON.parse(text);
  } catch {
    throw new Error('credential plug-in failed: what it printed is not JSON');
  }
  if (!isMap(printed) || printed['kind'] !== 'ExecCredential')
    throw new Error('credential plug-in failed: what it printed is not an ExecCredential');
  if (printed['apiVersion'] !== apiVersion)
    throw new Error(`credential plug-in failed: it is configured for ${apiVersion} and answered in another version`);
  const status = isMap(printed['status']) ? printed['status'] : undefined;
  if (!status) throw new Error('credential plug-in failed: it returned no status');
  const text_ = (name: string): string | undefined =>
    typeof status[name] === 'string' && status[name] !== '' ? (status[name] as string) : undefined;
  const token = text_('token');
  const certificate = text_('clientCertificateData');
  const key = text_('clientKeyData');
  if ((certificate === undefined) !== (key === undefined))
    throw new Error('credential plug-in failed: it returned only a certificate or only a key, not both');
  if (token === undefined && certificate === undefined)
    throw new Error("credential plug-in failed: it didn't return a token or cert/key pair");
  const stamp = text_('expirationTimestamp');
  const expires = stamp === undefined ? undefined : Date.parse(stamp);
  if (expires !== undefined && Number.isNaN(expires))
    throw new Error('credential plug-in failed: its expirationTimestamp is not a time');
  return {
    ...(token !== undefined && { token }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(expires !== undefined && { expires }),
  };
}

export interface ExecCredentialSource {
  /** The credential kept, or a new one when it has expired. Callers at the same time share one run. */
  current(): Promise<ExecCredential>;
  /** A new one in place of `refused`, unless there is a newer one already or the plug-in ran a moment ago. */
  renew(refused: ExecCredential | undefined): Promise<ExecCredential>;
}

/** A server that refuses whatever the plug-in gives must not have it run for each request. */
const RERUN_MS = 10_000;

/** Keeps what `ask` gives. */
export function createExecCredentialSource(ask: () => Promise<ExecCredential>, clock: Clock): ExecCredentialSource {
  let held: ExecCredential | undefined;
  let ranAt = Number.NEGATIVE_INFINITY;
  let failure: unknown;
  let running: Promise<ExecCredential> | undefined;
  const isGood = (): boolean => held !== undefined && (held.expires === undefined || held.expires > clock.now());
  const again = (): Promise<ExecCredential> => {
    running ??= (async () => {
      ranAt = clock.monotonic();
      try {
        held = await ask();
        failure = undefined;
        return held;
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        running = undefined;
      }
    })();
    return running;
  };
  const isEarly = (): boolean => clock.monotonic() - ranAt < RERUN_MS;
  return {
    async current() {
      if (isGood()) return held!;
      if (!running && failure !== undefined && isEarly()) throw failure;
      return again();
    },
    async renew(refused) {
      if (running) return running;
      if (held !== undefined && held !== refused && isGood()) return held;
      if (isEarly()) {
        if (held !== undefined) return held;
        throw failure;
      }
      return again();
    },
  };
}
