/**
 * git as a child: a closed environment, no configuration of the host or of the user, no hooks, one protocol. Credentials
 * travel in the environment or in files that only this user reads, never on a command line.
 */
import { plainEnv, type RunResult, run } from '@coracle/runtime/process/run';
import type { GitProtocol } from './repository-url.ts';
import { SourceError } from './source.ts';

export interface GitAccess {
  readonly protocol: GitProtocol;
  readonly url: string;
  /** `Authorization` of HTTP; sent to that scheme, host and port alone. */
  readonly authorization?: string;
  /** Path of a file of cookies, as curl reads them; each is sent to the hosts that it names. */
  readonly cookieFile?: string;
  /** Path of a PEM file. */
  readonly caFile?: string;
  readonly proxy?: string;
  readonly skipsTlsCheck?: boolean;
  readonly ssh?: { readonly keyFile: string; readonly knownHostsFile: string; readonly acceptsNewHosts: boolean };
  /** What must not be shown. */
  readonly secrets: readonly string[];
}

export interface GitCall {
  /** The bare repository. */
  readonly directory: string;
  readonly access?: GitAccess;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly maxStdout?: number;
  readonly input?: Uint8Array;
  readonly onStdout?: (chunk: Uint8Array) => void;
}

/** Below this many bytes a second for so many seconds a transfer has stalled. */
const LOW_SPEED = { bytes: 200, seconds: 30 };

/** Runs git; what fails is a value. The message holds no credentials. */
export async function git(args: readonly string[], call: GitCall): Promise<RunResult> {
  const result = await run(['git', ...args], {
    env: environment(call.directory, call.access),
    cwd: call.directory,
    signal: call.signal,
    timeoutMs: call.timeoutMs,
    ...(call.maxStdout !== undefined && { maxStdout: call.maxStdout }),
    ...(call.input && { input: call.input }),
    ...(call.onStdout && { onStdout: call.onStdout }),
  });
  return result.ok ? result : { ...result, message: withoutSecrets(result.message, call.access?.secrets ?? []) };
}

/** The same; rejects with SourceError when it fails. */
export async function gitOutput(args: readonly string[], call: GitCall): Promise<Uint8Array> {
  const result = await git(args, call);
  if (result.ok) return result.stdout;
  call.signal.throwIfAborted();
  throw new SourceError(lastLines(result.message));
}

/** What git said at the end, in one line. */
const lastLines = (message: string): string =>
  message
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(0, 4)
    .join('; ')
    .slice(0, 1000);

/** Takes credentials out of what a program said. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  let shown = text.replace(/([a-z+]+:\/\/)[^/@\s'"]+@/gi, '$1***@');
  for (const secret of secrets) if (secret.length > 3) shown = shown.replaceAll(secret, '***');
  return shown;
}

/** The whole environment of one call. */
export function environment(directory: string, access: GitAccess | undefined): Record<string, string> {
  const config: [key: string, value: string][] = [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.askPass', ''],
    ['credential.helper', ''],
    ['fetch.recurseSubmodules', 'false'],
    ['fetch.writeCommitGraph', 'false'],
    // Packs alone, so that what a fetch brought can be measured.
    ['fetch.unpackLimit', '1'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['protocol.version', '2'],
    // Attributes of a repository may name programs; none of ours reads them, and none should.
    ['core.attributesFile', '/dev/null'],
    ['http.lowSpeedLimit', String(LOW_SPEED.bytes)],
    ['http.lowSpeedTime', String(LOW_SPEED.seconds)],
  ];
  const { PATH = '' } = plainEnv();
  const env: Record<string, string> = {
    PATH,
    LC_ALL: 'C',
    HOME: directory,
    GIT_DIR: directory,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_PROTOCOL_FROM_USER: '0',
    // What a server redirects to, or an alternate names, goes nowhere else either.
    GIT_ALLOW_PROTOCOL: access?.protocol ?? 'none',
    SSH_ASKPASS_REQUIRE: 'never',
  };
  if (access) {
    config.push(['remote.origin.url', access.url]);
    if (access.authorization !== undefined)
      config.push([`http.${new URL(access.url).origin}/.extraHeader`, `Authorization: ${access.authorization}`]);
    if (access.cookieFile !== undefined)
      config.push(['http.cookieFile', access.cookieFile], ['http.saveCookies', 'false']);
    if (access.caFile !== undefined) config.push(['http.sslCAInfo', access.caFile]);
    if (access.proxy !== undefined) config.push(['http.proxy', access.proxy]);
    if (access.skipsTlsCheck) config.push(['http.sslVerify', 'false']);
    if (access.ssh) {
      env['GIT_SSH_COMMAND'] = sshCommand(access.ssh);
      env['GIT_SSH_VARIANT'] = 'ssh';
    }
  }
  env['GIT_CONFIG_COUNT'] = String(config.length);
  config.forEach(([key, value], at) => {
    env[`GIT_CONFIG_KEY_${at}`] = key;
    env[`GIT_CONFIG_VALUE_${at}`] = value;
  });
  return env;
}

/** git has a shell read it. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const sshCommand = ({ keyFile, knownHostsFile, acceptsNewHosts }: NonNullable<GitAccess['ssh']>): string =>
  [
    'ssh',
    '-F',
    '/dev/null',
    '-i',
    keyFile,
    ...[
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      'BatchMode=yes',
      `StrictHostKeyChecking=${acceptsNewHosts ? 'accept-new' : 'yes'}`,
      // ssh splits this one at spaces itself.
      `UserKnownHostsFile="${knownHostsFile}"`,
      'GlobalKnownHostsFile=/dev/null',
      'ConnectTimeout=15',
      'ServerAliveInterval=15',
      'PermitLocalCommand=no',
      'ForwardAgent=no',
      'ClearAllForwardings=yes',
    ].flatMap((option) => ['-o', option]),
  ]
    .map(quoted)
    .join(' ');
